// The rule that finds attention in the way exporters write it.
//
//   MatMul(W, v)  ->  ge.Attend(q, k, v, mask, allowed)
//
// with weights W and scores S of
//   P = MatMul(q, k), times or over a number
//   S = P, or P + m, or P + m + m2, or P where b and else a number, or that + m, or P + m where b
//       and else a number
//   W = Softmax(S), or 0 where that is NaN, or Softmax in f32 of scores in f16 or bf16
// Numbers that q and k are multiplied by become part of the scale, and heads of k and v that are
// repeated (an Expand or Tile of a new axis, then a Reshape) are shared instead.
//
// One kernel then keeps the scores of some rows in cache (lower/cube_attend.cc). Transposed heads
// are the business of region growth.
#include <cmath>

#include "ops/attend.h"
#include "opt/facts.h"
#include "opt/rule.h"

namespace ge {
namespace {

const std::string kProduct = "[MatMul(q, k) | Mul(MatMul(q, k), #c) | Div(MatMul(q, k), #d)]";
const std::string kChosen =
    "[Where(b, " + kProduct + ", #low) | Where(b, #low_if, " + kProduct + ")]";
const std::string kScores = "[" + kProduct + " | Add(" + kProduct + ", m) | Add(Add(" + kProduct +
                            ", m), m2) | " + kChosen + " | Add(" + kChosen +
                            ", m) | Where(b, Add(" + kProduct +
                            ", m), #low) | Where(b, #low_if, Add(" + kProduct + ", m))]";
const std::string kPattern = "MatMul([Softmax(" + kScores + ") | Where(IsNaN(w=Softmax(" + kScores +
                             ")), #zero, w) | Cast(Softmax(Cast(" + kScores +
                             "))) | Cast(Softmax(Add(Cast(" + kProduct + "), m)))], v)";

const Node* Maker(const Match& m, ValueId v, std::string_view op) {
  const NodeId n = v == kNone ? kNone : m.g.value(v).producer;
  return n != kNone && m.g.node(n).op->name == op && m.g.node(n).op->domain.empty() ? &m.g.node(n)
                                                                                    : nullptr;
}

std::optional<double> Number(const Match& m, std::string_view name) {
  return m.values.contains(name) ? OneNumber(m.g, m[name]) : std::nullopt;
}

const std::vector<Expr>& DimsOf(const Match& m, ValueId v) { return m.g.value(v).type.dims; }

// x, if v is x times (or over) a number that can be part of the scale.
ValueId Unscaled(const Match& m, ValueId v, double* scale) {
  for (const char* op : {"Mul", "Div"}) {
    const Node* n = Maker(m, v, op);
    if (n == nullptr) continue;
    const bool times = n->op->name == "Mul";
    for (int side = 0; side < (times ? 2 : 1); ++side) {
      const std::optional<double> number = OneNumber(m.g, n->inputs[1 - side]);
      if (!number || DimsOf(m, n->inputs[side]) != DimsOf(m, v)) continue;
      const double factor = times ? *number : 1 / *number;
      if (!std::isnormal(factor)) continue;
      *scale *= factor;
      return n->inputs[side];
    }
  }
  return v;
}

// x, if v is x with every head (along `axis`) repeated `times` times.
ValueId Unrepeated(const Match& m, ValueId v, int axis, int64_t* times) {
  const Node* joined = Maker(m, v, "Reshape");
  if (joined == nullptr) return v;
  const Node* repeated = Maker(m, joined->inputs[0], "Expand");
  if (repeated == nullptr) repeated = Maker(m, joined->inputs[0], "Tile");
  const Node* apart = repeated == nullptr ? nullptr : Maker(m, repeated->inputs[0], "Unsqueeze");
  if (repeated != nullptr && apart == nullptr) apart = Maker(m, repeated->inputs[0], "Reshape");
  if (apart == nullptr) return v;
  const std::vector<Expr>&x = DimsOf(m, apart->inputs[0]), &all = DimsOf(m, joined->inputs[0]);
  if (x.size() + 1 != all.size() || x.size() != DimsOf(m, v).size()) return v;
  // Heads [.., h, ..] apart as [.., h, 1, ..], repeated [.., h, n, ..], joined [.., h * n, ..].
  std::vector<Expr> one = x, many = x, together = x;
  const Expr n = all[static_cast<size_t>(axis) + 1];
  one.insert(one.begin() + axis + 1, 1);
  many.insert(many.begin() + axis + 1, n);
  together[static_cast<size_t>(axis)] = x[static_cast<size_t>(axis)] * n;
  if (!n.IsConst() || n.value() < 2 || DimsOf(m, repeated->inputs[0]) != one || all != many ||
      DimsOf(m, v) != together)
    return v;
  *times = n.value();
  return apart->inputs[0];
}

// What a match comes to.
struct Heads {
  ValueId q, k, v;
  std::vector<int64_t> perm = {};  // of k, if it is to be transposed anew
  double scale = 1;
  int64_t shared = 1;
};

// With what stands before a Transpose of k, if that is more than nothing.
Heads BeforeTranspose(const Match& m, const Heads& h, const Node& turn) {
  Heads found = h;
  const std::vector<int64_t> perm = AttrOr<std::vector<int64_t>>(turn, "perm", {});
  const size_t rank = DimsOf(m, h.q).size();
  if (perm.size() != rank || rank < 3) return h;
  int64_t of_keys = 1, of_values = 1;
  found.k = Unscaled(m, turn.inputs[0], &found.scale);
  const ValueId keys = Unrepeated(m, found.k, static_cast<int>(perm[rank - 3]), &of_keys);
  const ValueId values = Unrepeated(m, h.v, static_cast<int>(rank) - 3, &of_values);
  if (of_keys > 1 && of_keys == of_values) found.k = keys, found.v = values, found.shared = of_keys;
  if (found.k == turn.inputs[0]) return h;
  found.perm = perm;
  return found;
}

Heads HeadsOf(const Match& m) {
  Heads h{m["q"], m["k"], m["v"]};
  h.q = Unscaled(m, h.q, &h.scale);
  h.k = Unscaled(m, h.k, &h.scale);
  if (const Node* turn = Maker(m, h.k, "Transpose")) return BeforeTranspose(m, h, *turn);
  const int axis = static_cast<int>(DimsOf(m, h.q).size()) - 3;
  if (axis < 0) return h;
  int64_t of_keys = 1, of_values = 1;
  const ValueId keys = Unrepeated(m, h.k, axis, &of_keys);
  const ValueId values = Unrepeated(m, h.v, axis, &of_values);
  if (of_keys > 1 && of_keys == of_values) h.k = keys, h.v = values, h.shared = of_keys;
  return h;
}

TensorType KeysOf(const Match& m, const Heads& h) {
  TensorType t = m.g.value(h.k).type;
  for (size_t i = 0; i < h.perm.size(); ++i)
    t.dims[i] = DimsOf(m, h.k)[static_cast<size_t>(h.perm[i])];
  return t;
}

std::string CastsAreWider(const Match& m) {
  for (size_t i = 0; i < m.nodes.size(); ++i) {
    const Node& n = m.node(i);
    if (n.op->name != "Softmax") continue;
    const DType t = m.g.value(n.outputs[0]).type.dtype;
    if (t != m.type("q").dtype && t != DType::kF32) return "the softmax is of another type";
  }
  return "";
}

std::string IsAttention(const Match& m) {
  const Heads h = HeadsOf(m);
  const TensorType &q = m.g.value(h.q).type, &v = m.g.value(h.v).type;
  if (std::string why = AgainstAttend(q, KeysOf(m, h), v, h.shared); !why.empty()) return why;
  for (const char* name : {"c", "d", "low", "low_if", "zero"})
    if (m.values.contains(name) && !Number(m, name)) return "more than one number";
  if (Number(m, "zero").value_or(0) != 0) return "NaN becomes another number";
  if (Number(m, "d").value_or(1) == 0) return "over zero";
  // The last product has checked that there are as many weights as keys, if only at run time.
  if (DimsOf(m, m["k"]).back() != v.dims[v.dims.size() - 2]) return "the numbers of keys differ";
  const std::vector<Expr> scores(q.dims.begin(), q.dims.end() - 1);
  for (size_t i = 0; i < m.nodes.size(); ++i) {
    const Node& n = m.node(i);
    const TensorType& in = m.g.value(n.inputs[0]).type;
    if (n.op->name != "Softmax") continue;
    const int64_t axis = AttrOr<int64_t>(n, "axis", -1);
    if (axis != -1 && axis != in.rank() - 1) return "the softmax is not over the keys";
    if (std::vector<Expr>(in.dims.begin(), in.dims.end() - 1) != scores)
      return "the mask is larger than the scores";
  }
  return CastsAreWider(m);
}

// Is the mask added before the scores are chosen?
bool AddsFirst(const Match& m) {
  bool adds = false;
  for (size_t i = 0; i < m.nodes.size(); ++i) {
    if (m.node(i).op->name == "Add") adds = true;
    if (m.node(i).op->name == "Where" && m.node(i).inputs[0] == m["b"]) return !adds;
  }
  return false;
}

ValueId Attend(const Match& m, Patch& p) {
  Heads h = HeadsOf(m);
  h.scale *= Number(m, "c").value_or(1) / Number(m, "d").value_or(1);
  if (!h.perm.empty()) h.k = p.Add("Transpose", {h.k}, {{"perm", h.perm}});
  ValueId mask = m.values.contains("m") ? m["m"] : kNone;
  if (m.values.contains("m2")) mask = p.Add("Add", {mask, m["m2"]});
  Attrs attrs = {{"scale", static_cast<float>(h.scale)}};
  if (h.shared > 1) attrs["shared"] = h.shared;
  if (m.values.contains("zero")) attrs["empty"] = int64_t{1};
  std::vector<ValueId> inputs = {h.q, h.k, h.v};
  if (m.values.contains("b")) {
    const bool hides = m.values.contains("low_if");
    attrs["low"] = static_cast<float>(*Number(m, hides ? "low_if" : "low"));
    if (hides) attrs["hides"] = int64_t{1};
    if (mask != kNone && AddsFirst(m)) {
      const ValueId zero = p.Const(FromNumbers(m.type("m").dtype, {}, {0.0}));
      mask = p.Add("Where", {m["b"], hides ? zero : mask, hides ? mask : zero});
    }
    inputs.push_back(mask);
    inputs.push_back(m["b"]);
  } else if (mask != kNone) {
    inputs.push_back(mask);
  }
  return p.Add("ge.Attend", inputs, attrs);
}

// --- Samples

std::string_view Text(const std::string& inputs, const SampleLines& nodes) {
  SampleLines lines = {{"c", "const f32[] {0.5}"},    {"d", "const f32[1] {2.0}"},
                       {"z", "const f32[] {0.0}"},    {"low", "const f32[] {-3.0}"},
                       {"inf", "const f32[] {-inf}"}, {"two", "const f32[9] {1,1,1,1,1,1,1,1,2}"}};
  lines.insert(lines.end(), nodes.begin(), nodes.end());
  return SampleOf(inputs, lines);
}

// Scores s of q and k, `between`, the weights w of what comes last, `after`, and the last of that
// times v. Nodes without a type have that of the scores.
std::string_view Sample(const SampleLines& between, const SampleLines& after = {},
                        const std::string& softmax = "axis=-1", const std::string& columns = "16") {
  const std::string t = ": f32[2,9,9]";
  SampleLines nodes = {{"s" + t, "MatMul(%q, %k)"}};
  auto name = [&] { return "%" + nodes.back().first.substr(0, nodes.back().first.find(':')); };
  auto append = [&](const SampleLines& lines) {
    for (const auto& [n, node] : lines)
      nodes.emplace_back(n.find(':') == std::string::npos ? n + t : n, node);
  };
  append(between);
  nodes.emplace_back("w" + t, "Softmax(" + name() + ") {" + softmax + "}");
  append(after);
  nodes.emplace_back("y: f32[2,9," + columns + "]", "MatMul(" + name() + ", %v)");
  return Text("%q: f32[2,9,4], %k: f32[2,4,9], %v: f32[2,9," + columns +
                  "], %m: f32[9,9], %a: f32[2,1,9], %b: bool[2,1,9]",
              nodes);
}

// Keys and values of two heads, repeated three times by `op` after a new axis at `axis`, and keys
// that become %kt by `turn`.
std::string_view Repeated(int axis, const std::string& op, const SampleLines& turn) {
  const std::string heads[] = {"f32[1,1,2,7,", "f32[1,2,1,7,"},
                    many[] = {"f32[1,3,2,7,", "f32[1,2,3,7,"};
  const std::string factors[] = {"{1, 3, 1, 1, 1}", "{1, 1, 3, 1, 1}"};
  SampleLines nodes = {{"axis", "const i64[1] {" + std::to_string(axis) + "}"}};
  for (const auto& [x, size] : {std::pair{"k", "4"}, std::pair{"v", "16"}}) {
    const std::string name = x, end = std::string(size) + "]";
    nodes.emplace_back(name + "n", op == "Tile"
                                       ? "const i64[5] " + factors[axis - 1]
                                       : "const i64[5] {1, " +
                                             std::string(axis == 1 ? "3, 2, 7, " : "2, 3, 7, ") +
                                             size + "}");
    nodes.emplace_back(name + "s", "const i64[4] {1, 6, 7, " + std::string(size) + "}");
    nodes.emplace_back(name + "1: " + heads[axis - 1] + end, "Unsqueeze(%" + name + ", %axis)");
    nodes.emplace_back(name + "2: " + many[axis - 1] + end,
                       op + "(%" + name + "1, %" + name + "n)");
    nodes.emplace_back(name + "3: f32[1,6,7," + end, "Reshape(%" + name + "2, %" + name + "s)");
  }
  nodes.insert(nodes.end(), turn.begin(), turn.end());
  nodes.insert(nodes.end(), {{"s: f32[1,6,5,7]", "MatMul(%q, %kt)"},
                             {"w: f32[1,6,5,7]", "Softmax(%s)"},
                             {"y: f32[1,6,5,16]", "MatMul(%w, %v3)"}});
  return Text("%q: f32[1,6,5,4], %k: f32[1,2,7,4], %v: f32[1,2,7,16]", nodes);
}

const SampleLines kTurn = {{"kt: f32[1,6,4,7]", "Transpose(%k3) {perm=[0,1,3,2]}"}};
const SampleLines kTurnScaled = {{"t: f32[1,6,4,7]", "Transpose(%k3) {perm=[0,1,3,2]}"},
                                 {"kt: f32[1,6,4,7]", "Mul(%t, %c)"}};

// Heads inside the last axis of k; k and q each times a number.
std::string_view BothScaled() {
  return Text("%q: f32[2,9,4], %k: f32[2,9,4], %v: f32[2,9,16]",
              {{"p: f32[2,9,4]", "Mul(%q, %c)"},
               {"r: f32[2,9,4]", "Div(%k, %d)"},
               {"t: f32[2,4,9]", "Transpose(%r) {perm=[0,2,1]}"},
               {"s: f32[2,9,9]", "MatMul(%p, %t)"},
               {"w: f32[2,9,9]", "Softmax(%s)"},
               {"y: f32[2,9,16]", "MatMul(%w, %v)"}});
}

// f16 with a softmax in f32; the mask is added before or after the cast.
std::string_view Half(const std::string& mask, const SampleLines& add) {
  SampleLines nodes = {{"h", "const f16[] hex \"002c\""},
                       {"s: f16[2,9,9]", "MatMul(%q, %k)"},
                       {"a: f16[2,9,9]", "Mul(%s, %h)"}};
  nodes.insert(nodes.end(), add.begin(), add.end());
  nodes.insert(nodes.end(), {{"w: f32[2,9,9]", "Softmax(%u)"},
                             {"x: f16[2,9,9]", "Cast(%w) {to=10}"},
                             {"y: f16[2,9,16]", "MatMul(%x, %v)"}});
  return Text("%q: f16[2,9,4], %k: f16[2,4,9], %v: f16[2,9,16], %m: " + mask + "[9,9]", nodes);
}

const std::string kBool = ": bool[2,9,9]";

[[maybe_unused]] const bool kRule = RegisterRules({
    {.name = "attention",
     .pattern = kPattern,
     .guard = IsAttention,
     .replace = Attend,
     .exact = false,
     .joins_steps = true,
     .samples =
         {Sample({}),
          Sample({{"t", "Add(%m, %s)"}}),
          Sample({{"t", "Mul(%s, %c)"}}),
          Sample({{"t", "Div(%s, %d)"}}, {}, "axis=2"),
          Sample({{"t", "Mul(%c, %s)"}, {"u", "Add(%t, %m)"}}),
          Sample({{"t", "Div(%s, %d)"}, {"u", "Add(%t, %m)"}}),
          Sample({{"t", "Add(%s, %m)"}, {"u", "Add(%a, %t)"}}),
          Sample({{"t", "Where(%b, %s, %low)"}}),
          Sample({{"t", "Where(%b, %inf, %s)"}}),
          Sample({{"t", "Mul(%s, %c)"}, {"u", "Where(%b, %t, %low)"}, {"x", "Add(%u, %m)"}}),
          Sample({{"u", "Where(%b, %low, %s)"}, {"x", "Add(%m, %u)"}}),
          Sample({{"u", "Add(%m, %s)"}, {"x", "Where(%b, %u, %low)"}}),
          Sample({{"u", "Add(%m, %s)"}, {"x", "Where(%b, %low, %u)"}}),
          Sample({{"t", "Where(%b, %s, %inf)"}},
                 {{"n" + kBool, "IsNaN(%w)"}, {"x", "Where(%n, %z, %w)"}}),
          BothScaled(),
          Repeated(2, "Expand", kTurn),
          Repeated(2, "Tile", kTurnScaled),
          Repeated(1, "Expand", kTurn),
          Half("f16", {{"t: f16[2,9,9]", "Add(%a, %m)"}, {"u: f32[2,9,9]", "Cast(%t) {to=1}"}}),
          Half("f32", {{"t: f32[2,9,9]", "Cast(%a) {to=1}"}, {"u: f32[2,9,9]", "Add(%t, %m)"}})},
     .near_misses = {Sample({}, {}, "axis=1"), Sample({}, {}, "axis=-1", "17"),
                     Sample({{"t", "Mul(%s, %two)"}}), Sample({{"t", "Where(%b, %s, %two)"}}),
                     Sample({}, {{"n" + kBool, "IsNaN(%w)"}, {"x", "Where(%n, %c, %w)"}}),
                     Sample({}, {{"x", "Mul(%w, %m)"}}), Sample({{"t", "Sub(%m, %s)"}})}},
});

}  // namespace
}  // namespace ge
