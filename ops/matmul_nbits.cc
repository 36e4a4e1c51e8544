// ge.MatMulNBits  Y[.., n] = sum_k A[.., k] (B[n, k] - zero[n, block of k]) scale[n, block of k]
// A dot of few rows with weights of 2, 4 or 8 bits that stay packed in memory: what
// ops/microsoft/packed_weights.cc makes of such products, which read every weight for a few
// multiplications. Columns n lie in groups of 16, side by side:
//   B       u8[groups, bytes, 16]   byte j: the values of k = j * 8 / bits and on, lowest bits
//   first scales  [groups, blocks, 16] zeros   the same of any type, or absent: 2^(bits - 1)
#include "ops/matmul_nbits.h"

#include <fmt/format.h>

#include <cmath>

#include "ir/opdef.h"
#include "ops/shapes.h"

namespace ge {
namespace {

using tile::LoopKind;
using tile::Op;
using tile::ReduceOp;
using tile::Val;

enum Operand { kA, kB, kScales, kZeros };

Status InferMatMulNBits(InferContext& c) {
  GE_TRY(CheckMinRank(c, kA, 1));
  const Dims &b = c.In(kB).dims, &scales = c.In(kScales).dims;
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
  if (c.Has(kZeros) && c.In(kZeros).dims != scales)
    return c.Fault(fmt::format("zeros {} and scales {} differ in shape",
                               ShapeText(c.In(kZeros).dims), ShapeText(scales)));
  Dims out = c.In(kA).dims;
  c.Check(Eq(out.back(), b[1] * (8 / bits)),
          fmt::format("A {} does not end in {}", ShapeText(out), ToString(b[1] * (8 / bits))));
  out.back() = n;
  c.Out(0, c.In(kA).dtype, out);
  return {};
}

void LowerMatMulNBits(Lowering& l) {
  auto& b = l.b;
  const Dims &out = l.Out(0).dims, &packed = l.In(kB).dims;
  const int64_t bits = l.Int("bits", 4), per_byte = 8 / bits;
  const int64_t blocks = l.In(kScales).dims[1].value(), bytes = packed[1].value() / blocks;
  const DType t = ComputeType(l.In(kA).dtype);
  // A byte's value i, less the zero point.
  auto value = [&](Val byte, int64_t i, Val zero) {
    Val q = i == 0 ? byte : b.Binary(Op::kShr, byte, b.ConstInt(DType::kI32, i * bits));
    if (i + 1 < per_byte)
      q = b.Binary(Op::kAnd, q, b.ConstInt(DType::kI32, (int64_t{1} << bits) - 1));
    return IsFloat(zero.type()) ? b.Cast(q, t) - zero : b.Cast(q - zero, t);
  };
  Dims extents(out.begin(), out.end() - 1);
  extents.push_back(packed[0]);
  l.ForEach(extents, false, [&](const Index& i) {
    const Expr group = i.back(), left = out.back() - group * kNBitsColumns;
    auto row = [&](Expr k) {
      Index at = i;
      at.back() = k;
      return at;
    };
    const bool whole = DivisibleBy(out.back(), kNBitsColumns);
    const Expr columns = whole ? Expr(kNBitsColumns) : Min(kNBitsColumns, left);
    b.For("c", columns, LoopKind::kVector, [&](Expr c) {
      const Val sum = b.Reduce(ReduceOp::kSum, {blocks}, [&](auto& block) {
        const Index of_block = {group, block[0], c};
        const Val zero = l.Has(kZeros) ? b.Let(l.Load(kZeros, of_block))
                                       : b.ConstInt(DType::kI32, int64_t{1} << (bits - 1));
        const Val part = b.Reduce(ReduceOp::kSum, {bytes}, [&](auto& j) {
          const Expr at = block[0] * bytes + j[0];
          const Val byte = b.Let(l.Load(kB, {group, at, c}));
          Val products;
          for (int64_t v = 0; v < per_byte; ++v) {
            const Val a = l.Load(kA, row(at * per_byte + v)), w = value(byte, v, zero);
            products = !products.valid()  ? a * w
                       : t == DType::kF32 ? b.Fma(a, w, products)
                                          : products + a * w;
          }
          return products;
        });
        return part * b.Cast(l.Load(kScales, of_block), t);
      });
      l.Yield(0, row(group * kNBitsColumns + c), sum);
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
}  // namespace ge
