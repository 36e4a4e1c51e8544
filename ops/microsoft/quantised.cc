// Operators on quantised tensors, of com.microsoft. With dq(x) = (x - zero) * scale and q its
// inverse, rounded and saturated:
//   QLinearAdd, QLinearMul, QLinearSigmoid, QLinearLeakyRelu, QLinearSoftmax, QLinearConcat,
//   QLinearGlobalAveragePool, QLinearAveragePool, QLinearReduceMean, QLinearWhere
//                         q(f(dq(x), ...))
//   QGemm                 q(alpha dq(A) dq(B) + C), C in units of scale_a * scale_b
//   MatMulIntegerToFloat  dq(A) dq(B) + bias
//   DynamicQuantizeMatMul the same with A quantised by its own range
//   QuantizeLinear, DequantizeLinear  as in ai.onnx
#include <fmt/format.h>

#include "ops/microsoft/formula.h"
#include "ops/shapes.h"

namespace ge::microsoft {
namespace {

// Scale and zero point of tensor x; `zero` may be absent: 0.
ValueId Dequantized(ExpandBuilder& e, ValueId x, ValueId scale, ValueId zero) {
  return e.Op("DequantizeLinear", {x, scale, zero}, {{"axis", int64_t{-1}}});
}

ValueId Quantized(ExpandBuilder& e, ValueId x, ValueId scale, ValueId zero, DType to) {
  return e.Op("QuantizeLinear", {x, scale, zero},
              {{"axis", int64_t{-1}}, {"output_dtype", static_cast<int64_t>(to)}});
}

// --- pointwise ----------------------------------------------------------------------------------

bool ExpandBinary(Graph& g, NodeId n, const char* op) {
  ExpandBuilder e(g, n);
  const ValueId a = Dequantized(e, e.In(0), e.In(1), e.In(2)),
                b = Dequantized(e, e.In(3), e.In(4), e.In(5));
  return e.Done({Quantized(e, e.Op(op, {a, b}), e.In(6), e.In(7), e.Type(e.In(0)))});
}
bool ExpandAdd(Graph& g, NodeId n) { return ExpandBinary(g, n, "Add"); }
bool ExpandMul(Graph& g, NodeId n) { return ExpandBinary(g, n, "Mul"); }

Status InferBinary(InferContext& c) {
  GE_ASSIGN(const Dims out, Broadcast(c, c.In(0).dims, c.In(3).dims));
  c.Out(0, c.In(0).dtype, out);
  return {};
}

// q(f(dq(x))) of operands x, scale, zero, scale of y, zero of y.
bool ExpandUnary(Graph& g, NodeId n, const char* op, std::initializer_list<const char*> attrs) {
  ExpandBuilder e(g, n);
  Attrs kept;
  for (const char* name : attrs)
    if (auto it = e.node().attrs.find(name); it != e.node().attrs.end()) kept.insert(*it);
  const ValueId y = e.Op(op, {Dequantized(e, e.In(0), e.In(1), e.In(2))}, kept);
  return e.Done({Quantized(e, y, e.In(3), e.In(4), e.Type(e.In(0)))});
}
bool ExpandSigmoid(Graph& g, NodeId n) { return ExpandUnary(g, n, "Sigmoid", {}); }
bool ExpandLeakyRelu(Graph& g, NodeId n) { return ExpandUnary(g, n, "LeakyRelu", {"alpha"}); }

Status InferSoftmax(InferContext& c) {
  GE_ASSIGN([[maybe_unused]] int axis, NormaliseAxis(c.Int("axis", -1), c.In(0).rank()));
  c.Out(0, c.In(0).dtype, c.In(0).dims);
  return {};
}

// Before opset 13 the axes from `axis` on are one.
bool ExpandSoftmax(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  const auto dims = e.Dims(e.In(0));
  ValueId x = Dequantized(e, e.In(0), e.In(1), e.In(2));
  const int64_t axis = AxisOf(e.Int("axis", -1), static_cast<int>(dims.size()));
  if (e.Int("opset", 13) >= 13) {
    x = e.Op("Softmax", {x}, {{"axis", axis}});
  } else {
    x = e.Op("Softmax", {e.Op("Flatten", {x}, {{"axis", axis}})}, {{"axis", int64_t{1}}});
    x = e.Reshape(x, dims);
  }
  return e.Done({Quantized(e, x, e.In(3), e.In(4), e.Type(e.In(0)))});
}

// --- pools, means, views ------------------------------------------------------------------------

ValueId MoveChannels(ExpandBuilder& e, ValueId x, bool to_front) {
  Formula f{e};
  const int rank = e.Rank(x);
  std::vector<int64_t> perm = {0};
  if (to_front) perm.push_back(rank - 1);
  for (int i = to_front ? 1 : 2; i < rank - (to_front ? 1 : 0); ++i) perm.push_back(i);
  if (!to_front) perm.push_back(1);
  return f.Transpose(x, perm);
}

bool ExpandPool(Graph& g, NodeId n, const char* op) {
  ExpandBuilder e(g, n);
  const bool last = e.Int("channels_last", 0) != 0;
  if (e.Rank(e.In(0)) < 3) return false;
  Attrs attrs(e.node().attrs.begin(), e.node().attrs.end());
  attrs.erase("channels_last");
  ValueId x = Dequantized(e, e.In(0), e.In(1), e.In(2));
  if (last) x = MoveChannels(e, x, true);
  x = e.Op(op, {x}, attrs);
  if (last) x = MoveChannels(e, x, false);
  return e.Done({Quantized(e, x, e.In(3), e.In(4), e.Type(e.In(0)))});
}
bool ExpandAveragePool(Graph& g, NodeId n) { return ExpandPool(g, n, "AveragePool"); }
bool ExpandGlobalAveragePool(Graph& g, NodeId n) { return ExpandPool(g, n, "GlobalAveragePool"); }

Status InferReduceMean(InferContext& c) {
  const int rank = c.In(0).rank();
  int kept = rank;
  if (c.Int("keepdims", 1) == 0)
    kept = HasAttr(c.node, "axes") ? rank - static_cast<int>(c.Ints("axes").size()) : 0;
  if (kept < 0) return c.Fault("more axes than the input has");
  c.Out(0, c.In(0).dtype, Dims(kept, Expr(1)));
  return {};
}

bool ExpandReduceMean(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  const ValueId x = Dequantized(e, e.In(0), e.In(1), e.In(2));
  const ValueId axes = HasAttr(e.node(), "axes") ? e.Ints(e.Ints("axes")) : kNone;
  const ValueId y = e.Op("ReduceMean", {x, axes}, {{"keepdims", e.Int("keepdims", 1)}});
  return e.Done({Quantized(e, y, e.In(3), e.In(4), e.Type(e.In(0)))});
}

Status InferConcat(InferContext& c) {
  if (c.NumInputs() % 3 != 2)
    return c.Fault(fmt::format("{} operands, must be 2 and 3 for each part", c.NumInputs()));
  for (int i = 2; i < c.NumInputs(); i += 3)
    if (c.In(i).dtype != c.In(i + 2).dtype || !IsFloat(c.In(i + 1).dtype))
      return c.Fault(fmt::format(
          "operands {} to {} are {}, {} and {}, must be a part, its scale of "
          "a float type and its zero point of the part's type",
          i, i + 2, Name(c.In(i).dtype), Name(c.In(i + 1).dtype), Name(c.In(i + 2).dtype)));
  c.Out(0, c.In(2).dtype, c.In(2).dims);
  return {};
}

// y scale, y zero, then (x, scale, zero) of each part.
bool ExpandConcat(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  Formula f{e};
  std::vector<ValueId> parts;
  for (int i = 2; i < e.NumInputs(); i += 3)
    parts.push_back(Dequantized(e, e.In(i), e.In(i + 1), e.In(i + 2)));
  return e.Done(
      {Quantized(e, f.Concat(parts, e.Int("axis", 0)), e.In(0), e.In(1), e.Type(e.In(2)))});
}

bool ExpandWhere(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  const ValueId x = Dequantized(e, e.In(1), e.In(2), e.In(3)),
                y = Dequantized(e, e.In(4), e.In(5), e.In(6));
  return e.Done({Quantized(e, e.Op("Where", {e.In(0), x, y}), e.In(7), e.In(8), e.Type(e.In(1)))});
}

Status InferWhere(InferContext& c) {
  GE_ASSIGN(const Dims two, Broadcast(c, c.In(1).dims, c.In(4).dims));
  GE_ASSIGN(const Dims out, Broadcast(c, c.In(0).dims, two));
  c.Out(0, c.In(1).dtype, out);
  return {};
}

// --- products -----------------------------------------------------------------------------------

enum Gemm { kA, kAScale, kAZero, kB, kBScale, kBZero, kC, kYScale, kYZero };

Status InferQGemm(InferContext& c) {
  GE_TRY(CheckRank(c, kA, 2));
  GE_TRY(CheckRank(c, kB, 2));
  const Expr rows = c.In(kA).dims[c.Int("transA", 0) != 0 ? 1 : 0],
             columns = c.In(kB).dims[c.Int("transB", 0) != 0 ? 0 : 1];
  const DType integer = c.Has(kYZero) ? c.In(kYZero).dtype : c.In(kA).dtype;
  c.Out(0, c.Has(kYScale) ? integer : DType::kF32, {rows, columns});
  return {};
}

bool ExpandQGemm(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  Formula f{e};
  ValueId a = e.In(kA), b = e.In(kB);
  if (e.Int("transA", 0) != 0) a = f.Transpose(a, {1, 0});
  if (e.Int("transB", 0) != 0) b = f.Transpose(b, {1, 0});
  ValueId sum = e.Op("MatMulInteger", {a, b, e.In(kAZero), e.In(kBZero)});
  sum = f.AddIf(sum, e.In(kC));
  const ValueId scale = f.Scale(f.Mul(e.In(kAScale), e.In(kBScale)), e.Float("alpha", 1));
  const ValueId y = f.Mul(e.Cast(sum, DType::kF32), scale);
  if (!e.Has(kYScale)) return e.Done({y});
  return e.Done({Quantized(e, y, e.In(kYScale), e.In(kYZero), e.OutType(0).dtype)});
}

// A scale of one value per row of A ([M]) multiplies rows.
ValueId RowScale(ExpandBuilder& e, ValueId scale, ValueId a) {
  if (e.Rank(scale) != 1 || e.Dims(scale)[0].IsConst(1) || e.Rank(a) < 2) return scale;
  Formula f{e};
  return f.Unsqueeze(scale, {1});
}

Status InferToFloat(InferContext& c, int b, int scale) {
  const int rank = std::max(c.In(0).rank(), c.In(b).rank());
  if (rank < 2) return c.Fault("A and B must have rank 2 at least");
  c.Out(0, c.In(scale).dtype, Dims(rank, Expr(1)));
  return {};
}
Status InferIntegerToFloat(InferContext& c) { return InferToFloat(c, 1, 2); }

bool ExpandIntegerToFloat(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  Formula f{e};
  const ValueId sum = e.Op("MatMulInteger", {e.In(0), e.In(1), e.In(4), e.In(5)});
  const ValueId scale = f.Mul(RowScale(e, e.In(2), e.In(0)), e.In(3));
  return e.Done({f.AddIf(f.Mul(e.Cast(sum, e.Type(scale)), scale), e.In(6))});
}

Status InferDynamicMatMul(InferContext& c) { return InferToFloat(c, 1, 0); }

bool ExpandDynamicMatMul(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  Formula f{e};
  const auto a = e.Ops("DynamicQuantizeLinear", {e.In(0)}, 3);
  const ValueId sum = e.Op("MatMulInteger", {a[0], e.In(1), a[2], e.In(3)});
  const ValueId scale = f.Mul(a[1], e.In(2));
  return e.Done({f.AddIf(f.Mul(e.Cast(sum, e.Type(scale)), scale), e.In(4))});
}

// --- as in ai.onnx ------------------------------------------------------------------------------

bool ExpandSame(Graph& g, NodeId n, const char* op) {
  ExpandBuilder e(g, n);
  return e.Done(
      {e.Op(op, {e.In(0), e.In(1), e.In(2)}, Attrs(e.node().attrs.begin(), e.node().attrs.end()))});
}
bool ExpandQuantize(Graph& g, NodeId n) { return ExpandSame(g, n, "QuantizeLinear"); }
bool ExpandDequantize(Graph& g, NodeId n) { return ExpandSame(g, n, "DequantizeLinear"); }

Status InferQuantize(InferContext& c) {
  c.Out(0, c.Has(2) ? c.In(2).dtype : DType::kU8, c.In(0).dims);
  return {};
}
Status InferDequantize(InferContext& c) {
  c.Out(0, c.In(1).dtype, c.In(0).dims);
  return {};
}

OpDef Op(const char* name, int least, int most, Status (*infer)(InferContext&),
         bool (*expand)(Graph&, NodeId), std::vector<std::string> samples) {
  return {.name = name,
          .domain = kDomain,
          .min_inputs = least,
          .max_inputs = most,
          .infer = infer,
          .expand = expand,
          .samples = std::move(samples),
          .tolerance = 1e-4};
}

constexpr const char* kBinarySample = "(u8[2,3], f32[], u8[], u8[3], f32[], u8[], f32[], u8[])";
constexpr const char* kUnarySample = "(u8[2,3,4,4], f32[], u8[], f32[], u8[])";

const OpDef& kQLinearAdd =
    Register(Op("QLinearAdd", 7, 8, InferBinary, ExpandAdd, {kBinarySample}));
const OpDef& kQLinearMul =
    Register(Op("QLinearMul", 7, 8, InferBinary, ExpandMul, {kBinarySample}));
const OpDef& kQLinearSigmoid =
    Register(Op("QLinearSigmoid", 2, 5, InferLikeInput<0>, ExpandSigmoid, {kUnarySample}));
const OpDef& kQLinearLeakyRelu =
    Register(Op("QLinearLeakyRelu", 2, 5, InferLikeInput<0>, ExpandLeakyRelu, {kUnarySample}));
const OpDef& kQLinearSoftmax =
    Register(Op("QLinearSoftmax", 2, 5, InferSoftmax, ExpandSoftmax, {kUnarySample}));
const OpDef& kQLinearGlobalAveragePool = Register(Op(
    "QLinearGlobalAveragePool", 2, 5, InferLikeInput<0>, ExpandGlobalAveragePool, {kUnarySample}));
const OpDef& kQLinearAveragePool =
    Register(Op("QLinearAveragePool", 2, 5, InferLikeInput<0>, ExpandAveragePool,
                {"(u8[2,3,4,4], f32[], u8[], f32[], u8[]) {kernel_shape=[2,2]}"}));
const OpDef& kQLinearReduceMean =
    Register(Op("QLinearReduceMean", 2, 5, InferReduceMean, ExpandReduceMean, {kUnarySample}));
const OpDef& kQLinearConcat =
    Register(Op("QLinearConcat", 5, -1, InferConcat, ExpandConcat,
                {"(f32[], u8[], u8[2,3], f32[], u8[], u8[2,4], f32[], u8[]) {axis=1}"}));
const OpDef& kQLinearWhere =
    Register(Op("QLinearWhere", 9, 9, InferWhere, ExpandWhere,
                {"(bool[2,3], u8[2,3], f32[], u8[], u8[3], f32[], u8[], f32[], u8[])"}));
const OpDef& kQGemm =
    Register(Op("QGemm", 6, 9, InferQGemm, ExpandQGemm,
                {"(u8[4,3], f32[], u8[], i8[3,5], f32[5], i8[5], i32[5], f32[], u8[])",
                 "(u8[4,3], f32[], u8[], i8[5,3], f32[], i8[]) {transB=1}"}));
const OpDef& kMatMulIntegerToFloat =
    Register(Op("MatMulIntegerToFloat", 4, 7, InferIntegerToFloat, ExpandIntegerToFloat,
                {"(u8[2,4,3], i8[3,5], f32[], f32[5], u8[], i8[5], f32[5])"}));
const OpDef& kDynamicQuantizeMatMul =
    Register(Op("DynamicQuantizeMatMul", 3, 5, InferDynamicMatMul, ExpandDynamicMatMul,
                {"(f32[2,4,3], i8[3,5], f32[5], i8[5], f32[5])"}));
const OpDef& kQuantizeLinear =
    Register(Op("QuantizeLinear", 2, 3, InferQuantize, ExpandQuantize, {}));
const OpDef& kDequantizeLinear =
    Register(Op("DequantizeLinear", 2, 3, InferDequantize, ExpandDequantize, {}));

}  // namespace
}  // namespace ge::microsoft
