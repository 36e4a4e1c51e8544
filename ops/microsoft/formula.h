// Formula: arithmetic on values of an expansion, so that formulas read as they are written, and the
// inference that operators with only an expansion share.
#pragma once

#include <string_view>
#include <vector>

#include "ir/expand.h"
#include "ir/opdef.h"

namespace ge::microsoft {

inline constexpr const char* kDomain = "com.microsoft";

struct Formula {
  ExpandBuilder& e;

  ValueId Add(ValueId a, ValueId b) { return e.Op("Add", {a, b}); }
  ValueId Sub(ValueId a, ValueId b) { return e.Op("Sub", {a, b}); }
  ValueId Mul(ValueId a, ValueId b) { return e.Op("Mul", {a, b}); }
  ValueId Div(ValueId a, ValueId b) { return e.Op("Div", {a, b}); }
  ValueId Scale(ValueId a, double k) { return Mul(a, e.ScalarLike(a, k)); }
  ValueId AddIf(ValueId a, ValueId b) { return b == kNone ? a : Add(a, b); }
  ValueId Transpose(ValueId a, std::vector<int64_t> perm) {
    return e.Op("Transpose", {a}, {{"perm", std::move(perm)}});
  }
  ValueId Unsqueeze(ValueId a, std::vector<int64_t> axes) {
    return e.Op("Unsqueeze", {a, e.Ints(axes)});
  }
  // a[..., from:to, ...] along an axis.
  ValueId Slice(ValueId a, int64_t axis, Expr from, Expr to) {
    return e.Op("Slice", {a, e.Exprs({from}), e.Exprs({to}), e.Ints({axis})});
  }
  ValueId Concat(std::vector<ValueId> parts, int64_t axis) {
    return e.Op("Concat", std::move(parts), {{"axis", axis}});
  }
  // [B, S, N*H] to [B, N, S, H].
  ValueId Heads(ValueId v, int64_t heads) {
    const auto d = e.Dims(v);
    if (d.size() < 3) return kNone;
    return Transpose(e.Reshape(v, {d[0], d[1], heads, FloorDiv(d[2], heads)}), {0, 2, 1, 3});
  }
  // 0, 1, ... n - 1 as i64.
  ValueId Range(Expr n) {
    const auto scalar = [&](Expr x) {
      return x.IsConst() ? e.Scalar(DType::kI64, static_cast<double>(x.value()))
                         : e.Reshape(e.Exprs({x}), {});
    };
    return e.Op("Range", {scalar(0), scalar(n), scalar(1)});
  }
};

// The last axis is the one that a transpose of the two last exchanges.
inline std::vector<int64_t> SwapLast(int rank) {
  std::vector<int64_t> perm;
  for (int i = 0; i < rank; ++i) perm.push_back(i);
  if (rank >= 2) std::swap(perm[rank - 1], perm[rank - 2]);
  return perm;
}

// Every output gets the type of input `I`; the expansion, which follows at once, says the true
// shape. For operators whose outputs all have that dtype and rank.
template <int I>
Status InferLikeInput(InferContext& c) {
  if (!c.Has(I)) return c.Fault("input " + std::to_string(I) + " is missing");
  for (int o = 0; o < c.NumOutputs(); ++o) c.Out(o, c.In(I).dtype, c.In(I).dims);
  return {};
}

// outputs[o] where it is wanted.
inline bool Finish(ExpandBuilder& e, std::vector<ValueId> outputs) {
  outputs.resize(e.NumOutputs(), kNone);
  for (int o = 0; o < e.NumOutputs(); ++o)
    if (!e.Wants(o)) outputs[o] = kNone;
  return e.Done(outputs);
}

}  // namespace ge::microsoft
