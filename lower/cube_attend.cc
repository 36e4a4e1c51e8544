// ge.Attend (ops/attend.cc)  Y[p, r, n] = sum_t softmax_t(score[p, r, t]) V[p, t, n]
//
//   grid: batches (heads of K and V) x groups of rows. Heads of Q that share keys are rows of one
//   batch: row r is row r mod s of head r / s.
//   K becomes panels of nb columns in the worker's scratch. For blocks of rows: the scores of all
//   keys (BrGemm; scale and mask are its epilogue) into scratch, each row exponentiated there, the
//   product with V (BrGemm; the epilogue has the reciprocal sums and what consumes Y)
//
// A block's scores stay in the caches of the core: whole rows, so that no maximum is ever
// corrected. Keys that masks hide from all rows of a block, at either end, are left out: their
// weights would be 0.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lower/cube_gemm.h"
#include "ops/attend.h"
#include "ops/dot.h"
#include "ops/rows.h"
#include "ops/shapes.h"

namespace ge {

namespace {

using tile::LoopKind;
using tile::Op;
using tile::ReduceOp;
using tile::Val;

constexpr int64_t kBlockRows = 64;  // whose scores are in scratch at once, at most

// Keys are left out in steps of as many as a reduction takes at once, so that the sum of what stays
// has the same bits.
constexpr int64_t kStep = 64;
// What is added to a score hides it from here on; lower scores are of hidden keys.
constexpr double kHides = -1e30, kOfHidden = -1e29;
constexpr double kFaintest = 1000, kNothing = 110;  // exp(-kNothing) is 0
// The keys of a block: from, to, and are their scores still to be made.
constexpr int kFrom = 0, kTo = 1, kOpen = 2, kRangeSize = 3;

class AttendLowering {
 public:
  AttendLowering(const Graph& g, const Region& region, const SocSpec& soc, const Policy& policy)
      : g_(g), node_(g.node(region.anchor)), build_(g, region, soc) {
    const std::vector<Expr>&q = Dims(kAttendQ), &v = Dims(kAttendV);
    batch_ = {v.begin(), v.end() - 2};
    batches_ = Product(batch_);
    shared_ = AttrOr<int64_t>(node_, "shared", 1);
    rows_of_head_ = q[q.size() - 2];
    rows_ = rows_of_head_ * shared_;
    depth_ = q.back();
    keys_ = v[v.size() - 2];
    columns_ = v.back().value();
    stride_ = CeilDiv(keys_, 16) * 16 + 16;  // rows of scores; no power of two
    const int64_t rows = HintValue(rows_), keys = std::max<int64_t>(HintValue(keys_), 1);
    build_.Fix(policy, fmt::format("attention {}x{}x{}", rows_.IsConst() ? ToString(rows_) : "n",
                                   keys, HintValue(depth_)));
    build_.NoConvolution();
    build_.KeepTileOnly("attention");
    // Heads are chunks; where they are few, parts of them, of whole blocks.
    const int64_t chunks = std::max<int64_t>(HintValue(batches_), 1);
    const int64_t fits = std::max<int64_t>(soc.l2_bytes / 4 / (4 * keys), 16);
    const int64_t wanted = std::min(kBlockRows, fits);
    groups_ = rows_.IsConst() ? std::clamp<int64_t>(8 / chunks, 1, CeilOf(rows, wanted)) : 1;
    group_ = CeilDiv(rows_, groups_);
    const Expr block = rows_.IsConst() ? CeilDiv(group_, CeilDiv(group_, wanted)) : Expr(wanted);
    block_ = block.value();
    const Expr height = rows_.IsConst() ? Expr(block_) : rows_;
    tile_ = build_.Tile(height, keys, 0);
    values_ = ChooseTile(rows_.IsConst() ? block_ : kBlockRows, columns_, soc, columns_,
                         rows_.IsConst() ? 0 : kMostSymbolicRows);
    nb_ = tile_.nv * soc.F32Lanes();
    panels_ = CeilDiv(keys_, nb_);
    const double low = AttrOr<float>(node_, "low", 0.0f);
    leaves_out_ =
        HintValue(keys_) > kStep && (Has(kAttendAllowed) ? low <= -kFaintest : Has(kAttendMask));
  }

