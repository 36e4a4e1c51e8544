// Bytes that a kernel makes of sums: the start of the sums, and stores that saturate.
#include "emit/printer.h"

namespace ge::emit {

using tile::BrGemm;
using tile::ExprId;
using tile::Op;
using tile::Stmt;
using tile::ValueNode;

namespace {

bool IsRoot(const std::vector<Stmt>& body, ExprId id) {
  for (const Stmt& s : body)
    if (s.value == id || IsRoot(s.body, id) || IsRoot(s.orelse, id)) return true;
  return false;
}

// The one node of `nodes` that uses `id`; -1 if there are several, or a statement does.
ExprId OnlyUser(const tile::Kernel& k, const std::vector<Stmt>& body,
                const std::unordered_set<ExprId>& nodes, ExprId id) {
  if (IsRoot(body, id)) return -1;
  ExprId user = -1;
  for (ExprId n : nodes) {
    const ValueNode& v = k.values[n];
    if (v.a != id && v.b != id && v.c != id) continue;
    if (user >= 0) return -1;
    user = n;
  }
  return user;
}

}  // namespace

const std::optional<Saturated>& KernelPrinter::SaturatedOf(ExprId narrow) {
  auto it = saturated_.find(narrow);
  if (it == saturated_.end()) it = saturated_.emplace(narrow, AsSaturated(kernel_, narrow)).first;
  return it->second;
}

// A store of bytes whose limits are those of the conversion.
bool KernelPrinter::PrintSaturatedStore(const Stmt& s) {
  const DType type = kernel_.buffers[s.buffer].dtype;
  if (!vector_ || kernel_.values[s.value].op != Op::kNarrow ||
      kernel_.values[s.value].storage != type || !Varying(s.index) || LaneStride(s.index) != 1)
    return false;
  const std::optional<Saturated>& form = SaturatedOf(s.value);
  if (!form) return false;
  std::string x;
  if (form->p >= 0) {
    const CValue p = Value(form->p), q = Value(form->q);
    if (!p.varying || !q.varying) return false;
    x = fmt::format("v_fma({}, v_bc_f32({:a}f), {} * v_bc_f32({:a}f))", p.text, form->a, q.text,
                    form->b);
  } else {
    const CValue v = Value(form->x);
    if (!v.varying) return false;
    x = form->reciprocal == 1 && form->rest == 0
            ? v.text
            : PrintQuotient(v.text, form->reciprocal, form->rest);
  }
  const std::string zero = form->zero == 0 ? "" : fmt::format(" + v_bc_i32({})", form->zero);
  const bool tail = !vector_->count.empty();
  Line("v_st1{}(b{} + {}, v_sat_{}(v_rint_i32({}){}){});", tail ? "n" : "", s.buffer,
       Index(s.index), ge::Name(type), x, zero, tail ? ", " + vector_->count : "");
  return true;
}

// Where an integer sum is used only to have constants of its column added, it starts with them:
// {acc}S0, {acc}S1, ... Sets started_.
void KernelPrinter::PrintStarts(const Stmt& s, const std::string& acc) {
  const BrGemm& g = s.gemm;
  started_ = -1;
  if (GemmType(g) != DType::kI32 || !g.n_valid.IsConst(g.n) || g.n % lanes_ != 0 ||
      !OneFlow(g.col, s.body))
    return;
  std::unordered_set<ExprId> nodes;
  CollectNodes(kernel_, s.body, nodes);
  ExprId at = -1;
  for (ExprId n : nodes)
    if (kernel_.values[n].op == Op::kVar && kernel_.values[n].var == g.acc) at = n;
  std::vector<ExprId> terms;
  for (ExprId user; at >= 0; at = user) {
    user = OnlyUser(kernel_, s.body, nodes, at);
    if (user < 0 || kernel_.values[user].op != Op::kAdd) break;
    const ValueNode& add = kernel_.values[user];
    const ExprId term = add.a == at ? add.b : add.a;
    const ValueNode& load = kernel_.values[term];
    if (term == at || load.op != Op::kLoad || load.type != DType::kI32 ||
        kernel_.buffers[load.buffer].written || !kernel_.buffers[load.buffer].is_arg ||
        DependsOn(load.index, g.row))
      break;
    terms.push_back(term);
    started_ = user;
  }
  if (terms.empty()) return;
  started_acc_ = g.acc;
  for (int v = 0; v < GemmVectors(g); ++v) {
    Line("vi32 {}S{};", acc, v);
    OpenCell(g, v, "");
    memo_.clear();
    std::string sum;
    for (ExprId term : terms)
      sum += (sum.empty() ? "" : " + ") + As(Value(term), DType::kI32, true);
    Line("{}S{} = {};", acc, v, sum);
    CloseCell();
  }
}

}  // namespace ge::emit
