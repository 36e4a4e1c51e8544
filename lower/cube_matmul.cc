// MatMul, Gemm  Y[b.., m, n] = sum_k A[b.., m, k] * B[b.., k, n]
//
//   grid: panels of nb columns x groups of rows
//   for tile of m rows in the group: BrGemm m x nb over k; epilogue: alpha, beta, the fused
//   consumers
//
// B is packed as [panel][k][nb]: at compile time if constant, else by a kernel before, unless its
// rows can be read as they lie. With one B for all batches, batch and row are one axis.
// bf16 factors on a chip with dots of pairs: A stays bf16, panels of B are [k / 2][nb][2].
// Doubles: a vector is as wide, with half as many columns.
#include <fmt/format.h>

#include <algorithm>

#include "abi/convert.h"
#include "base/check.h"
#include "lower/cost.h"
#include "lower/cube_gemm.h"
#include "lower/loops.h"
#include "ops/dot.h"

namespace ge {

namespace {

using tile::LoopKind;
using tile::Val;

// The product of a node, as logical indices.
struct Product2 {
  std::vector<Expr> batch;  // output dims before row and column
  std::vector<Expr> a_batch, b_batch;
  Expr m, n, k;
  bool trans_a = false, trans_b = false;
};

bool AllOnes(const std::vector<Expr>& dims) {
  return std::all_of(dims.begin(), dims.end(), [](Expr d) { return d.IsConst(1); });
}

std::vector<Expr> Front(const std::vector<Expr>& dims) { return {dims.begin(), dims.end() - 2}; }

Product2 ProductOf(const Graph& g, const Node& node) {
  const std::vector<Expr>& a = g.value(node.inputs[0]).type.dims;
  const std::vector<Expr>& b = g.value(node.inputs[1]).type.dims;
  const std::vector<Expr>& y = g.value(node.outputs[0]).type.dims;
  Product2 p;
  p.trans_a = AttrOr<int64_t>(node, "transA", 0) != 0;
  p.trans_b = AttrOr<int64_t>(node, "transB", 0) != 0;
  p.batch = Front(y);
  p.a_batch = Front(a);
  p.b_batch = Front(b);
  p.m = y[y.size() - 2];
  p.n = y[y.size() - 1];
  p.k = a[a.size() - (p.trans_a ? 2 : 1)];
  return p;
}

// Batch index of an operand of fewer or broadcast batch dims.
Index OperandIndex(const Index& batch, const std::vector<Expr>& dims, Expr i, Expr j) {
  Index idx(batch.end() - static_cast<std::ptrdiff_t>(dims.size()), batch.end());
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d].IsConst(1)) idx[d] = 0;
  }
  idx.push_back(i);
  idx.push_back(j);
  return idx;
}

class MatMulLowering {
 public:
  // `soc` as the elements have it: its F32Lanes are those of a vector of `type`.
  MatMulLowering(const Graph& g, const Region& region, const SocSpec& soc, const Policy& policy,
                 DType type)
      : g_(g),
        node_(g.node(region.anchor)),
        build_(g, region, soc),
        soc_(soc),
        policy_(policy),
        p_(ProductOf(g, node_)) {
    shared_b_ = AllOnes(p_.b_batch);
    rows_ = shared_b_ ? Product(p_.batch) * p_.m : p_.m;
    auto is_bf16 = [&](int operand) {
      return g.value(node_.inputs[operand]).type.dtype == DType::kBF16;
    };
    pairs_ = soc.HasPairs() && is_bf16(0) && is_bf16(1) && DivisibleBy(p_.k, 2);
    // A matrix unit's tiles have their depth in the code.
    if (soc.amx && !p_.k.IsConst()) pairs_ = false;
    unit_ = OnMatrixUnit(soc, pairs_ ? 2 : 1);
    type_ = pairs_ ? DType::kBF16 : type;
  }