  Lowered Run() {
    build_.AddKernel(
        fmt::format("attention {}x{} rows {} of {}", tile_.m, nb_, block_, ToString(rows_)),
        [&](LoweringContext& c) { Kernel(c); });
    NoteChoice();
    build_.AddBorders();
    return std::move(build_.lowered);
  }

 private:
  void NoteChoice() {
    DotChoice chosen = build_.fixed;
    chosen.m = tile_.m, chosen.nv = tile_.nv;
    std::vector<DotChoice> others;
    for (int nv = 1; nv <= 3; ++nv) {
      DotChoice other = chosen;
      other.m = std::min(MaxRows(build_.soc, nv),
                         rows_.IsConst() ? static_cast<int>(block_) : kMostSymbolicRows);
      other.nv = nv;
      if (nv != tile_.nv) others.push_back(other);
    }
    build_.NoteChoice(chosen, std::move(others));
  }

  const std::vector<Expr>& Dims(int input) const {
    return g_.value(node_.inputs[static_cast<size_t>(input)]).type.dims;
  }

  // Index (row, j) of what has the heads of Q.
  Index OfRow(Expr row, Expr j) const {
    Index idx = at_;
    if (shared_ > 1) {
      idx.back() = idx.back() * shared_ + FloorDiv(row, rows_of_head_);
      row = Mod(row, rows_of_head_);
    }
    return Join(idx, {row, j});
  }

  Val At(LoweringContext& c, int input, Expr i, Expr j) const {
    return c.Read(node_.inputs[static_cast<size_t>(input)],
                  input == kAttendQ ? OfRow(i, j) : Join(at_, {i, j}));
  }

  void Kernel(LoweringContext& c) {
    c.b().For("p", batches_ * groups_, LoopKind::kParallel, [&](Expr p) {
      at_ = SplitIndex(batch_, groups_ == 1 ? p : FloorDiv(p, groups_));
      PackKeys(c);
      q_ = Rows(c, kAttendQ, rows_, depth_, false);
      v_ = Rows(c, kAttendV, keys_, columns_, true);
      scores_ = c.b().Alloc("scores", DType::kF32, block_ * stride_);
      tops_ = c.b().Alloc("tops", DType::kF32, block_);
      inverse_ = c.b().Alloc("inverse", DType::kF32, block_);
      if (leaves_out_) range_ = c.b().Alloc("range", DType::kI64, kRangeSize);
      const Expr first = groups_ == 1 ? Expr(0) : Mod(p, groups_) * group_;
      Blocks(c, first, groups_ == 1 ? rows_ : Min(group_, rows_ - first));
    });
  }

  // [panel][d][nb], the last panel filled up with copies of the last key.
  void PackKeys(LoweringContext& c) {
    tile::Builder& b = c.b();
    keys_buffer_ = b.Alloc("keys", DType::kF32, panels_ * depth_ * nb_);
    b.For("panel", panels_, LoopKind::kSerial, [&](Expr panel) {
      b.For("d", depth_, LoopKind::kSerial, [&](Expr d) {
        b.For("c", nb_, LoopKind::kVector, [&](Expr col) {
          Expr key = panel * nb_ + col;
          if (!DivisibleBy(keys_, nb_)) key = Min(key, keys_ - 1);
          b.Store(keys_buffer_, (panel * depth_ + d) * nb_ + col, At(c, kAttendK, d, key));
        });
      });
    });
  }

  // An operand [rows, columns] where it lies, or a copy of it if that is not linear (`vectors`:
  // with columns side by side).
  Operand Rows(LoweringContext& c, int input, Expr rows, Expr columns, bool vectors) {
    tile::Builder& b = c.b();
    Expr i = g_.arena().Fresh("i", {.lo = 0, .extent = rows});
    Expr j = g_.arena().Fresh("j", {.lo = 0, .extent = columns});
    const std::optional<Operand> direct = AsOperand(b, At(c, input, i, j), i, j);
    if (direct && (!vectors || direct->k_stride.IsConst(1))) return *direct;
    const int copy = b.Alloc("copy", DType::kF32, rows * columns);
    b.For("i", rows, LoopKind::kSerial, [&](Expr i) {
      b.For("j", columns, LoopKind::kVector,
            [&](Expr j) { b.Store(copy, i * columns + j, At(c, input, i, j)); });
    });
    return {copy, 0, columns, 1};
  }

