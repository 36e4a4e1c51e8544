// ge.MatMulNBits (ops/matmul_nbits.cc) of rows whose number is not known: one kernel holds the dot
// for a few rows, which unpacks weights in registers, and the product for many, which unpacks a
// panel of them into the worker's scratch first.
//
//   grid: panels of columns. few rows: row by row, group by group
//                            many:     W[k][nb] <- panel; tiles of rows by BrGemm
#include <fmt/format.h>

#include <algorithm>

#include "lower/cube_gemm.h"
#include "ops/matmul_nbits.h"
#include "ops/shapes.h"

namespace ge {

namespace {

using tile::LoopKind;
using tile::Val;

constexpr int kVectors = 2;  // of a panel's columns; groups at least

class NBitsLowering {
 public:
  NBitsLowering(const Graph& g, const Region& region, const SocSpec& soc)
      : g_(g), node_(g.node(region.anchor)), build_(g, region, soc) {
    rows_ = Dims(kNBitsA)[0], depth_ = Dims(kNBitsA)[1];
    columns_ = AttrOr<int64_t>(node_, "N", 0);
    nb_ = std::max(kVectors * soc.F32Lanes(), static_cast<int>(kNBitsColumns));
    m_ = std::min(MaxRows(soc, nb_ / soc.F32Lanes()), kMostSymbolicRows);
  }

  Lowered Run() {
    build_.AddKernel(fmt::format("packed weights {}x{}", m_, nb_),
                     [&](LoweringContext& c) { Kernel(c); });
    build_.AddBorders();
    return std::move(build_.lowered);
  }

 private:
  const std::vector<Expr>& Dims(int input) const {
    return g_.value(node_.inputs[static_cast<size_t>(input)]).type.dims;
  }

  void Kernel(LoweringContext& c) {
    tile::Builder& b = c.b();
    load_ = [&](int input, const Index& at) {
      return c.Read(node_.inputs[static_cast<size_t>(input)], at);
    };
    b.For("p", (columns_ + nb_ - 1) / nb_, LoopKind::kParallel, [&](Expr panel) {
      b.If(
          b.Cast(b.Index(Le(rows_, kNBitsRows)), DType::kBool), [&] { Few(c, panel); },
          [&] { Many(c, panel); });
    });
  }

  // Groups of a panel. The last panel's may be fewer; then the last is there again.
  void ForGroups(tile::Builder& b, Expr panel, const std::function<void(Expr, Expr)>& body) {
    const int64_t groups = nb_ / kNBitsColumns;
    const Expr last = Dims(kNBitsB)[0] - 1;
    if (groups == 1) return body(panel, 0);
    b.For("group", groups, LoopKind::kSerial, [&](Expr i) {
      const Expr group = panel * groups + i;
      body(columns_ % nb_ == 0 ? group : Min(group, last), i);
    });
  }

  void Few(LoweringContext& c, Expr panel) {
    tile::Builder& b = c.b();
    b.For("r", rows_, LoopKind::kSerial, [&](Expr r) {
      ForGroups(b, panel, [&](Expr group, Expr) {
        const Expr first = group * kNBitsColumns;
        const bool whole = columns_ % kNBitsColumns == 0;
        b.For("c", whole ? Expr(kNBitsColumns) : Min(kNBitsColumns, columns_ - first),
              LoopKind::kVector, [&](Expr col) {
                c.Yield(node_.outputs[0], {r, first + col},
                        NBitsDot(b, g_, node_, {r}, group, col, load_));
              });
      });
    });
  }

  void Many(LoweringContext& c, Expr panel) {
    tile::Builder& b = c.b();
    const int weights = b.Alloc("weights", DType::kF32, depth_ * nb_);
    const Expr blocks = Dims(kNBitsScales)[1], bytes = FloorDiv(Dims(kNBitsB)[1], blocks);
    ForGroups(b, panel, [&](Expr group, Expr i) {
      b.For("block", blocks, LoopKind::kSerial, [&](Expr block) {
        b.For("j", bytes, LoopKind::kSerial, [&](Expr j) {
          b.For("c", kNBitsColumns, LoopKind::kVector, [&](Expr col) {
            const Index at = {group, block, col};
            const Val scale = b.Let(b.Cast(load_(kNBitsScales, at), DType::kF32));
            const std::vector<Val> values = NBitsValues(b, g_, node_, at, j, DType::kF32, load_);
            Expr k = (block * bytes + j) * static_cast<int64_t>(values.size());
            for (const Val v : values) {
              b.Store(weights, k * nb_ + i * kNBitsColumns + col, v * scale);
              k = k + 1;
            }
          });
        });
      });
    });
    const Operand a = *OperandA(c);
    ForEvenRowTiles(b, rows_, m_, [&](Expr r, int m) {
      tile::BrGemm g;
      g.m = m;
      g.n = nb_;
      g.n_valid = columns_ % nb_ == 0 ? Expr(nb_) : Min(nb_, columns_ - panel * nb_);
      g.k = depth_;
      g.a_buffer = a.buffer;
      g.a = a.base + r * a.row_stride;
      g.a_row = a.row_stride;
      g.a_k = a.k_stride;
      g.b_buffer = weights;
      g.b = 0;
      g.b_k = nb_;
      b.Gemm(g, [&](Expr row, Expr col, Val acc) {
        c.Yield(node_.outputs[0], {r + row, panel * nb_ + col}, acc);
      });
    });
  }

 public:
  std::optional<Operand> OperandA(LoweringContext& c) const {
    const Expr i = g_.arena().Fresh("i", {.lo = 0, .extent = rows_});
    const Expr k = g_.arena().Fresh("k", {.lo = 0, .extent = depth_});
    return AsOperand(c.b(), c.Read(node_.inputs[kNBitsA], {i, k}), i, k);
  }

 private:
  const Graph& g_;
  const Node& node_;
  CubeBuild build_;
  Expr rows_, depth_;
  int64_t columns_ = 0;
  int nb_ = 0, m_ = 0;
  std::function<Val(int, const Index&)> load_;
};

}  // namespace

bool SupportsNBits(const Graph& g, const Region& region, const SocSpec& soc) {
  const TensorType& a = g.value(g.node(region.anchor).inputs[kNBitsA]).type;
  if (a.dtype != DType::kF32 || a.rank() != 2 || a.dims[0].IsConst()) return false;
  LoweringContext c(g, region, soc);
  return NBitsLowering(g, region, soc).OperandA(c).has_value();
}

Lowered LowerCubeNBits(const Graph& g, const Region& region, const SocSpec& soc) {
  return NBitsLowering(g, region, soc).Run();
}

}  // namespace ge
