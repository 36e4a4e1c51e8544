// Host kernels: operators that no loop nest can say (TopK, NonZero, strings, sequences). One
// function each, registered by name in rt/host/*.cc; the compiler folds constants with the same
// code.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace ge::rt {

// A tensor, sequence or optional in an object slot.
struct Object {
  enum class Kind : uint8_t { kNone, kTensor, kSequence } kind = Kind::kNone;
  uint8_t dtype = 0;
  std::vector<int64_t> dims;
  std::vector<std::byte> bytes;
  std::vector<std::string> strings;  // dtype kString
  std::vector<Object> items;         // kSequence
};

struct HostTensor {
  uint8_t dtype = 0;
  std::span<const int64_t> dims;
  const void* data = nullptr;  // null: absent
  int64_t bytes = 0;           // of storage, if known: layouts with halo or pad lanes
  Object* object = nullptr;    // set if the buffer is a slot
};
struct HostOutput {
  uint8_t dtype = 0;
  std::span<const int64_t> dims;  // upper bound where it depends on data
  void* data = nullptr;           // null: not wanted
  int64_t bytes = 0;              // capacity
  Object* object = nullptr;
  // For outputs whose size has no useful bound: allocate(bytes) gives memory of the right size and
  // must be called before writing. Null for planned buffers.
  void* (*allocate)(void* context, int64_t bytes) = nullptr;
  void* context = nullptr;
};

// Attributes, encoded as text lines "name=type:value" (i:3, f:0x1p-1, s:hex, is:1,2, fs:...,
// ss:hex,hex).
class HostAttrs {
 public:
  explicit HostAttrs(std::string_view text);
  int64_t Int(std::string_view name, int64_t otherwise) const;
  double Float(std::string_view name, double otherwise) const;
  std::string Str(std::string_view name, std::string_view otherwise) const;
  std::vector<int64_t> Ints(std::string_view name) const;
  std::vector<double> Floats(std::string_view name) const;
  std::vector<std::string> Strs(std::string_view name) const;
  bool Has(std::string_view name) const;

 private:
  std::map<std::string, std::string, std::less<>> values_;
};
// Writers of the same lines.
void AppendAttr(std::string* text, std::string_view name, int64_t value);
void AppendAttr(std::string* text, std::string_view name, double value);
void AppendAttr(std::string* text, std::string_view name, std::string_view value);
void AppendAttr(std::string* text, std::string_view name, std::span<const int64_t> values);
void AppendAttr(std::string* text, std::string_view name, std::span<const double> values);
void AppendAttr(std::string* text, std::string_view name, std::span<const std::string> values);

struct HostCall {
  const HostAttrs& attrs;
  std::span<const HostTensor> inputs;
  std::span<HostOutput> outputs;
  std::vector<int64_t>& sizes;           // results for the symbols that the task binds, in order
  std::span<const int64_t> values = {};  // the task's evaluated size expressions
};

using HostFn = Status (*)(HostCall&);
bool RegisterHost(std::string_view name, HostFn fn);
HostFn FindHost(std::string_view name);  // null if unknown

}  // namespace ge::rt