  void Blocks(LoweringContext& c, Expr first, Expr count) {
    tile::Builder& b = c.b();
    b.For("block", CeilDiv(group_, block_), LoopKind::kSerial, [&](Expr i) {
      const Expr from = i * block_, left = count - from;
      if (rows_.IsConst() && groups_ == 1 && DivisibleBy(rows_, block_))
        return Block(c, first + from, block_);
      if (!rows_.IsConst()) return Block(c, first + from, Min(block_, left));
      // The block's height is known in all but perhaps the last.
      const Expr rest = groups_ == 1 ? Mod(rows_, block_) : Max(left, 0);
      b.If(
          b.Cast(b.Index(Le(block_, left)), DType::kBool), [&] { Block(c, first + from, block_); },
          [&] { Block(c, first + from, rest); });
    });
  }

  void Block(LoweringContext& c, Expr first, Expr rows) {
    if (!leaves_out_) {
      AllScores(c, first, rows, 0, keys_);
      return Weigh(c, first, rows, 0, keys_);
    }
    tile::Builder& b = c.b();
    FindRange(c, first, rows);
    const std::optional<double> least = LeastTop();
    // A row of hidden keys alone weighs them all: then all are made in a second turn.
    b.For("turn", least ? 2 : 1, LoopKind::kSerial, [&](Expr) {
      b.If(b.Cast(b.Load(range_, kOpen), DType::kBool), [&] {
        AllScores(c, first, rows, Bound(b, kFrom), Bound(b, kTo));
        if (!least) return;
        const Val low = b.Let(b.Reduce(ReduceOp::kOr, {rows}, [&](auto& r) {
          return b.Binary(Op::kLt, b.Load(tops_, r[0]), b.F(*least));
        }));
        b.Store(range_, kOpen, b.Cast(low, DType::kI64));
        b.If(low, [&] { SetRange(b, 0, keys_); });
      });
    });
    Weigh(c, first, rows, Bound(b, kFrom), Bound(b, kTo));
  }

  Expr Bound(tile::Builder& b, int which) const {
    return b.LetIndex(b.Let(b.Load(range_, which)), 0, Bounds(keys_).hi);
  }

  void SetRange(tile::Builder& b, Expr from, Expr to) const {
    b.Store(range_, kFrom, b.Index(from));
    b.Store(range_, kTo, b.Index(to));
  }

  // From the first to the last step with a key that some row sees; all if there is none.
  void FindRange(LoweringContext& c, Expr first, Expr rows) const {
    tile::Builder& b = c.b();
    const Expr steps = CeilDiv(keys_, kStep);
    auto is = [&](int which, Expr value) {
      return b.Binary(Op::kEq, b.Load(range_, which), b.Index(value));
    };
    SetRange(b, 0, 0);
    b.Store(range_, kOpen, b.ConstInt(DType::kI64, 1));
    b.For("step", steps, LoopKind::kSerial, [&](Expr i) {
      b.If(is(kTo, 0), [&] {
        const Expr step = steps - 1 - i;
        b.If(Sees(c, first, rows, step),
             [&] { b.Store(range_, kTo, b.Index(Min((step + 1) * kStep, keys_))); });
      });
    });
    b.If(
        is(kTo, 0), [&] { SetRange(b, 0, keys_); },
        [&] {
          b.For("step", steps, LoopKind::kSerial, [&](Expr step) {
            b.If(is(kFrom, step * kStep), [&] {
              const Val hidden = b.Unary(Op::kNot, Sees(c, first, rows, step));
              b.If(hidden, [&] { b.Store(range_, kFrom, b.Index((step + 1) * kStep)); });
            });
          });
        });
  }

