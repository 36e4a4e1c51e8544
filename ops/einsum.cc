// Einsum: y[out labels] = sum over the other labels of the product of the operands at their labels.
// A product of two operands whose labels are each batch, row, column or inner becomes Transpose,
// Reshape, MatMul; everything else is one reduction.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ir/expand.h"
#include "ops/shapes.h"

namespace ge {
namespace {

using tile::Val;

// A label is a letter, or -1, -2, ... for the axes of an ellipsis counted from its last.
using Labels = std::vector<int>;

struct Equation {
  std::vector<Labels> terms;
  Labels out, summed;
  std::map<int, Expr> dims;
};

// The labels of a term of an operand of rank `rank` (-1: of the output, whose ellipsis has `dots`).
Result<Labels> ParseTerm(std::string_view text, int rank, int& dots) {
  size_t at = text.find("...");
  int letters = static_cast<int>(text.size()) - (at == text.npos ? 0 : 3);
  int ellipsis = rank < 0 ? dots : rank - letters;
  if (ellipsis < 0 || (rank >= 0 && at == text.npos && ellipsis != 0)) {
    return Invalid(fmt::format("term \"{}\" does not fit an operand of rank {}", text, rank));
  }
  if (rank >= 0 && at != text.npos) dots = std::max(dots, ellipsis);
  Labels labels;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i == at) {
      for (int k = ellipsis; k > 0; --k) labels.push_back(-k);
      i += 2;
    } else if (std::isalpha(static_cast<unsigned char>(text[i]))) {
      labels.push_back(text[i]);
    } else {
      return Invalid(fmt::format("term \"{}\" has a '{}'", text, text[i]));
    }
  }
  return labels;
}

Labels ImplicitOutput(const std::vector<Labels>& terms, int dots) {
  std::map<int, int> count;
  for (const Labels& t : terms) {
    for (int label : t) ++count[label];
  }
  Labels out;
  for (int k = dots; k > 0; --k) out.push_back(-k);
  for (auto [label, times] : count) {
    if (label > 0 && times == 1) out.push_back(label);
  }
  return out;
}

Result<Equation> Parse(std::string text, const std::vector<Dims>& operands) {
  std::erase(text, ' ');
  size_t arrow = text.find("->");
  std::string left = text.substr(0, arrow);
  Equation eq;
  int dots = 0;
  for (size_t i = 0, from = 0; from <= left.size(); ++i) {
    size_t comma = std::min(left.find(',', from), left.size());
    if (i >= operands.size()) return Invalid("equation has more terms than operands: " + text);
    auto term = ParseTerm(std::string_view(left).substr(from, comma - from),
                          static_cast<int>(operands[i].size()), dots);
    if (!term.ok()) return term.status();
    eq.terms.push_back(*term);
    from = comma + 1;
  }
  if (eq.terms.size() != operands.size()) {
    return Invalid(fmt::format("equation \"{}\" has {} terms for {} operands", text,
                               eq.terms.size(), operands.size()));
  }
  if (arrow == text.npos) {
    eq.out = ImplicitOutput(eq.terms, dots);
  } else {
    GE_ASSIGN(eq.out, ParseTerm(std::string_view(text).substr(arrow + 2), -1, dots));
  }
  for (size_t i = 0; i < operands.size(); ++i) {
    for (size_t d = 0; d < operands[i].size(); ++d) {
      auto [it, added] = eq.dims.emplace(eq.terms[i][d], operands[i][d]);
      if (!added && it->second.IsConst(1)) it->second = operands[i][d];
    }
  }
  for (int label : eq.out) {
    if (!eq.dims.contains(label)) return Invalid("output label without operand in " + text);
  }
  for (auto [label, dim] : eq.dims) {
    if (std::find(eq.out.begin(), eq.out.end(), label) == eq.out.end()) eq.summed.push_back(label);
  }
  return eq;
}

Dims DimsOf(const Equation& eq, const Labels& labels) {
  Dims dims;
  for (int label : labels) dims.push_back(eq.dims.at(label));
  return dims;
}

Status InferEinsum(InferContext& ctx) {
  GE_TRY(CheckSameType(ctx, 0, ctx.NumInputs()));
  std::vector<Dims> operands;
  for (int i = 0; i < ctx.NumInputs(); ++i) operands.push_back(ctx.In(i).dims);
  GE_ASSIGN(Equation eq, Parse(ctx.Str("equation", ""), operands));
  for (size_t i = 0; i < operands.size(); ++i) {
    for (size_t d = 0; d < operands[i].size(); ++d) {
      if (operands[i][d].IsConst(1)) continue;
      GE_ASSIGN([[maybe_unused]] Expr same,
                SameDim(ctx, operands[i][d], eq.dims.at(eq.terms[i][d]), "dims of one label"));
    }
  }
  ctx.Out(0, ctx.In(0).dtype, DimsOf(eq, eq.out));
  return {};
}

