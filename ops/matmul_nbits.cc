// ge.MatMulNBits  Y[.., n] = sum_k A[.., k] (B[n, k] - zero[n, block of k]) scale[n, block of k]
// A dot with weights of 2, 4 or 8 bits that stay packed in memory: what
// ops/microsoft/packed_weights.cc makes of products of few rows, which read every weight for a few
// multiplications, and of unknown many (lower/cube_nbits.cc). Columns n lie in groups of 16, side
// by side:
//   B       u8[groups, bytes, 16]   byte j: the values of k = j * 8 / bits and on, lowest bits
//   first scales  [groups, blocks, 16] zeros   the same of any type, or absent: 2^(bits - 1)
#include "ops/matmul_nbits.h"

#include <fmt/format.h>

#include <cmath>

#include "ops/rows.h"
#include "ops/shapes.h"

namespace ge {
namespace {

using tile::LoopKind;
using tile::Op;
using tile::ReduceOp;
using tile::Val;

Expr BytesOfBlock(const Graph& g, const Node& n) {
  return FloorDiv(g.value(n.inputs[kNBitsB]).type.dims[1],
                  g.value(n.inputs[kNBitsScales]).type.dims[1]);
}

Status InferMatMulNBits(InferContext& c) {
  GE_TRY(CheckMinRank(c, kNBitsA, 1));
  const Dims &b = c.In(kNBitsB).dims, &scales = c.In(kNBitsScales).dims;
  const int64_t bits = c.Int("bits", 4), n = c.Int("N", 0);
  if (bits != 2 && bits != 4 && bits != 8)
    return Unsupported(fmt::format("bits {} given; allowed: 2, 4, 8", bits));
  if (b.size() != 3 || scales.size() != 3 || !Product(b).IsConst() || !Product(scales).IsConst() ||
      b[2] != kNBitsColumns || scales[2] != kNBitsColumns || scales[0] != b[0])
    return c.Fault(
        fmt::format("B {} and scales {} must be [groups, bytes, {}] and [groups, blocks, {}]",
                    ShapeText(b), ShapeText(scales), kNBitsColumns, kNBitsColumns));
  if (n < 1 || CeilDiv(Expr(n), kNBitsColumns) != b[0])
    return c.Fault(fmt::format("N {} does not fill {} groups", n, ToString(b[0])));
  if (!DivisibleBy(b[1], scales[1].value()))
    return c.Fault(
        fmt::format("{} bytes are no {} equal blocks", ToString(b[1]), ToString(scales[1])));
  if (c.Has(kNBitsZeros) && c.In(kNBitsZeros).dims != scales)
    return c.Fault(fmt::format("zeros {} and scales {} differ in shape",
                               ShapeText(c.In(kNBitsZeros).dims), ShapeText(scales)));
  Dims out = c.In(kNBitsA).dims;
  c.Check(Eq(out.back(), b[1] * (8 / bits)),
          fmt::format("A {} does not end in {}", ShapeText(out), ToString(b[1] * (8 / bits))));
  out.back() = n;
  c.Out(0, c.In(kNBitsA).dtype, out);
  return {};
}

void LowerMatMulNBits(Lowering& l) {
  const Dims& out = l.Out(0).dims;
  Dims extents(out.begin(), out.end() - 1);
  extents.push_back(l.In(kNBitsB).dims[0]);
  const auto load = [&](int input, const Index& at) { return l.Load(input, at); };
  l.ForEach(extents, false, [&](const Index& i) {
    const Expr group = i.back(), left = out.back() - group * kNBitsColumns;
    const Index row(i.begin(), i.end() - 1);
    const bool whole = DivisibleBy(out.back(), kNBitsColumns);
    l.b.For("c", whole ? Expr(kNBitsColumns) : Min(kNBitsColumns, left), LoopKind::kVector,
            [&](Expr c) {
              l.Yield(0, Join(row, {group * kNBitsColumns + c}),
                      NBitsDot(l.b, l.graph, l.node, row, group, c, load));
            });
  });
}

const OpDef& kMatMulNBits =
    Register({.name = "MatMulNBits",
              .domain = "ge",
              .min_inputs = 3,
              .max_inputs = 4,
              .infer = InferMatMulNBits,
              .lower = LowerMatMulNBits,
              .flops_per_element = 40,
              .samples = {"(f32[3,64], u8[2,32,16], f32[2,4,16]) {N=32}",
                          "(f32[64], u8[1,32,16], f32[1,2,16], u8[1,2,16]) {N=5}",
                          "(f32[1,2,64], u8[3,16,16], f32[3,4,16], f32[3,4,16]) {N=47, bits=2}",
                          "(f32[2,32], u8[2,32,16], f16[2,1,16], u8[2,1,16]) {N=20, bits=8}"},
              .tolerance = 1e-4});

}  // namespace

std::vector<Val> NBitsValues(tile::Builder& b, const Graph& g, const Node& n, const Index& block,
                             Expr j, DType t, const std::function<Val(int, const Index&)>& load) {
  const int64_t bits = AttrOr<int64_t>(n, "bits", 4), per_byte = 8 / bits;
  const bool zeros = n.inputs.size() > kNBitsZeros && n.inputs[kNBitsZeros] != kNone;
  const Val zero =
      zeros ? b.Let(load(kNBitsZeros, block)) : b.ConstInt(DType::kI32, int64_t{1} << (bits - 1));
  const Expr bytes = BytesOfBlock(g, n);
  const Val byte = b.Let(load(kNBitsB, {block[0], block[1] * bytes + j, block[2]}));
  std::vector<Val> values;
  for (int64_t i = 0; i < per_byte; ++i) {
    Val q = i == 0 ? byte : b.Binary(Op::kShr, byte, b.ConstInt(DType::kI32, i * bits));
    if (i + 1 < per_byte)
      q = b.Binary(Op::kAnd, q, b.ConstInt(DType::kI32, (int64_t{1} << bits) - 1));
    values.push_back(IsFloat(zero.type()) ? b.Cast(q, t) - zero : b.Cast(q - zero, t));
  }
  return values;
}

Val NBitsDot(tile::Builder& b, const Graph& g, const Node& n, const Index& row, Expr group, Expr c,
             const std::function<Val(int, const Index&)>& load) {
  const DType t = ComputeType(g.value(n.inputs[kNBitsA]).type.dtype);
  const Expr blocks = g.value(n.inputs[kNBitsScales]).type.dims[1], bytes = BytesOfBlock(g, n);
  return b.Reduce(ReduceOp::kSum, {blocks}, [&](auto& block) {
    const Index of_block = {group, block[0], c};
    const Val part = b.Reduce(ReduceOp::kSum, {bytes}, [&](auto& j) {
      Val sum;
      Expr k = (block[0] * bytes + j[0]) * (8 / AttrOr<int64_t>(n, "bits", 4));
      for (const Val w : NBitsValues(b, g, n, of_block, j[0], t, load)) {
        const Val a = load(kNBitsA, Join(row, {k}));
        sum = !sum.valid() ? a * w : t == DType::kF32 ? b.Fma(a, w, sum) : sum + a * w;
        k = k + 1;
      }
      return sum;
    });
    return part * b.Cast(load(kNBitsScales, of_block), t);
  });
}

}  // namespace ge