  Lowered Run() {
    NameProblem();
    const std::string& pack = build_.fixed.pack;
    const bool constant_b = g_.IsConstant(node_.inputs[1]);
    if (pack.find('b') != std::string::npos && constant_b)
      build_.Refuse("pack=" + pack, "the second factor is constant, and always packed");
    direct_a_ = pack.find('a') == std::string::npos && Probe(true);
    direct_b_ = !pairs_ && !constant_b && DividesLanes() && pack.find('b') == std::string::npos &&
                Probe(false);
    if (!direct_a_) StageA();
    ChooseTiling();
    if (!direct_b_) PackB();
    build_.AddKernel(fmt::format("brgemm {}{}x{} rows {} of {}{}", pairs_ ? "bf16 " : "", tile_.m,
                                 nb_, ToString(group_), ToString(rows_),
                                 block_ > 0 ? fmt::format(" k by {}", block_) : ""),
                     [&](LoweringContext& c) { Kernel(c); });
    NoteChoice();
    build_.AddBorders();
    return std::move(build_.lowered);
  }

 private:
  bool DividesLanes() const {
    return p_.n.IsConst() && p_.n.value() > 0 && p_.n.value() % soc_.F32Lanes() == 0;
  }

  // Can A (or B) be read where it lies?
  bool Probe(bool a) {
    LoweringContext c(g_, build_.region, soc_);
    bool linear = false;
    c.b().For("p", BatchCount(), LoopKind::kSerial, [&](Expr p) {
      if (a) {
        std::optional<Operand> a = OperandA(c, p);
        linear = a && (!pairs_ || a->k_stride.IsConst(1));
      } else {
        std::optional<Operand> b = OperandB(c, p);
        linear = b && b->row_stride.IsConst(1);
      }
    });
    return linear;
  }

  // Then B is read in whole vectors along k, and stored element by element: the reverse is slower.
  bool ContiguousAlongK() {
    LoweringContext c(g_, build_.region, soc_);
    bool contiguous = false;
    c.b().For("p", BatchCount(), LoopKind::kSerial, [&](Expr p) {
      std::optional<Operand> b = OperandB(c, p);
      contiguous = b && b->k_stride.IsConst(1) && !b->row_stride.IsConst(1);
    });
    return contiguous;
  }

  Expr BatchCount() const { return shared_b_ ? Expr(1) : Product(p_.batch); }

  // Batch and row of output row `r` in batch `p`.
  std::pair<Index, Expr> Place(Expr p, Expr r) const {
    if (!shared_b_) return {SplitIndex(p_.batch, p), r};
    std::vector<Expr> dims = p_.batch;
    dims.push_back(p_.m);
    Index idx = SplitIndex(dims, r);
    Expr row = idx.back();
    idx.pop_back();
    return {idx, row};
  }

  // While alive, batch and row of the output count as one loop over `r`.
  void EnterWalk(LoweringContext& c, const Index& batch, Expr row, Expr r, Expr col) const {
    const Value& out = g_.value(node_.outputs[0]);
    if (!shared_b_ || p_.batch.empty() || !out.type.layout.IsNd() || !out.halo.empty()) return;
    Walk walk;
    walk.view = BufferView(out);
    walk.logical = batch;
    walk.logical.push_back(row);
    walk.logical.push_back(col);
    walk.physical = walk.logical;
    int last = static_cast<int>(p_.batch.size()), first = 0;
    while (first < last && p_.batch[first].IsConst(1)) ++first;
    if (first < last) walk.groups.push_back({first, last, r});
    c.walk = std::move(walk);
  }

  std::optional<Operand> OperandA(LoweringContext& c, Expr p) {
    Expr r = g_.arena().Fresh("row", {.lo = 0, .extent = rows_});
    Expr k = g_.arena().Fresh("k", {.lo = 0, .extent = p_.k});
    auto [batch, row] = Place(p, r);
    EnterWalk(c, batch, row, r, 0);
    Index idx = p_.trans_a ? OperandIndex(batch, p_.a_batch, k, row)
                           : OperandIndex(batch, p_.a_batch, row, k);
    Val v = c.Read(node_.inputs[0], idx);
    c.walk.reset();
    return AsOperand(c.b(), v, r, k, type_);
  }

