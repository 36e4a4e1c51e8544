// Shapes and indices of matrix products.
#include "ops/dot.h"

#include <fmt/format.h>

#include "ir/expand.h"
#include "ops/shapes.h"
#include "ops/window.h"

namespace ge {
namespace {

// The batch part of an operand's index: its axes aligned at the right, 0 where it has size 1.
Index BatchIndex(const std::vector<Expr>& dims, size_t out_batch, const Index& o) {
  Index idx;
  if (dims.size() < 2) return idx;
  const size_t own = dims.size() - 2;
  for (size_t i = 0; i < own; ++i)
    idx.push_back(dims[i].IsConst(1) ? Expr(0) : o[out_batch - own + i]);
  return idx;
}

}  // namespace

Result<Expr> BroadcastDim(Expr a, Expr b, std::vector<std::pair<Expr, std::string>>& checks) {
  if (a == b || b.IsConst(1)) return a;
  if (a.IsConst(1)) return b;
  if (a.IsConst() && b.IsConst())
    return Invalid(fmt::format("dims {} and {} do not broadcast", a.value(), b.value()));
  // A constant over 1 wins, also where the other is 1 at run time; two symbols are taken to agree.
  const Expr dim = a.IsConst() ? a : b.IsConst() ? b : a, other = a.IsConst() ? b : a;
  const Expr agree = dim.IsConst() ? Or(Eq(other, dim), Eq(other, 1)) : Eq(a, b);
  checks.emplace_back(agree, fmt::format("dims {} and {} differ", ToString(a), ToString(b)));
  return dim;
}

Expr DotShape::Row(const Index& o) const {
  return has_m ? o[o.size() - 1 - (has_n ? 1 : 0)] : Expr(0);
}
Expr DotShape::Col(const Index& o) const { return has_n ? o.back() : Expr(0); }

Index DotShape::IndexA(const Index& o, Expr k) const {
  const size_t batch = o.size() - (has_m ? 1 : 0) - (has_n ? 1 : 0);
  Index idx = BatchIndex(a, batch, o);
  if (has_m) idx.push_back(Row(o));
  idx.push_back(k);
  return idx;
}

Index DotShape::IndexB(const Index& o, Expr k) const {
  const size_t batch = o.size() - (has_m ? 1 : 0) - (has_n ? 1 : 0);
  Index idx = BatchIndex(b, batch, o);
  idx.push_back(k);
  if (has_n) idx.push_back(Col(o));
  return idx;
}

Result<DotShape> MatMulShape(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  if (a.empty() || b.empty()) return Invalid("MatMul operands must have at least rank 1");
  DotShape s{.a = a, .b = b};
  s.has_m = a.size() > 1;
  s.has_n = b.size() > 1;
  s.k = a.back();
  s.k_b = s.has_n ? b[b.size() - 2] : b[0];
  if (s.k.IsConst() && s.k_b.IsConst() && s.k != s.k_b)
    return Invalid(fmt::format("inner dims differ: {} times {}", ShapeText(a), ShapeText(b)));
  if (!s.k.IsConst() && s.k_b.IsConst()) std::swap(s.k, s.k_b);
  const size_t na = s.has_m ? a.size() - 2 : 0, nb = s.has_n ? b.size() - 2 : 0,
               n = std::max(na, nb);
  for (size_t i = 0; i < n; ++i) {
    const Expr da = i + na >= n ? a[i + na - n] : Expr(1),
               db = i + nb >= n ? b[i + nb - n] : Expr(1);
    GE_ASSIGN(Expr d, BroadcastDim(da, db, s.checks));
    s.out.push_back(d);
  }
  if (s.has_m) s.out.push_back(a[a.size() - 2]);
  if (s.has_n) s.out.push_back(b.back());
  return s;
}

Index BroadcastIndex(const std::vector<Expr>& dims, const std::vector<Expr>& full,
                     const Index& at) {
  Index idx;
  for (size_t d = 0; d < dims.size(); ++d) {
    const size_t axis = at.size() - dims.size() + d;
    if (dims[d].IsConst(1))
      idx.push_back(0);
    else if (dims[d].IsConst() || dims[d] == full[axis])
      idx.push_back(at[axis]);
    else  // whether it is repeated is known only at run time
      idx.push_back(Select(Eq(dims[d], 1), 0, at[axis]));
  }
  return idx;
}

bool ExpandBatchOf(Graph& g, NodeId n, int a, int b) {
  ExpandBuilder e(g, n);
  bool changed = false;
  std::vector<ValueId> operands = e.node().inputs;
  for (const auto& [own, other] : {std::pair(a, b), std::pair(b, a)}) {
    std::vector<Expr> dims = e.Dims(e.In(own));
    const std::vector<Expr> beside = e.Dims(e.In(other));
    bool open = false;
    for (size_t k = 3; k <= dims.size() && k <= beside.size(); ++k) {
      Expr& dim = dims[dims.size() - k];
      const Expr wanted = beside[beside.size() - k];
      if (dim.IsConst() || !wanted.IsConst() || wanted.IsConst(1)) continue;
      dim = wanted;
      open = true;
    }
    if (open) operands[own] = e.Expand(operands[own], dims);
    changed |= open;
  }
  if (!changed) return false;
  Attrs attrs;
  for (const auto& [name, value] : e.node().attrs) attrs[name] = value;
  const std::string domain = e.node().op->domain;
  return e.Done({e.Op((domain.empty() ? "" : domain + ".") + e.node().op->name, std::move(operands),
                      std::move(attrs))});
}

}  // namespace ge
