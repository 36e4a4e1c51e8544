// StringsAt: y[i] = all strings of the operands after the first, in order, at position x0[i].
// StringRanks: how many different strings of the tensor are less.
// CastString: a number as the shortest text that reads back as it, NaN, INF or -INF; and back,
// where text that is no number is a fault.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "abi/convert.h"
#include "rt/host/tensors.h"

namespace ge::rt {
namespace {

Status StringsAt(HostCall& call) {
  GE_TRY(CheckCall(call, 2, 1));
  HostTensor at;
  GE_TRY(TensorIn(call, 0, &at));
  GE_TRY(CheckIndexType(at, "positions"));
  std::vector<const std::string*> all;
  for (size_t i = 1; i < call.inputs.size(); ++i) {
    const Object* t;
    GE_TRY(StringsIn(call, i, &t));
    for (const std::string& s : t->strings) all.push_back(&s);
  }
  std::vector<std::string> y(Count(at.dims));
  for (size_t i = 0; i < y.size(); ++i) {
    int64_t k = IntAt(at, static_cast<int64_t>(i));
    GE_TRY(WrapIndex(&k, static_cast<int64_t>(all.size()), "position"));
    y[i] = *all[k];
  }
  return GiveStrings(call, 0, Shape(at.dims.begin(), at.dims.end()), std::move(y));
}

Status StringRanks(HostCall& call) {
  GE_TRY(CheckCall(call, 1, 1));
  const Object* x;
  GE_TRY(StringsIn(call, 0, &x));
  std::vector<std::string> sorted = x->strings;
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  void* y;
  GE_TRY(Claim(call, 0, x->dims, &y));
  for (size_t i = 0; y && i < x->strings.size(); ++i)
    static_cast<int64_t*>(y)[i] =
        std::lower_bound(sorted.begin(), sorted.end(), x->strings[i]) - sorted.begin();
  return {};
}

template <class T>
std::string Number(T v) {
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, v).ptr;
  return {text, end};
}

std::string TextOf(const HostTensor& x, int64_t i) {
  const DType t = TypeOf(x);
  if (t == DType::kU64) return Number(LoadElement<uint64_t>(t, x.data, i));
  if (!IsFloat(t)) return Number(IntAt(x, i));
  const double v = LoadElement<double>(t, x.data, i);
  if (std::isnan(v)) return "NaN";
  if (std::isinf(v)) return v > 0 ? "INF" : "-INF";
  return t == DType::kF64 ? Number(v) : Number(static_cast<float>(v));
}

Status ToStrings(HostCall& call) {
  HostTensor x;
  GE_TRY(TensorIn(call, 0, &x));
  std::vector<std::string> y(Count(x.dims));
  for (size_t i = 0; i < y.size(); ++i) y[i] = TextOf(x, static_cast<int64_t>(i));
  return GiveStrings(call, 0, Shape(x.dims.begin(), x.dims.end()), std::move(y));
}

// A decimal number, or a name of what is not finite, in any case.
bool ReadNumber(std::string_view text, double* v) {
  if (text.starts_with('+')) text.remove_prefix(1);
  std::string upper(text);
  for (char& c : upper)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 32);
  if (upper == "NAN" || upper == "INF" || upper == "-INF") {
    *v = upper == "NAN" ? std::numeric_limits<double>::quiet_NaN()
                        : std::numeric_limits<double>::infinity() * (upper == "INF" ? 1 : -1);
    return true;
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *v);
  return error == std::errc() && end == text.data() + text.size();
}

Status FromString(DType t, const std::string& text, void* y, int64_t i) {
  int64_t whole = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), whole);
  double v = 0;
  if (!IsFloat(t) && error == std::errc() && end == text.data() + text.size()) {
    StoreElement<int64_t>(t, y, i, whole);
  } else if (ReadNumber(text, &v)) {
    StoreElement<double>(t, y, i, v);
  } else {
    return Invalid("'" + text + "' is no number");
  }
  return {};
}

Status CastString(HostCall& call) {
  GE_TRY(CheckCall(call, 1, 1));
  if (!call.outputs.empty() && static_cast<DType>(call.outputs[0].dtype) == DType::kString)
    return ToStrings(call);
  const Object* x;
  GE_TRY(StringsIn(call, 0, &x));
  void* y;
  GE_TRY(Claim(call, 0, x->dims, &y));
  for (size_t i = 0; y && i < x->strings.size(); ++i)
    GE_TRY(FromString(static_cast<DType>(call.outputs[0].dtype), x->strings[i], y,
                      static_cast<int64_t>(i)));
  return {};
}

[[maybe_unused]] const bool kRegistered = RegisterHost("StringsAt", StringsAt) &
                                          RegisterHost("StringRanks", StringRanks) &
                                          RegisterHost("CastString", CastString);

}  // namespace
}  // namespace ge::rt