void LowerEinsum(Lowering& l) {
  std::vector<Dims> operands;
  for (size_t i = 0; i < l.node.inputs.size(); ++i)
    operands.push_back(l.In(static_cast<int>(i)).dims);
  auto parsed = Parse(l.Str("equation", ""), operands);
  const Equation& eq = *parsed;
  l.ForEach(l.Out(0).dims, false, [&](const Index& o) {
    std::map<int, Expr> at;
    for (size_t i = 0; i < o.size(); ++i) at[eq.out[i]] = o[i];
    Val y =
        l.b.Reduce(tile::ReduceOp::kSum, DimsOf(eq, eq.summed), [&](const std::vector<Expr>& k) {
          for (size_t i = 0; i < k.size(); ++i) at[eq.summed[i]] = k[i];
          Val product;
          for (size_t i = 0; i < operands.size(); ++i) {
            Index idx;
            for (size_t d = 0; d < operands[i].size(); ++d) {
              idx.push_back(operands[i][d].IsConst(1) ? Expr(0) : at.at(eq.terms[i][d]));
            }
            Val x = l.Load(static_cast<int>(i), idx);
            product = product.valid() ? product * x : x;
          }
          return product;
        });
    l.Yield(0, o, y);
  });
}

// --- as MatMul ----------------------------------------------------------------------------------

bool Has(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

Labels operator+(Labels a, const Labels& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// v, whose axes are `from`, with its axes in the order `to`.
ValueId Arrange(ExpandBuilder& e, ValueId v, const Labels& from, const Labels& to) {
  if (from == to) return v;
  std::vector<int64_t> perm;
  for (int label : to) perm.push_back(std::find(from.begin(), from.end(), label) - from.begin());
  return e.Op("Transpose", {v}, {{"perm", perm}});
}

bool ExpandEinsum(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  if (e.NumInputs() != 2) return false;
  auto parsed = Parse(e.Str("equation", ""), {e.Dims(e.In(0)), e.Dims(e.In(1))});
  if (!parsed.ok()) return false;
  const Equation& eq = *parsed;
  Labels batch, rows, columns, inner;
  for (int operand : {0, 1}) {
    const Labels& term = eq.terms[operand];
    for (size_t d = 0; d < term.size(); ++d) {
      bool repeated = std::count(term.begin(), term.end(), term[d]) > 1;
      bool stretched = !(e.Dims(e.In(operand))[d] == eq.dims.at(term[d]));
      bool alone = !Has(eq.terms[1 - operand], term[d]);
      if (repeated || stretched || (alone && !Has(eq.out, term[d]))) return false;
      if (alone) {
        (operand == 0 ? rows : columns).push_back(term[d]);
      } else if (operand == 0) {
        (Has(eq.out, term[d]) ? batch : inner).push_back(term[d]);
      }
    }
  }
  const Labels natural = batch + rows + columns;
  if (inner.empty()) {  // nothing is summed
    auto spread = [&](ValueId v, const Labels& from, const Labels& own) {
      Dims dims;
      for (int label : natural)
        dims.push_back(Has(batch, label) || Has(own, label) ? eq.dims.at(label) : Expr(1));
      return e.Reshape(Arrange(e, v, from, batch + own), dims);
    };
    const ValueId y =
        e.Op("Mul", {spread(e.In(0), eq.terms[0], rows), spread(e.In(1), eq.terms[1], columns)});
    return e.Done({Arrange(e, y, natural, eq.out)});
  }
  Dims outer = DimsOf(eq, batch);
  auto matrix = [&](Expr r, Expr c) {
    Dims dims = outer;
    dims.push_back(r);
    dims.push_back(c);
    return dims;
  };
  Expr m = Product(DimsOf(eq, rows)), k = Product(DimsOf(eq, inner)),
       c = Product(DimsOf(eq, columns));
  ValueId a = e.Reshape(Arrange(e, e.In(0), eq.terms[0], batch + rows + inner), matrix(m, k));
  ValueId b = e.Reshape(Arrange(e, e.In(1), eq.terms[1], batch + inner + columns), matrix(k, c));
  ValueId y = e.Reshape(e.Op("MatMul", {a, b}), DimsOf(eq, natural));
  return e.Done({Arrange(e, y, natural, eq.out)});
}

const OpDef& kEinsum = Register(
    {.name = "Einsum",
     .min_inputs = 1,
     .max_inputs = -1,
     .infer = InferEinsum,
     .lower = LowerEinsum,
     .expand = ExpandEinsum,
     .halves = Halves::kWiden,
     .samples = {"(f32[2,3,4], f32[2,4,5]) {equation=\"bij,bjk->bik\"}",
                 "(f32[3,3]) {equation=\"ii->i\"}", "(f32[2,3], f32[2,3]) {equation=\"ij,ij\"}"}});

}  // namespace
}  // namespace ge