  // Does one of the rows see a key of this step?
  Val Sees(LoweringContext& c, Expr first, Expr rows, Expr step) const {
    tile::Builder& b = c.b();
    bool differ = false;  // rows, in the masks
    for (int mask : {kAttendMask, kAttendAllowed}) {
      if (!Has(static_cast<size_t>(mask))) continue;
      const std::vector<Expr>& dims = Dims(mask);
      for (size_t back : {2, 3})
        if ((back == 2 || shared_ > 1) && dims.size() >= back &&
            !dims[dims.size() - back].IsConst(1))
          differ = true;
    }
    const Expr from = step * kStep;
    const Expr count = DivisibleBy(keys_, kStep) ? Expr(kStep) : Min(kStep, keys_ - from);
    return b.Let(b.Reduce(ReduceOp::kOr, {differ ? rows : Expr(1), count}, [&](auto& i) {
      return b.Unary(Op::kNot, Hidden(c, first + i[0], from + i[1]));
    }));
  }

  Val Hidden(LoweringContext& c, Expr row, Expr key) const {
    tile::Builder& b = c.b();
    auto at_most = [&](Val x, double limit) { return b.Binary(Op::kLe, x, Like(x, limit)); };
    Val mask, hidden;
    if (Has(kAttendMask)) mask = b.Let(Mask(c, kAttendMask, row, key));
    if (Has(kAttendAllowed)) {
      hidden = Mask(c, kAttendAllowed, row, key);
      if (AttrOr<int64_t>(node_, "hides", 0) == 0) hidden = b.Unary(Op::kNot, hidden);
      if (mask.valid()) hidden = b.Binary(Op::kAnd, hidden, at_most(mask, 0));
    }
    if (!mask.valid()) return hidden;
    const Val by_mask = at_most(mask, kHides);
    return hidden.valid() ? b.Binary(Op::kOr, hidden, by_mask) : by_mask;
  }

  // The largest score of a row that sees a key is at least this; nullopt: hidden ones are -inf.
  std::optional<double> LeastTop() const {
    std::optional<double> least;
    if (Has(kAttendMask)) least = kOfHidden;
    const double low = AttrOr<float>(node_, "low", 0.0f);
    if (Has(kAttendAllowed) && std::isfinite(low))
      least = std::max(least.value_or(low), low + std::max(kNothing, -low / 1024));
    return least;
  }

  void AllScores(LoweringContext& c, Expr first, Expr rows, Expr from, Expr to) {
    tile::Builder& b = c.b();
    const Expr before = FloorDiv(from, nb_);
    Loop(b, "panel", CeilDiv(to, nb_) - before, [&](Expr panel) {
      ForEvenRowTiles(b, rows, tile_.m,
                      [&](Expr r, int m) { Scores(c, before + panel, first, r, m); });
    });
    b.For("r", rows, LoopKind::kSerial,
          [&](Expr r) { b.Store(tops_, r, Top(b, r * stride_ + from, to - from)); });
  }

  // The rest, in loops of their own: a row's steps depend on each other, so that rows must overlap.
  void Weigh(LoweringContext& c, Expr first, Expr rows, Expr from, Expr to) {
    tile::Builder& b = c.b();
    b.For("r", rows, LoopKind::kSerial, [&](Expr r) {
      const Val top = b.Load(tops_, r);
      b.Store(inverse_, r, Exponentials(b, scores_, r * stride_ + from, to - from, top));
    });
    const int64_t width = values_.nv * build_.soc.F32Lanes();
    Loop(b, "panel", columns_ / width, [&](Expr panel) {
      ForEvenRowTiles(b, rows, values_.m, [&](Expr r, int m) {
        Values(c, panel * width, first, r, m, from, to - from);
      });
    });
  }

  static void Loop(tile::Builder& b, std::string_view name, Expr count,
                   const std::function<void(Expr)>& body) {
    count.IsConst(1) ? body(0) : b.For(name, count, LoopKind::kSerial, body);
  }

