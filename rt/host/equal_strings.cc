// EqualStrings: y[i] = a[i] == b[i] of two string tensors, under numpy broadcasting.
#include <algorithm>

#include "rt/host/tensors.h"

namespace ge::rt {
namespace {

// Position in `dims` of element `at` of the broadcast shape `out`.
int64_t Source(int64_t at, const Shape& out, const Shape& dims) {
  int64_t position = 0, stride = 1;
  for (size_t k = 0; k < dims.size(); ++k) {
    const int64_t extent = out[out.size() - 1 - k], dim = dims[dims.size() - 1 - k];
    if (dim != 1) position += at % extent * stride;
    stride *= dim;
    at /= extent;
  }
  return position;
}

Status EqualStrings(HostCall& call) {
  const Object *a, *b;
  GE_TRY(StringsIn(call, 0, &a));
  GE_TRY(StringsIn(call, 1, &b));
  Shape out(std::max(a->dims.size(), b->dims.size()), 1);
  for (const Object* t : {a, b}) {
    for (size_t k = 0; k < t->dims.size(); ++k) {
      int64_t& o = out[out.size() - 1 - k];
      const int64_t dim = t->dims[t->dims.size() - 1 - k];
      if (dim != 1 && o != 1 && dim != o)
        return Invalid("shapes " + Text(a->dims) + " and " + Text(b->dims) + " do not broadcast");
      if (o == 1) o = dim;
    }
  }
  void* y;
  GE_TRY(Claim(call, 0, out, &y));
  if (y == nullptr) return {};
  for (int64_t i = 0; i < Count(out); ++i) {
    static_cast<bool*>(y)[i] =
        a->strings[Source(i, out, a->dims)] == b->strings[Source(i, out, b->dims)];
  }
  return {};
}

[[maybe_unused]] const bool kRegistered = RegisterHost("EqualStrings", EqualStrings);

}  // namespace
}  // namespace ge::rt