  // row_stride is that of the column.
  std::optional<Operand> OperandB(LoweringContext& c, Expr p) {
    Expr col = g_.arena().Fresh("col", {.lo = 0, .extent = p_.n});
    Expr k = g_.arena().Fresh("k", {.lo = 0, .extent = p_.k});
    return AsOperand(c.b(), ReadB(c, SplitIndex(p_.batch, p), k, col), col, k, type_);
  }

  Val ReadB(LoweringContext& c, const Index& batch, Expr k, Expr col) {
    Index idx = p_.trans_b ? OperandIndex(batch, p_.b_batch, col, k)
                           : OperandIndex(batch, p_.b_batch, k, col);
    return c.Read(node_.inputs[1], idx);
  }

  void StageA() {
    a_temp_ = build_.AddTemp(BatchCount() * rows_ * p_.k * BytesFor(type_, 1));
    build_.AddKernel("copy A", [&](LoweringContext& c) {
      int temp = c.AddArg({KernelArg::Kind::kTemp, a_temp_}, "a", type_,
                          BatchCount() * rows_ * p_.k, true);
      LoopPolicy policy;
      policy.ns_per_iteration = 0.2;
      LoopReport report;
      NestLoops(
          c.b(), {BatchCount(), rows_, p_.k}, true, policy,
          [&](const Index& i) {
            auto [batch, row] = Place(i[0], i[1]);
            Index idx = p_.trans_a ? OperandIndex(batch, p_.a_batch, i[2], row)
                                   : OperandIndex(batch, p_.a_batch, row, i[2]);
            c.b().Store(temp, (i[0] * rows_ + i[1]) * p_.k + i[2], c.Read(node_.inputs[0], idx));
          },
          &report);
    });
  }

  void NameProblem() {
    build_.Fix(policy_, fmt::format("{} {} {}x{}x{}", shared_b_ ? "gemm" : "gemms", Name(type_),
                                    rows_.IsConst() ? ToString(rows_) : "n", HintValue(p_.n),
                                    std::max<int64_t>(HintValue(p_.k), 1)));
    build_.NoConvolution();
  }

  // Blocks of the depth: their sums wait in the worker's scratch, so the rows of a task are known.
  void ChooseBlock() {
    const int64_t block = build_.fixed.k;
    const int64_t k = p_.k.IsConst() ? p_.k.value() : 0, steps = pairs_ ? 2 : 1;
    if (block == 0 || block == k) return;
    if (!rows_.IsConst() || block > k || block % steps != 0)
      return build_.Refuse(fmt::format("k={}", block),
                           fmt::format("rows and depth must be known, and a block is {} of {}",
                                       steps == 2 ? "an even number" : "a part", ToString(p_.k)));
    block_ = block;
  }

  void NoteChoice() {
    const int64_t k = std::max<int64_t>(HintValue(p_.k), 1);
    DotChoice chosen = build_.fixed;
    chosen.m = tile_.m, chosen.nv = tile_.nv, chosen.rows = HintValue(group_), chosen.k = block_;
    chosen.order = panel_outside_ ? "nm" : "mn";
    OpenDot d;
    d.line = std::max<int64_t>(HintValue(rows_), 1), d.cols = HintValue(p_.n), d.depth = k;
    d.element_bytes = BytesFor(type_, 1), d.cols_per_panel = direct_b_ ? p_.n.value() : 0;
    d.height = rows_.IsConst() ? 0 : kMostSymbolicRows;
    d.blocks = rows_.IsConst() && p_.k.IsConst();
    build_.NoteChoice(chosen,
                      unit_ ? UnitChoices(rows_, d.cols, chosen) : RankChoices(d, chosen, soc_));
  }

