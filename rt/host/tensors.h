// What host kernels share: shapes, claims on output memory, axes, and moving elements of any dtype.
// Every kernel checks its operands itself: a plan may come from a damaged file.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "abi/dtype.h"
#include "base/status.h"
#include "rt/host_kernel.h"

namespace ge::rt {

using Shape = std::vector<int64_t>;

inline DType TypeOf(const HostTensor& t) { return static_cast<DType>(t.dtype); }
int64_t Count(std::span<const int64_t> dims);
// Product of dims[from, to).
int64_t CountOf(std::span<const int64_t> dims, int64_t from, int64_t to);
std::string Text(std::span<const int64_t> dims);  // "[2, 3]"

// Whether input i is there (a tensor with data, or a slot).
bool Present(const HostCall& call, size_t i);
bool Wanted(const HostCall& call, size_t o);
// The call has at least `inputs` operands that are present, and at most `outputs` outputs.
Status CheckCall(const HostCall& call, size_t inputs, size_t outputs);
// Input i, as a tensor with memory: one in a slot is seen through.
Status TensorIn(const HostCall& call, size_t i, HostTensor* tensor);
Status CheckRank(const HostTensor& t, size_t rank, std::string_view what);
Status CheckIndexType(const HostTensor& t, std::string_view what);
// -rank <= axis < rank, to 0 <= axis < rank.
Status WrapAxis(int64_t* axis, int64_t rank);
// -n <= i < n, to 0 <= i < n.
Status WrapIndex(int64_t* i, int64_t n, std::string_view what);

// Memory for `dims` elements of output o; null data if the output is not wanted.
Status Claim(HostCall& call, size_t o, std::span<const int64_t> dims, void** data);

// Operand i as a tensor of strings (an empty one where an optional holds none), and a result of
// them.
Status StringsIn(const HostCall& call, size_t i, const Object** t);
Status GiveStrings(HostCall& call, size_t o, Shape dims, std::vector<std::string> strings);

// Integer element i.
int64_t IntAt(const HostTensor& t, int64_t i);
// Copies `count` elements. Sub-byte types too.
void CopyElements(DType t, const void* from, int64_t from_at, void* to, int64_t to_at,
                  int64_t count);

}  // namespace ge::rt
