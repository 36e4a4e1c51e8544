// Sequences and optionals of tensors. They live in object slots of a run; host kernels (rt/host/)
// do the work. A sequence's type is that of its elements: a dim in which elements may differ is the
// symbol
// "?", which is never bound; what takes an element out gives such a dim a symbol of its own. The
// attribute `fresh_dims` tells the host kernel which dims those are.
#include <fmt/format.h>

#include "ir/expand.h"
#include "ir/opdef.h"
#include "ops/shapes.h"

namespace ge {
namespace {

Expr AnySize(InferContext& c) { return c.graph.arena().Symbol("?"); }

Status CheckKind(const InferContext& c, int i, ValueKind kind, const char* what) {
  if (c.InValue(i).kind == kind) return {};
  return c.Fault(fmt::format("input {} must be {}", i, what));
}

void OutKind(InferContext& c, int o, ValueKind kind, DType t, const Dims& dims) {
  if (!c.Wants(o)) return;
  c.Out(o, t, dims);
  c.graph.value(c.node.outputs[o]).kind = kind;
}

// An element's dims where they are constant, else fresh symbols: a symbol in a sequence's type (of
// a graph input, say) is bound by nothing.
void OutElement(InferContext& c, int o, DType t, Dims dims) {
  std::vector<int64_t> fresh;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d].IsConst()) continue;
    dims[d] = c.Fresh("element");
    fresh.push_back(static_cast<int64_t>(d));
  }
  c.node.attrs["fresh_dims"] = fresh;
  c.Out(o, t, dims);
}

// What elements of both types have in common. An empty sequence (no dtype or no dims yet) takes the
// other's.
Result<TensorType> Join(InferContext& c, const TensorType& a, const TensorType& b) {
  if (a.dtype != b.dtype)
    return Invalid(fmt::format("elements are {} and {}, but must have one type", Name(a.dtype),
                               Name(b.dtype)));
  if (a.rank() != b.rank())
    return Unsupported(
        fmt::format("elements of different rank: {} and {}", ToString(a), ToString(b)));
  TensorType t = a;
  for (int d = 0; d < t.rank(); ++d)
    if (a.dims[d] != b.dims[d]) t.dims[d] = AnySize(c);
  return t;
}

Status InferSequenceEmpty(InferContext& c) {
  OutKind(c, 0, ValueKind::kSequence, static_cast<DType>(c.Int("dtype", 1)), {});
  return {};
}

// Whether value i is known to be an empty sequence: its element type says nothing about dims.
bool IsEmptySequence(const InferContext& c, int i) {
  const NodeId p = c.InValue(i).producer;
  return p != kNone && c.graph.node(p).op->name == "SequenceEmpty";
}

Status InferSequenceConstruct(InferContext& c) {
  TensorType t = c.In(0);
  for (int i = 0; i < c.NumInputs(); ++i) {
    GE_TRY(CheckKind(c, i, ValueKind::kTensor, "a tensor"));
    GE_ASSIGN(t, Join(c, t, c.In(i)));
  }
  OutKind(c, 0, ValueKind::kSequence, t.dtype, t.dims);
  return {};
}

Status InferSequenceInsert(InferContext& c) {
  GE_TRY(CheckKind(c, 0, ValueKind::kSequence, "a sequence"));
  GE_TRY(CheckKind(c, 1, ValueKind::kTensor, "a tensor"));
  TensorType t = c.In(1);
  const bool unknown = IsEmptySequence(c, 0) || (c.In(0).rank() == 0 && c.In(0).dtype == t.dtype);
  if (!unknown) {
    GE_ASSIGN(t, Join(c, c.In(0), c.In(1)));
  }
  OutKind(c, 0, ValueKind::kSequence, t.dtype, t.dims);
  return {};
}

Status InferSequenceErase(InferContext& c) {
  GE_TRY(CheckKind(c, 0, ValueKind::kSequence, "a sequence"));
  OutKind(c, 0, ValueKind::kSequence, c.In(0).dtype, c.In(0).dims);
  return {};
}

Status InferSequenceAt(InferContext& c) {
  GE_TRY(CheckKind(c, 0, ValueKind::kSequence, "a sequence"));
  OutElement(c, 0, c.In(0).dtype, c.In(0).dims);
  return {};
}

Status InferSequenceLength(InferContext& c) {
  GE_TRY(CheckKind(c, 0, ValueKind::kSequence, "a sequence"));
  c.Out(0, DType::kI64, {});
  return {};
}

Status InferSplitToSequence(InferContext& c) {
  GE_TRY(CheckMinRank(c, 0, 1));
  GE_ASSIGN(const int axis, NormaliseAxis(c.Int("axis", 0), c.In(0).rank()));
  Dims dims = c.In(0).dims;
  if (!c.Has(1)) {
    if (c.Int("keepdims", 1))
      dims[axis] = 1;
    else
      dims.erase(dims.begin() + axis);
  } else {
    const auto* sizes = c.Elems(1);
    Expr part = AnySize(c);
    if (sizes && !sizes->empty()) {
      const Expr first = (*sizes)[0];
      bool equal = true;
      for (const Expr& s : *sizes) equal = equal && s == first;
      // One size for all parts must divide the axis for them to be equal.
      const bool divides =
          c.In(1).rank() == 1 || (first.IsConst() && first.value() > 0 && dims[axis].IsConst() &&
                                  dims[axis].value() % first.value() == 0);
      if (equal && divides) part = first;
    }
    dims[axis] = part;
  }
  OutKind(c, 0, ValueKind::kSequence, c.In(0).dtype, dims);
  return {};
}

