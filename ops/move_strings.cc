// Strings under operators that only move elements (Gather, Concat, Reshape, Where, ...): the
// operator moves the elements' positions, then a host kernel takes the strings from there. So each
// of these operators has one definition for all types. Unique goes by the strings' ranks.
//   ge.StringsAt     y[i] = all strings of the operands after the first, in order, at position
//   x0[i] ge.StringRanks   how many different strings of the tensor are less
#include <algorithm>
#include <string_view>

#include "ir/expand.h"
#include "ir/opdef.h"
#include "ops/shapes.h"

namespace ge {
namespace {

constexpr std::string_view kMovers[] = {
    "Compress",       "Concat",    "Expand",          "Flatten",      "Gather",
    "GatherElements", "GatherND",  "ReverseSequence", "Reshape",      "ScatterElements",
    "ScatterND",      "Slice",     "Split",           "Squeeze",      "Tile",
    "Transpose",      "Unsqueeze", "Where",           "DepthToSpace", "SpaceToDepth"};

Status InferStringsAt(InferContext& c) {
  for (int i = 1; i < c.NumInputs(); ++i)
    if (c.In(i).dtype != DType::kString) return c.Fault("operands after the first must be strings");
  c.Out(0, DType::kString, c.In(0).dims);
  return {};
}

// i64 of x's shape: offset, offset + 1, ...
ValueId Positions(ExpandBuilder& e, ValueId x, Expr offset) {
  const Dims dims = e.Dims(x);
  auto scalar = [&](Expr v) { return e.Reshape(e.Exprs({v}), {}); };
  const ValueId all = e.Op("Range", {scalar(offset), scalar(offset + Product(dims)), scalar(1)});
  return e.Reshape(all, dims);
}

bool MoveUnique(ExpandBuilder& e) {
  ValueId x = e.In(0);
  Attrs attrs;
  for (const auto& [name, value] : e.node().attrs) attrs[name] = value;
  const std::vector<ValueId> found =
      e.Ops("Unique", {e.Op("ge.StringRanks", {x})}, 4, std::move(attrs));
  if (!e.node().attrs.contains("axis")) x = e.Reshape(x, {Product(e.Dims(x))});
  const ValueId y = e.Op("Gather", {x, found[1]}, {{"axis", e.Int("axis", 0)}});
  std::vector<ValueId> outputs = {y, found[1], found[2], found[3]};
  outputs.resize(e.NumOutputs());
  for (int o = 0; o < e.NumOutputs(); ++o)
    if (!e.Wants(o)) outputs[o] = kNone;
  return e.Done(outputs);
}

// Of a node of any operator: false where it is none that only moves elements.
bool MoveStrings(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  const OpDef& op = *e.node().op;
  if (op.domain.empty() && op.name == "Unique") return MoveUnique(e);
  if (!op.domain.empty() || std::ranges::find(kMovers, op.name) == std::end(kMovers)) return false;
  std::vector<ValueId> inputs = e.node().inputs, strings;
  Expr offset = 0;
  for (ValueId& v : inputs) {
    if (v == kNone || e.Type(v) != DType::kString) continue;
    strings.push_back(v);
    v = Positions(e, v, offset);
    offset += Product(e.Dims(strings.back()));
  }
  Attrs attrs;
  for (const auto& [name, value] : e.node().attrs) attrs[name] = value;
  const std::vector<ValueId> moved =
      e.Ops(op.name, std::move(inputs), e.NumOutputs(), std::move(attrs));
  std::vector<ValueId> outputs;
  for (int o = 0; o < e.NumOutputs(); ++o) {
    std::vector<ValueId> operands = {moved[o]};
    operands.insert(operands.end(), strings.begin(), strings.end());
    outputs.push_back(e.Wants(o) ? e.Op("ge.StringsAt", std::move(operands)) : kNone);
  }
  return e.Done(outputs);
}

Status InferStringRanks(InferContext& c) {
  if (c.In(0).dtype != DType::kString) return c.Fault("the operand must be strings");
  c.Out(0, DType::kI64, c.In(0).dims);
  return {};
}

Status InferCastString(InferContext& c) {
  c.Out(0, static_cast<DType>(c.Int("to", 0)), c.In(0).dims);
  return {};
}

const OpDef& kCastString = Register(
    {.name = "CastString", .domain = "ge", .infer = InferCastString, .host = "CastString"});
const OpDef& kStringsAt = Register({.name = "StringsAt",
                                    .domain = "ge",
                                    .min_inputs = 2,
                                    .max_inputs = -1,
                                    .infer = InferStringsAt,
                                    .expand = MoveStrings,
                                    .host = "StringsAt"});
const OpDef& kStringRanks = Register(
    {.name = "StringRanks", .domain = "ge", .infer = InferStringRanks, .host = "StringRanks"});

}  // namespace
}  // namespace ge