  void ChooseTiling() {
    const int w = soc_.F32Lanes();
    const int64_t rows = HintValue(rows_), cols = HintValue(p_.n),
                  k = std::max<int64_t>(HintValue(p_.k), 1);
    tile_ = build_.Tile(rows_, cols, direct_b_ ? p_.n.value() : 0, false, pairs_ ? 2 : 1);
    ChooseBlock();
    nb_ = tile_.nv * w;
    panels_ = CeilDiv(p_.n, nb_);
    // Rows of a chunk: its part of A in half of L2, work of 40 us or more, and 8 chunks if there is
    // enough.
    const double ns_per_row =
        static_cast<double>(k) * nb_ / MacsPerCycle(soc_, pairs_ ? 2 : 1) / soc_.ghz;
    auto round = [&](double r) {
      return std::max<int64_t>(static_cast<int64_t>(r) / tile_.m, 1) * tile_.m;
    };
    // Of unknown many rows: enough to be worth the arithmetic before a chunk.
    int64_t group = rows_.IsConst() ? rows : round(std::clamp(20000 / ns_per_row, 128.0, 512.0));
    const int64_t fits =
        round(static_cast<double>(soc_.l2_bytes) / 2 / static_cast<double>(BytesFor(type_, 1) * k));
    group = std::min(group, std::max(fits, round(32)));
    const double chunks =
        static_cast<double>(HintValue(panels_) * std::max<int64_t>(HintValue(BatchCount()), 1));
    const double wanted = std::max(1.0, 8 / chunks);
    const int64_t smaller =
        wanted <= 1 ? rows
                    : round(std::max(static_cast<double>(rows) / wanted, 20000 / ns_per_row));
    group = build_.TaskRows(std::min(group, std::max<int64_t>(smaller, tile_.m)), rows_);
    // Groups of equal size, unless they are fixed: a short last one is a kernel of its own.
    groups_ = CeilDiv(rows_, group);
    group_ = group == build_.fixed.rows
                 ? Expr(group)
                 : CeilDiv(rows_, rows_.IsConst() ? groups_ : Max(groups_, 1));
    // A is read once per panel if panels are outside, B once per group if groups are.
    panel_outside_ =
        static_cast<double>(cols) / static_cast<double>(group) * static_cast<double>(k) >
        static_cast<double>(rows) / nb_ * static_cast<double>(k);
    if (!build_.fixed.order.empty()) panel_outside_ = build_.fixed.order == "nm";
  }

  void PackB() {
    const Constant* constant = g_.ConstantOf(node_.inputs[1]);
    if (constant != nullptr) return PackConstant(*constant);
    b_temp_ = build_.AddTemp(BatchCount() * panels_ * p_.k * nb_ * BytesFor(type_, 1));
    const bool along_k = (pairs_ || type_ == DType::kF64) && ContiguousAlongK();
    build_.AddKernel("pack B", [&](LoweringContext& c) {
      tile::Builder& b = c.b();
      int temp = c.AddArg({KernelArg::Kind::kTemp, b_temp_}, "b", type_,
                          BatchCount() * panels_ * p_.k * nb_, true);
      b.For("p", BatchCount() * panels_, LoopKind::kParallel, [&](Expr p) {
        Index batch = SplitIndex(p_.batch, panels_.IsConst(1) ? p : FloorDiv(p, panels_));
        Expr first = panels_.IsConst(1) ? Expr(0) : Mod(p, panels_) * nb_;
        if (along_k) {
          b.For("c", nb_, LoopKind::kSerial, [&](Expr col) {
            b.For("k", p_.k, LoopKind::kVector,
                  [&](Expr k) { PackElement(c, temp, batch, first, p, k, col); });
          });
          return;
        }
        b.For("k", p_.k, LoopKind::kSerial, [&](Expr k) {
          b.For("c", nb_, LoopKind::kVector,
                [&](Expr col) { PackElement(c, temp, batch, first, p, k, col); });
        });
      });
    });
  }