Status InferConcatFromSequence(InferContext& c) {
  GE_TRY(CheckKind(c, 0, ValueKind::kSequence, "a sequence"));
  Dims dims = c.In(0).dims;
  const bool stack = c.Int("new_axis", 0) != 0;
  GE_ASSIGN(const int axis,
            NormaliseAxis(c.Int("axis", 0), static_cast<int>(dims.size()) + (stack ? 1 : 0)));
  if (stack)
    dims.insert(dims.begin() + axis, AnySize(c));
  else
    dims[axis] = AnySize(c);
  OutElement(c, 0, c.In(0).dtype, dims);
  return {};
}

const OpDef& kSequenceEmpty = Register({.name = "SequenceEmpty",
                                        .min_inputs = 0,
                                        .max_inputs = 0,
                                        .infer = InferSequenceEmpty,
                                        .host = "SequenceEmpty"});
const OpDef& kSequenceConstruct = Register({.name = "SequenceConstruct",
                                            .max_inputs = -1,
                                            .infer = InferSequenceConstruct,
                                            .host = "SequenceConstruct"});
const OpDef& kSequenceInsert = Register({.name = "SequenceInsert",
                                         .min_inputs = 2,
                                         .max_inputs = 3,
                                         .infer = InferSequenceInsert,
                                         .host = "SequenceInsert"});
const OpDef& kSequenceErase = Register({.name = "SequenceErase",
                                        .max_inputs = 2,
                                        .infer = InferSequenceErase,
                                        .host = "SequenceErase"});
const OpDef& kSequenceAt = Register({.name = "SequenceAt",
                                     .min_inputs = 2,
                                     .max_inputs = 2,
                                     .infer = InferSequenceAt,
                                     .host = "SequenceAt"});
const OpDef& kSequenceLength =
    Register({.name = "SequenceLength", .infer = InferSequenceLength, .host = "SequenceLength"});
const OpDef& kSplitToSequence = Register({.name = "SplitToSequence",
                                          .max_inputs = 2,
                                          .infer = InferSplitToSequence,
                                          .host = "SplitToSequence"});
const OpDef& kConcatFromSequence = Register(
    {.name = "ConcatFromSequence", .infer = InferConcatFromSequence, .host = "ConcatFromSequence"});

// Optional(x): holds x; without an operand it is empty, of the type that the attribute gives.
//
// An optional of a sequence is a sequence that may be absent: only OptionalHasElement and
// OptionalGetElement tell an absent one from an empty one.
Status InferOptional(InferContext& c) {
  if (c.Has(0)) {
    const ValueKind kind = c.InValue(0).kind;
    OutKind(c, 0, kind == ValueKind::kTensor ? ValueKind::kOptional : kind, c.In(0).dtype,
            c.In(0).dims);
    return {};
  }
  constexpr std::string_view kSequenceOf = "seq ";  // as the importer writes a type
  const std::string text = c.Str("type", "");
  if (text.empty()) return c.Fault("an Optional without an operand needs the attribute 'type'");
  const bool sequence = text.starts_with(kSequenceOf);
  const auto dtype = ParseDType(std::string_view(text).substr(sequence ? kSequenceOf.size() : 0));
  if (!dtype)
    return Unsupported(
        fmt::format("an optional of '{}'; tensors and sequences of tensors are allowed", text));
  OutKind(c, 0, sequence ? ValueKind::kSequence : ValueKind::kOptional, *dtype, {});
  return {};
}

// Whether value `v` may hold nothing.
bool MayBeAbsent(const Value& v) { return v.kind != ValueKind::kTensor; }

Status InferHasElement(InferContext& c) {
  c.Out(0, DType::kBool, {});
  if (!c.Has(0))
    c.OutElems(0, {Expr(0)});
  else if (!MayBeAbsent(c.InValue(0)))
    c.OutElems(0, {Expr(1)});
  return {};
}

bool ExpandHasElement(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  if (e.Has(0) && MayBeAbsent(g.value(e.In(0)))) return false;
  return e.Done({e.Scalar(DType::kBool, e.Has(0) ? 1 : 0)});
}

Status InferGetElement(InferContext& c) {
  const Value& v = c.InValue(0);
  if (v.kind == ValueKind::kSequence)
    OutKind(c, 0, v.kind, v.type.dtype, v.type.dims);
  else
    OutElement(c, 0, v.type.dtype, v.type.dims);
  return {};
}

bool ExpandGetElement(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  if (MayBeAbsent(g.value(e.In(0)))) return false;
  return e.Done({e.Op("Identity", {e.In(0)})});
}

const OpDef& kOptional = Register({.name = "Optional",
                                   .min_inputs = 0,
                                   .max_inputs = 1,
                                   .infer = InferOptional,
                                   .host = "Optional"});
const OpDef& kOptionalHasElement = Register({.name = "OptionalHasElement",
                                             .min_inputs = 0,
                                             .max_inputs = 1,
                                             .infer = InferHasElement,
                                             .expand = ExpandHasElement,
                                             .host = "OptionalHasElement"});
const OpDef& kOptionalGetElement = Register({.name = "OptionalGetElement",
                                             .infer = InferGetElement,
                                             .expand = ExpandGetElement,
                                             .host = "OptionalGetElement"});

}  // namespace
}  // namespace ge
