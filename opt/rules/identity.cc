// Rules that drop what does nothing: identities, casts, transposes, reshapes and their chains.
//
//   Identity(x)                         ->  x
//   Cast(Cast(x: f16) to f32) to f16    ->  x
//   Transpose(Transpose(x))             ->  Transpose(x) with the composed permutation, or x
//   Reshape(Reshape(x))                 ->  Reshape(x)
#include <algorithm>
#include <numeric>

#include "abi/dtype.h"
#include "opt/rule.h"

namespace ge {
namespace {

ValueId TakeX(const Match& m, Patch&) { return m["x"]; }

std::string SameTypeGuard(const Match& m) {
  const TensorType &x = m.type("x"), &y = m.type("");
  if (x.dtype != y.dtype || x.rank() != y.rank()) return "the types differ";
  for (int d = 0; d < x.rank(); ++d) {
    if (!ProvablyEq(x.dims[d], y.dims[d])) return "the shapes are not known to be equal";
  }
  return "";
}

// ---- Casts ----

// Whether every value of `a` is a value of `b`.
bool Holds(DType b, DType a) {
  if (a == b) return true;
  const int wa = BitWidth(a), wb = BitWidth(b);
  if (a == DType::kBool) return IsInteger(b) || IsFloat(b);
  if (IsInteger(a) && IsInteger(b)) {
    if (IsSigned(a)) return IsSigned(b) && wb > wa;
    return wb > wa;
  }
  auto is_wide = [](DType t) { return t == DType::kF32 || t == DType::kF64; };
  if (IsInteger(a) && b == DType::kF32) return wa <= 16;
  if (IsInteger(a) && b == DType::kF64) return wa <= 32;
  if (IsFloat(a) && is_wide(b)) return wa < wb;
  return false;
}

// x: A -> B -> C is A -> C if B holds A and both ways to C round alike.
std::string CastChainGuard(const Match& m) {
  const DType a = m.type("x").dtype, b = m.type("y").dtype, c = m.type("").dtype;
  if (!Holds(b, a)) return "the inner cast rounds";
  if (HasAttr(m.node(0), "saturate") || HasAttr(m.node(0), "round_mode")) {
    if (c != a && !IsFloat(a)) return "the outer cast has a mode";
  }
  const bool all_integers = !IsFloat(a) && !IsFloat(b) && !IsFloat(c);
  const bool all_floats = IsFloat(a) && IsFloat(b) && IsFloat(c);
  if (c != a && !all_integers && !all_floats) return "the kinds of the types differ";
  return "";
}

ValueId CastChain(const Match& m, Patch& p) {
  if (m.type("x").dtype == m.type("").dtype) return m["x"];
  return p.Add("Cast", {m["x"]}, m.node(0).attrs);
}

// ---- Transposes ----

std::vector<int64_t> PermOf(const Node& n, int rank) {
  auto perm = AttrOr<std::vector<int64_t>>(n, "perm", {});
  if (!perm.empty() || HasAttr(n, "perm")) return perm;
  perm.resize(static_cast<size_t>(rank));
  for (int i = 0; i < rank; ++i) perm[static_cast<size_t>(i)] = rank - 1 - i;
  return perm;
}

// Moving axes of extent one does not matter.
bool MovesNothing(const std::vector<int64_t>& perm, const std::vector<Expr>& dims) {
  int64_t last = -1;
  for (int64_t axis : perm) {
    if (dims[static_cast<size_t>(axis)].IsConst(1)) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

std::string TransposeGuard(const Match& m) {
  const TensorType& x = m.type("x");
  const auto perm = PermOf(m.node(0), x.rank());
  if (!std::is_sorted(perm.begin(), perm.end())) return "it moves an axis";
  return "";
}

std::string TransposeAsReshapeGuard(const Match& m) {
  const TensorType& x = m.type("x");
  const auto perm = PermOf(m.node(0), x.rank());
  if (std::is_sorted(perm.begin(), perm.end())) return "it is an identity";
  return MovesNothing(perm, x.dims) ? "" : "it moves an axis";
}

ValueId TransposeAsReshape(const Match& m, Patch& p) {
  const std::vector<Expr> dims = m.type("").dims;
  return p.Add("Reshape", {m["x"], p.Exprs(dims)}, {{"allowzero", int64_t{1}}});
}

ValueId TransposeChain(const Match& m, Patch& p) {
  const int rank = m.type("x").rank();
  const auto outer = PermOf(m.node(0), rank), inner = PermOf(m.node(1), rank);
  std::vector<int64_t> perm;
  for (int64_t axis : outer) perm.push_back(inner[static_cast<size_t>(axis)]);
  return p.Add("Transpose", {m["x"]}, {{"perm", perm}});
}

// ---- Reshapes ----

ValueId ReshapeX(const Match& m, Patch& p) {
  const std::vector<Expr> dims = m.type("").dims;
  return p.Add("Reshape", {m["x"], p.Exprs(dims)}, {{"allowzero", int64_t{1}}});
}

// The dims of the result must be written by the dims of x: a symbol that is born in between stays.
std::string ReshapeGuard(const Match& m) {
  for (const Node* n : {&m.node(0), &m.node(1)}) {
    if (!n->fresh.empty()) return "a size is known at run time only";
  }
  return "";
}

[[maybe_unused]] const bool kRules = RegisterRules({
    {.name = "identity",
     .pattern = "Identity(x)",
     .replace = TakeX,
     .samples = {R"(graph "g" (%x: f32[2,3]) -> (%y) {
  %i: f32[2,3] = Identity(%x) @"i"
  %y: f32[2,3] = Exp(%i) @"y"
})"}},
    {.name = "cast_same",
     .pattern = "Cast(x)",
     .guard = SameTypeGuard,
     .replace = TakeX,
     .samples = {R"(graph "g" (%x: f32[5]) -> (%y) {
  %i: f32[5] = Cast(%x) {to=1} @"i"
  %y: f32[5] = Neg(%i) @"y"
})"}},
    {.name = "cast_chain",
     .pattern = "Cast(+y=Cast(x))",
     .guard = CastChainGuard,
     .replace = CastChain,
     .samples = {R"(graph "g" (%x: f16[5]) -> (%y) {
  %i: f32[5] = Cast(%x) {to=1} @"i"
  %j: f16[5] = Cast(%i) {to=10} @"j"
  %y: f16[5] = Neg(%j) @"y"
})",
                 R"(graph "g" (%x: i8[7]) -> (%y) {
  %i: i32[7] = Cast(%x) {to=6} @"i"
  %j: i64[7] = Cast(%i) {to=7} @"j"
  %y: i64[7] = Neg(%j) @"y"
})",
                 R"(graph "g" (%x: bf16[7]) -> (%y) {
  %i: f32[7] = Cast(%x) {to=1} @"i"
  %j: f16[7] = Cast(%i) {to=10} @"j"
  %y: f16[7] = Neg(%j) @"y"
})"}},
    {.name = "transpose_identity",
     .pattern = "Transpose(x)",
     .guard = TransposeGuard,
     .replace = TakeX,
     .samples = {R"(graph "g" (%x: f32[2,3,4]) -> (%y) {
  %i: f32[2,3,4] = Transpose(%x) {perm=[0, 1, 2]} @"i"
  %y: f32[2,3,4] = Neg(%i) @"y"
})"}},
    {.name = "transpose_as_reshape",
     .pattern = "Transpose(x)",
     .guard = TransposeAsReshapeGuard,
     .replace = TransposeAsReshape,
     .samples = {R"(graph "g" (%x: f32[1,3,4]) -> (%y) {
  %i: f32[3,1,4] = Transpose(%x) {perm=[1, 0, 2]} @"i"
  %y: f32[3,1,4] = Neg(%i) @"y"
})"}},
    {.name = "transpose_chain",
     .pattern = "Transpose(+Transpose(x))",
     .replace = TransposeChain,
     .samples = {R"(graph "g" (%x: f32[2,3,4]) -> (%y) {
  %i: f32[4,2,3] = Transpose(%x) {perm=[2, 0, 1]} @"i"
  %j: f32[3,4,2] = Transpose(%i) {perm=[2, 0, 1]} @"j"
  %y: f32[3,4,2] = Neg(%j) @"y"
})",
                 R"(graph "g" (%x: f32[2,3]) -> (%y) {
  %i: f32[3,2] = Transpose(%x) @"i"
  %j: f32[2,3] = Transpose(%i) @"j"
  %y: f32[2,3] = Neg(%j) @"y"
})"}},
    {.name = "reshape_same",
     .pattern = "Reshape(x, s)",
     .guard = SameTypeGuard,
     .replace = TakeX,
     .samples = {R"(graph "g" (%x: f32[2,3]) -> (%y) {
  %s = const i64[2] {2, -1}
  %i: f32[2,3] = Reshape(%x, %s) @"i"
  %y: f32[2,3] = Neg(%i) @"y"
})"}},
    {.name = "flatten_same",
     .pattern = "Flatten(x)",
     .guard = SameTypeGuard,
     .replace = TakeX,
     .samples = {R"(graph "g" (%x: f32[2,3]) -> (%y) {
  %i: f32[2,3] = Flatten(%x) @"i"
  %y: f32[2,3] = Neg(%i) @"y"
})"}},
    {.name = "expand_same",
     .pattern = "Expand(x, s)",
     .guard = SameTypeGuard,
     .replace = TakeX,
     .samples = {R"(graph "g" (%x: f32[2,3]) -> (%y) {
  %s = const i64[2] {1, 3}
  %i: f32[2,3] = Expand(%x, %s) @"i"
  %y: f32[2,3] = Neg(%i) @"y"
})"}},
    {.name = "reshape_reshape",
     .pattern = "Reshape(+Reshape(x, s), t)",
     .guard = ReshapeGuard,
     .replace = ReshapeX,
     .samples = {R"(graph "g" (%x: f32[2,6]) -> (%y) {
  %s = const i64[2] {3, 4}
  %t = const i64[3] {2, -1, 2}
  %i: f32[3,4] = Reshape(%x, %s) @"i"
  %j: f32[2,3,2] = Reshape(%i, %t) @"j"
  %y: f32[2,3,2] = Neg(%j) @"y"
})"}},
    {.name = "reshape_flatten",
     .pattern = "Reshape(+Flatten(x), t)",
     .guard = ReshapeGuard,
     .replace = ReshapeX,
     .samples = {R"(graph "g" (%x: f32[2,3,2]) -> (%y) {
  %t = const i64[2] {4, 3}
  %i: f32[2,6] = Flatten(%x) @"i"
  %j: f32[4,3] = Reshape(%i, %t) @"j"
  %y: f32[4,3] = Neg(%j) @"y"
})"}},
    {.name = "flatten_reshape",
     .pattern = "Flatten(+Reshape(x, t))",
     .guard = ReshapeGuard,
     .replace = ReshapeX,
     .samples = {R"(graph "g" (%x: f32[12]) -> (%y) {
  %t = const i64[3] {2, 3, 2}
  %i: f32[2,3,2] = Reshape(%x, %t) @"i"
  %j: f32[2,6] = Flatten(%i) @"j"
  %y: f32[2,6] = Neg(%j) @"y"
})"}},
    {.name = "unsqueeze_reshape",
     .pattern = "Unsqueeze(+Reshape(x, t), a)",
     .guard = ReshapeGuard,
     .replace = ReshapeX,
     .samples = {R"(graph "g" (%x: f32[12]) -> (%y) {
  %t = const i64[2] {2, 6}
  %a = const i64[1] {1}
  %i: f32[2,6] = Reshape(%x, %t) @"i"
  %j: f32[2,1,6] = Unsqueeze(%i, %a) @"j"
  %y: f32[2,1,6] = Neg(%j) @"y"
})"}},
    {.name = "squeeze_unsqueeze",
     .pattern = "Squeeze(+Unsqueeze(x, a), b?)",
     .guard = ReshapeGuard,
     .replace = ReshapeX,
     .samples = {R"(graph "g" (%x: f32[3,4]) -> (%y) {
  %a = const i64[1] {1}
  %i: f32[3,1,4] = Unsqueeze(%x, %a) @"i"
  %j: f32[3,4] = Squeeze(%i, %a) @"j"
  %y: f32[3,4] = Neg(%j) @"y"
})"}},
    {.name = "reshape_unsqueeze",
     .pattern = "Reshape(+Unsqueeze(x, a), t)",
     .guard = ReshapeGuard,
     .replace = ReshapeX,
     .samples = {R"(graph "g" (%x: f32[3,4]) -> (%y) {
  %a = const i64[1] {0}
  %t = const i64[2] {2, 6}
  %i: f32[1,3,4] = Unsqueeze(%x, %a) @"i"
  %j: f32[2,6] = Reshape(%i, %t) @"j"
  %y: f32[2,6] = Neg(%j) @"y"
})"}},
    {.name = "reshape_squeeze",
     .pattern = "Reshape(+Squeeze(x, a?), t)",
     .guard = ReshapeGuard,
     .replace = ReshapeX,
     .samples = {R"(graph "g" (%x: f32[3,1,4]) -> (%y) {
  %a = const i64[1] {1}
  %t = const i64[2] {2, 6}
  %i: f32[3,4] = Squeeze(%x, %a) @"i"
  %j: f32[2,6] = Reshape(%i, %t) @"j"
  %y: f32[2,6] = Neg(%j) @"y"
})"}},
});

}  // namespace
}  // namespace ge