  void PackElement(LoweringContext& c, int temp, const Index& batch, Expr first, Expr p, Expr k,
                   Expr col) {
    tile::Builder& b = c.b();
    Expr at = pairs_ ? p * p_.k * nb_ + FloorDiv(k, 2) * (2 * nb_) + col * 2 + Mod(k, 2)
                     : (p * p_.k + k) * nb_ + col;
    if (DivisibleBy(p_.n, nb_)) return b.Store(temp, at, ReadB(c, batch, k, first + col));
    Val inside = b.Cast(b.Index(Lt(first + col, p_.n)), DType::kBool);
    Val v = ReadB(c, batch, k, Min(first + col, p_.n - 1));
    b.Store(temp, at, b.Select(inside, v, b.Const(v.type(), 0)));
  }

  // The most common case of PackConstant's order, in the order of the source: most of the time that
  // a file of a large model takes is in here.
  static void PackFloats(const float* from, int64_t k, int64_t n, int64_t nb, bool trans,
                         float* out) {
    for (int64_t first = 0; first < n; first += nb, out += k * nb) {
      const int64_t width = std::min(nb, n - first);
      if (width < nb) std::fill(out, out + k * nb, 0.0f);
      if (!trans) {
        for (int64_t row = 0; row < k; ++row)
          std::copy_n(from + row * n + first, width, out + row * nb);
        continue;
      }
      for (int64_t col = 0; col < width; ++col)
        for (int64_t row = 0; row < k; ++row) out[row * nb + col] = from[(first + col) * k + row];
    }
  }

  void PackConstant(const Constant&) {
    const int64_t k = p_.k.value(), n = p_.n.value(), nb = nb_, panels = panels_.value();
    const bool trans = p_.trans_b;
    const int group = pairs_ ? 2 : 1;
    const DType type = type_;
    Pack pack;
    pack.source = node_.inputs[1];
    pack.key =
        fmt::format("gemm {}panels of {}{}", pairs_ ? "bf16 " : "", nb, trans ? " transposed" : "");
    pack.bytes = panels * k * nb * BytesFor(type_, 1);
    pack.fill = [=](const Constant& source, std::byte* out) {
      if (type == DType::kF32 && source.dtype == DType::kF32)
        return PackFloats(reinterpret_cast<const float*>(source.bytes.data()), k, n, nb, trans,
                          reinterpret_cast<float*>(out));
      int64_t to = 0;
      for (int64_t p = 0; p < panels; ++p) {
        for (int64_t i = 0; i < k * nb; ++i, ++to) {
          const int64_t row = i / (nb * group) * group + i % group, col = p * nb + i / group % nb;
          const int64_t from = trans ? col * k + row : row * n + col;
          if (type == DType::kF64)
            StoreElement<double>(
                type, out, to,
                col >= n ? 0 : LoadElement<double>(source.dtype, source.bytes.data(), from));
          else
            StoreElement<float>(type, out, to, col >= n ? 0 : FloatAt(source, from));
        }
      }
    };
    b_pack_ = build_.AddPack(std::move(pack));
  }

  void Kernel(LoweringContext& c) {
    tile::Builder& b = c.b();
    a_buffer_ = b_buffer_ = -1;
    if (a_temp_ >= 0) {
      a_buffer_ = c.AddArg({KernelArg::Kind::kTemp, a_temp_}, "a", type_,
                           BatchCount() * rows_ * p_.k, false);
    }
    Expr b_elements = BatchCount() * panels_ * p_.k * nb_;
    if (b_pack_ >= 0)
      b_buffer_ = c.AddArg({KernelArg::Kind::kPack, b_pack_}, "b", type_, b_elements, false);
    if (b_temp_ >= 0)
      b_buffer_ = c.AddArg({KernelArg::Kind::kTemp, b_temp_}, "b", type_, b_elements, false);
    b.For("p", BatchCount() * panels_ * groups_, LoopKind::kParallel, [&](Expr p) {
      Expr batch = BatchCount().IsConst(1) ? Expr(0) : FloorDiv(p, panels_ * groups_);
      Expr in_batch = BatchCount().IsConst(1) ? p : Mod(p, panels_ * groups_);
      Expr inner = panel_outside_ ? groups_ : panels_;
      Expr outer_index = inner.IsConst(1) ? in_batch : FloorDiv(in_batch, inner);
      Expr inner_index = inner.IsConst(1) ? Expr(0) : Mod(in_batch, inner);
      Chunk(c, batch, panel_outside_ ? outer_index : inner_index,
            panel_outside_ ? inner_index : outer_index);
    });
  }