  void Scores(LoweringContext& c, Expr panel, Expr first, Expr r, int m) {
    tile::BrGemm g;
    g.m = m;
    g.n = nb_;
    g.n_valid = DivisibleBy(keys_, nb_) ? Expr(nb_) : Min(nb_, keys_ - panel * nb_);
    g.k = depth_;
    g.a_buffer = q_.buffer;
    g.a = q_.base + (first + r) * q_.row_stride;
    g.a_row = q_.row_stride;
    g.a_k = q_.k_stride;
    g.b_buffer = keys_buffer_;
    g.b = panel * depth_ * nb_;
    g.b_k = nb_;
    c.b().Gemm(g, [&](Expr row, Expr col, Val acc) {
      const Expr key = panel * nb_ + col;
      c.b().Store(scores_, (r + row) * stride_ + key, Score(c, acc, first + r + row, key));
    });
  }

  // The product scaled and masked.
  Val Score(LoweringContext& c, Val acc, Expr row, Expr key) const {
    const double scale = AttrOr<float>(node_, "scale", 1.0f);
    Val score = scale == 1 ? acc : acc * scale;
    if (Has(kAttendAllowed)) {
      const Val low = Like(score, AttrOr<float>(node_, "low", 0.0f));
      const Val set = Mask(c, kAttendAllowed, row, key);
      score = AttrOr<int64_t>(node_, "hides", 0) != 0 ? c.b().Select(set, low, score)
                                                      : c.b().Select(set, score, low);
    }
    return Has(kAttendMask) ? score + Mask(c, kAttendMask, row, key) : score;
  }

  bool Has(size_t input) const {
    return node_.inputs.size() > input && node_.inputs[input] != kNone;
  }

  Val Mask(LoweringContext& c, int input, Expr row, Expr key) const {
    std::vector<Expr> full = Dims(kAttendQ);
    full.back() = keys_;
    return c.Read(node_.inputs[static_cast<size_t>(input)],
                  BroadcastIndex(Dims(input), full, OfRow(row, key)));
  }

  Val Top(tile::Builder& b, Expr at, Expr keys) const {
    const Val top = Largest(b, scores_, at, keys);
    return AttrOr<int64_t>(node_, "empty", 0) != 0 ? Finite(top) : top;
  }

  void Values(LoweringContext& c, Expr column, Expr first, Expr r, int m, Expr from, Expr keys) {
    tile::BrGemm g;
    g.m = m;
    g.n = values_.nv * build_.soc.F32Lanes();
    g.n_valid = g.n;
    g.k = keys;
    g.a_buffer = scores_;
    g.a = r * stride_ + from;
    g.a_row = stride_;
    g.a_k = 1;
    g.b_buffer = v_.buffer;
    g.b = v_.base + from * v_.row_stride + column;
    g.b_k = v_.row_stride;
    c.b().Gemm(g, [&](Expr row, Expr col, Val acc) {
      c.Yield(node_.outputs[0], OfRow(first + r + row, column + col),
              acc * c.b().Load(inverse_, r + row));
    });
  }

  const Graph& g_;
  const Node& node_;
  CubeBuild build_;
  std::vector<Expr> batch_;
  Expr batches_, rows_of_head_, rows_, depth_, keys_, stride_, panels_;
  int64_t shared_ = 1, columns_ = 0, groups_ = 1, block_ = 1;
  Expr group_;
  GemmTile tile_, values_;
  int nb_ = 0;
  bool leaves_out_ = false;
  // Of the chunk under construction.
  Index at_;
  Operand q_, v_;
  int keys_buffer_ = -1, scores_ = -1, tops_ = -1, inverse_ = -1, range_ = -1;
};

}  // namespace

bool SupportsAttend(const Graph& g, const Region& region, const SocSpec& soc) {
  const Node& node = g.node(region.anchor);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId v = node.inputs[i];
    if (v != kNone && i != kAttendAllowed && !IsSmallFloat(g.value(v).type.dtype)) return false;
  }
  const std::vector<Expr>& q = g.value(node.inputs[kAttendQ]).type.dims;
  const std::vector<Expr>& v = g.value(node.inputs[kAttendV]).type.dims;
  for (Expr e : {Product(q), Product(v)})
    if (e.IsConst(0)) return false;
  return v.back().IsConst() && v.back().value() % soc.F32Lanes() == 0;
}

Lowered LowerCubeAttend(const Graph& g, const Region& region, const SocSpec& soc,
                        const Policy& policy) {
  return AttendLowering(g, region, soc, policy).Run();
}

}  // namespace ge
