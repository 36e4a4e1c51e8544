// MatMulNBits of com.microsoft: Y = A W^T + bias, where row n of W is stored in blocks of
// block_size values of 2, 4 or 8 bits, the first in the lowest bits:
//   W[n, k] = (B[n, k] - zero[n, block of k]) * scale[n, block of k]
// With g_idx the block of k is g_idx[k].
// zero: packed like B, each row padded to whole bytes; or in A's type; or absent: 2^(bits - 1).
// Products of few rows, or unknown many, keep packed weights (ops/matmul_nbits.cc); else W is made
// when the model is compiled.
#include <fmt/format.h>

#include <cmath>

#include "ops/matmul_nbits.h"
#include "ops/microsoft/formula.h"
#include "ops/shapes.h"

namespace ge::microsoft {
namespace {

enum Operand { kA, kB, kScales, kZeros, kGroups, kBias };

struct Packing {
  int64_t rows, columns, bits, block, blocks;
};

Packing PackingOf(const Node& n) {
  Packing p = {AttrOr<int64_t>(n, "N", 0), AttrOr<int64_t>(n, "K", 0),
               AttrOr<int64_t>(n, "bits", 4), AttrOr<int64_t>(n, "block_size", 0), 0};
  if (p.block > 0) p.blocks = (p.columns + p.block - 1) / p.block;
  return p;
}

Status InferMatMulNBits(InferContext& c) {
  const Packing p = PackingOf(c.node);
  if (p.bits != 2 && p.bits != 4 && p.bits != 8)
    return Unsupported(fmt::format("bits {} given; allowed: 2, 4, 8", p.bits));
  if (p.rows < 1 || p.columns < 1 || p.block < 1)
    return c.Fault(
        fmt::format("K {}, N {} and block_size {} must be at least 1", p.columns, p.rows, p.block));
  if (c.Has(kGroups)) {
    GE_TRY(CheckRank(c, kGroups, 1));
    c.Check(Le(p.columns, c.In(kGroups).dims[0]), "g_idx has fewer than K values");
  }
  GE_TRY(CheckMinRank(c, kA, 1));
  Dims out = c.In(kA).dims;
  c.Check(Eq(out.back(), p.columns),
          fmt::format("A {} does not end in K = {}", ShapeText(out), p.columns));
  out.back() = p.rows;
  c.Out(0, c.In(kA).dtype, out);
  return {};
}

// Bytes [rows, n] to their values of `bits` bits [rows, n * 8 / bits].
ValueId Unpack(ExpandBuilder& e, ValueId bytes, int64_t bits, int64_t rows, int64_t n) {
  if (bits == 8) return e.Reshape(bytes, {rows, n});
  const int64_t per_byte = 8 / bits;
  const ValueId column = e.Reshape(bytes, {rows, n, 1});
  std::vector<double> shifts;
  for (int64_t i = 0; i < per_byte; ++i) shifts.push_back(static_cast<double>(i * bits));
  const ValueId shifted = e.Op("BitShift", {column, e.Constant(DType::kU8, {per_byte}, shifts)},
                               {{"direction", std::string("RIGHT")}});
  const ValueId low = e.Op("BitwiseAnd", {shifted, e.Scalar(DType::kU8, std::ldexp(1, bits) - 1)});
  return e.Reshape(low, {rows, n * per_byte});
}

// Zero points as [rows, blocks, 1] in type t.
ValueId Zeros(ExpandBuilder& e, const Packing& p, DType t) {
  if (!e.Has(kZeros)) return e.Scalar(t, std::ldexp(1, static_cast<int>(p.bits) - 1));
  ValueId zeros = e.In(kZeros);
  if (e.Type(zeros) == DType::kU8) {
    Formula f{e};
    const int64_t bytes = (p.blocks * p.bits + 7) / 8;
    zeros = f.Slice(Unpack(e, zeros, p.bits, p.rows, bytes), 1, 0, p.blocks);
  }
  return e.Cast(e.Reshape(zeros, {p.rows, p.blocks, 1}), t);
}

// With weights that stay packed, for few rows or unknown many. kNone: they cannot.
ValueId WithPackedWeights(ExpandBuilder& e, const Packing& p) {
  const std::vector<Expr> a = e.Dims(e.In(kA));
  const Expr rows = Product({a.begin(), a.end() - 1});
  if (rows.IsConst() && rows.value() > kNBitsRows) return kNone;
  if (e.Type(e.In(kA)) != DType::kF32) return kNone;
  if (e.Has(kGroups) || p.columns % p.block != 0 || p.block * p.bits % 8 != 0) return kNone;
  for (int i : {kB, kScales, kZeros})
    if (e.Has(i) && e.Const(e.In(i)) == nullptr) return kNone;
  const int64_t groups = (p.rows + kNBitsColumns - 1) / kNBitsColumns;
  const auto in_groups = [&](ValueId x, int64_t n) {  // [rows, n] to [groups, n, 16]
    x = e.Reshape(x, {p.rows, n});
    if (const int64_t more = groups * kNBitsColumns - p.rows; more > 0)
      x = e.Op("Pad", {x, e.Ints({0, 0, more, 0})});
    return Formula{e}.Transpose(e.Reshape(x, {groups, kNBitsColumns, n}), {0, 2, 1});
  };
  std::vector<ValueId> inputs = {e.Reshape(e.In(kA), {rows, p.columns}),
                                 in_groups(e.In(kB), p.columns * p.bits / 8),
                                 in_groups(e.In(kScales), p.blocks)};
  if (e.Has(kZeros)) inputs.push_back(in_groups(Zeros(e, p, e.Type(e.In(kZeros))), p.blocks));
  std::vector<Expr> out = a;
  out.back() = p.rows;
  return e.Reshape(e.Op("ge.MatMulNBits", inputs, {{"N", p.rows}, {"bits", p.bits}}), out);
}

bool ExpandMatMulNBits(Graph& g, NodeId n) {
  ExpandBuilder e(g, n);
  Formula f{e};
  const Packing p = PackingOf(e.node());
  if (const ValueId y = WithPackedWeights(e, p); y != kNone)
    return e.Done({f.AddIf(y, e.In(kBias))});
  const DType t = e.Type(e.In(kA));
  const ValueId values = Unpack(e, e.In(kB), p.bits, p.rows, p.blocks * p.block * p.bits / 8);
  const ValueId wide = e.Cast(e.Reshape(values, {p.rows, p.blocks, p.block}), t);
  const ValueId scales = e.Cast(e.Reshape(e.In(kScales), {p.rows, p.blocks, 1}), t);
  ValueId zeros = Zeros(e, p, t), w;
  if (e.Has(kGroups)) {
    const ValueId groups = f.Slice(e.In(kGroups), 0, 0, p.columns);
    const auto of_column = [&](ValueId x) {  // [rows, blocks, 1] to [rows, columns]
      return e.Op("Gather", {e.Reshape(x, {p.rows, p.blocks}), groups}, {{"axis", int64_t{1}}});
    };
    if (e.Rank(zeros) > 0) zeros = of_column(zeros);
    const ValueId flat = f.Slice(e.Reshape(wide, {p.rows, p.blocks * p.block}), 1, 0, p.columns);
    w = f.Mul(f.Sub(flat, zeros), of_column(scales));
    return e.Done({f.AddIf(e.Op("MatMul", {e.In(kA), f.Transpose(w, {1, 0})}), e.In(kBias))});
  }
  w = e.Reshape(f.Mul(f.Sub(wide, zeros), scales), {p.rows, p.blocks * p.block});
  if (p.blocks * p.block != p.columns) w = f.Slice(w, 1, 0, p.columns);
  return e.Done({f.AddIf(e.Op("MatMul", {e.In(kA), f.Transpose(w, {1, 0})}), e.In(kBias))});
}

const OpDef& kMatMulNBits =
    Register({.name = "MatMulNBits",
              .domain = kDomain,
              .min_inputs = 3,
              .max_inputs = 6,
              .infer = InferMatMulNBits,
              .expand = ExpandMatMulNBits,
              .samples = {"(f32[2,32], u8[3,2,8], f32[6]) {K=32, N=3, bits=4, block_size=16}"},
              .tolerance = 1e-4});

}  // namespace
}  // namespace ge::microsoft