  void Chunk(LoweringContext& c, Expr batch, Expr panel, Expr group) {
    Operand a, b;
    if (a_temp_ >= 0) {
      a = {a_buffer_, batch * rows_ * p_.k, p_.k, 1};
    } else {
      a = *OperandA(c, batch);
    }
    if (direct_b_) {
      b = *OperandB(c, batch);
      b.base = b.base + panel * nb_;
    } else {
      b = {b_buffer_, (batch * panels_ + panel) * p_.k * nb_, 1, nb_};
    }
    Expr first = group * group_;
    auto rows = [&](Expr count) {
      if (block_ > 0) return Blocks(c, a, b, batch, panel, first, count);
      const auto tile = [&](Expr r, int m) {
        Multiply(c, a, b, panel, {first + r, m}, {0, p_.k}, [&](Expr row, Expr col, Val acc) {
          Finish(c, batch, panel, first + r + row, col, acc);
        });
      };
      unit_ ? ForRowTiles(c.b(), count, tile_.m, tile)
            : ForEvenRowTiles(c.b(), count, tile_.m, tile);
    };
    if (!rows_.IsConst()) return rows(Min(group_, rows_ - first));
    const int64_t whole = rows_.value() / group_.value(), rest = rows_.value() % group_.value();
    if (rest == 0) return rows(group_);
    if (whole == 0) return rows(rest);
    c.b().If(
        c.b().Cast(c.b().Index(Lt(group, whole)), DType::kBool), [&] { rows(group_); },
        [&] { rows(rest); });
  }

  // All rows of a task for one block of the depth, then for the next: a block of B stays in L1.
  void Blocks(LoweringContext& c, const Operand& a, const Operand& b, Expr batch, Expr panel,
              Expr first, Expr count) {
    tile::Builder& t = c.b();
    const int64_t k = p_.k.value(), last = (k - 1) / block_ * block_;
    const DType type = type_ == DType::kF64 ? type_ : DType::kF32;
    const int sums = t.Alloc("sums", type, count * nb_);
    t.For("r", count, LoopKind::kSerial, [&](Expr r) {
      t.For("c", nb_, LoopKind::kVector,
            [&](Expr col) { t.Store(sums, r * nb_ + col, t.Const(type, 0)); });
    });
    const auto rows = [&](std::pair<Expr, Expr> range, bool whole) {
      ForEvenRowTiles(t, count, tile_.m, [&](Expr r, int m) {
        Multiply(c, a, b, panel, {first + r, m}, range, [&](Expr row, Expr col, Val acc) {
          const Expr at = (r + row) * nb_ + col;
          const Val sum = t.Load(sums, at) + acc;
          if (whole) return Finish(c, batch, panel, first + r + row, col, sum);
          t.Store(sums, at, sum);
        });
      });
    };
    t.For("kb", last / block_, LoopKind::kSerial,
          [&](Expr i) { rows({i * block_, block_}, false); });
    rows({last, k - last}, true);
  }

  // A tile (first row, rows) over steps (first, number) of the depth.
  void Multiply(LoweringContext& c, const Operand& a, const Operand& b, Expr panel,
                std::pair<Expr, int> rows, std::pair<Expr, Expr> steps,
                const std::function<void(Expr, Expr, Val)>& body) {
    tile::BrGemm g;
    g.m = rows.second;
    g.n = nb_;
    g.n_valid = DivisibleBy(p_.n, nb_) ? Expr(nb_) : Min(nb_, p_.n - panel * nb_);
    g.k = steps.second;
    g.a_buffer = a.buffer;
    g.a = a.base + rows.first * a.row_stride + steps.first * a.k_stride;
    g.a_row = a.row_stride;
    g.a_k = a.k_stride;
    g.b_buffer = b.buffer;
    g.b = b.base + steps.first * b.k_stride;
    g.k_group = pairs_ ? 2 : 1;
    g.b_k = b.k_stride * g.k_group;
    if (b_pack_ >= 0)
      g.prefetch = WeightsAhead(soc_, p_.k.value() * nb_, panels_.value(), BytesFor(type_, 1));
    c.b().Gemm(g, body);
  }

