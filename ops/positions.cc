// Indices from data, always in range.
#include "ops/positions.h"

#include "ops/shapes.h"

namespace ge {
namespace {

using tile::Val;

// The fact of a constant position, if there is one.
std::optional<Expr> KnownPosition(Lowering& l, int input, const Index& idx, Expr extent) {
  const auto* elems = l.Elems(input);
  const Expr flat = Linear(idx, l.In(input).dims);
  if (!elems || !flat.IsConst() || flat.value() < 0 ||
      flat.value() >= static_cast<int64_t>(elems->size()))
    return {};
  const Expr e = (*elems)[flat.value()];
  if (!e.IsConst() || !extent.IsConst()) return {};
  const int64_t n = extent.value(), i = e.value() < 0 ? e.value() + n : e.value();
  if (i < 0 || i >= n) return {};
  return Expr(i);
}

}  // namespace

Expr BindPosition(Lowering& l, Val position, Expr extent) {
  auto& b = l.b;
  const Val zero = b.ConstInt(DType::kI64, 0);
  const Val clamped = Max(Min(position, b.Index(extent - 1)), zero);
  const Interval range = Bounds(extent);
  return b.LetIndex(clamped, 0,
                    range.hi == INT64_MAX ? INT64_MAX : std::max<int64_t>(range.hi - 1, 0), extent);
}

Expr LoadPosition(Lowering& l, int input, const Index& idx, Expr extent) {
  if (auto known = KnownPosition(l, input, idx, extent)) return *known;
  auto& b = l.b;
  const Val i = b.Let(b.Cast(l.Load(input, idx), DType::kI64));
  const Val from_end = i + b.Index(extent);
  return BindPosition(l, b.Select(Less(i, b.ConstInt(DType::kI64, 0)), from_end, i), extent);
}

}  // namespace ge