  // Row r of the result (of its batch, or of all with one B) has its whole sum.
  void Finish(LoweringContext& c, Expr batch, Expr panel, Expr r, Expr col, Val acc) {
    auto [place, at] = Place(batch, r);
    Expr column = panel * nb_ + col;
    EnterWalk(c, place, at, r, column);
    Index idx = place;
    idx.push_back(at);
    idx.push_back(column);
    c.Yield(node_.outputs[0], idx, Epilogue(c, idx, acc));
    c.walk.reset();
  }

  // Gemm's alpha and beta * C.
  Val Epilogue(LoweringContext& c, const Index& idx, Val acc) {
    if (node_.op->name != "Gemm") return acc;
    const double alpha = AttrOr<float>(node_, "alpha", 1.0f),
                 beta = AttrOr<float>(node_, "beta", 1.0f);
    if (alpha != 1) acc = acc * alpha;
    if (node_.inputs.size() < 3 || node_.inputs[2] == kNone || beta == 0) return acc;
    const Index at = BroadcastIndex(g_.value(node_.inputs[2]).type.dims,
                                    g_.value(node_.outputs[0]).type.dims, idx);
    Val bias = c.Read(node_.inputs[2], at);
    return acc + (beta == 1 ? bias : bias * beta);
  }

  const Graph& g_;
  const Node& node_;
  CubeBuild build_;
  const SocSpec& soc_;
  const Policy& policy_;
  Product2 p_;
  bool pairs_ = false, unit_ = false;  // bf16; on a matrix unit
  DType type_ = DType::kF32;           // of A and B in memory
  bool shared_b_ = false, direct_a_ = false, direct_b_ = false, panel_outside_ = true;
  Expr rows_, panels_;
  Expr group_, groups_;  // rows of a chunk, and how many such there are
  GemmTile tile_;
  int64_t block_ = 0;  // of the depth; 0: as a whole
  int nb_ = 0;
  int a_temp_ = -1, b_temp_ = -1, b_pack_ = -1, a_buffer_ = -1, b_buffer_ = -1;
};

}  // namespace

bool SupportsMatMul(const Graph& g, const Region& region) {
  const Node& node = g.node(region.anchor);
  const TensorType& a = g.value(node.inputs[0]).type;
  const TensorType& b = g.value(node.inputs[1]).type;
  if (a.rank() < 2 || b.rank() < 2 || !IsFloat(a.dtype) || !IsFloat(b.dtype) ||
      IsSmallFloat(a.dtype) != IsSmallFloat(b.dtype))
    return false;
  Product2 p = ProductOf(g, node);
  for (Expr e : {p.m, p.n, p.k, Product(p.batch)}) {
    if (e.IsConst(0)) return false;
  }
  if (g.IsConstant(node.inputs[1]) && !AllOnes(p.b_batch)) return false;
  if (g.IsConstant(node.inputs[1]) && !(p.n.IsConst() && p.k.IsConst())) return false;
  // One column: a sum in lanes is faster than a vector that is mostly padding.
  return !p.n.IsConst(1);
}

Lowered LowerCubeMatMul(const Graph& g, const Region& region, const SocSpec& soc,
                        const Policy& policy) {
  const bool doubles = g.value(g.node(region.anchor).inputs[0]).type.dtype == DType::kF64;
  if (!doubles) return MatMulLowering(g, region, soc, policy, DType::kF32).Run();
  SocSpec half = soc;
  half.vector_bytes /= 2;
  return MatMulLowering(g, region, half, policy, DType::kF64).Run();
}

}  // namespace ge
