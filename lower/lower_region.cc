// The general path: each kernel is built twice, first to see what it reads and costs, then with
// just those arguments and with chunks of a sensible size.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "lower/cost.h"
#include "lower/cube.h"
#include "lower/lower.h"
#include "lower/lowering_context.h"
#include "lower/region_walk.h"

namespace ge {
namespace {

constexpr int kMostNests = 256;  // kernels of a region

using Build = std::function<void(LoweringContext&, const LoopPolicy&, LoopReport*)>;

class RegionLowering {
 public:
  RegionLowering(const Graph& g, const Region& region, const SocSpec& soc)
      : g_(g), region_(region), soc_(soc) {
    for (ValueId v : region.outputs)
      if (BitWidth(g.value(v).type.dtype) < 8) vector_store_ = false;
  }

  Lowered Run() {
    if (KnownByFacts())
      Add([&](LoweringContext& c, const LoopPolicy&, LoopReport*) { StoreFacts(c); });
    else if (region_.anchor == kNone)
      Elements();
    else
      Anchor();
    if (lowered_.kernels.size() > 1)
      for (size_t i = 0; i < lowered_.kernels.size(); ++i)
        lowered_.kernels[i].kernel.name += fmt::format(".{}", i);
    for (ValueId v : region_.outputs)
      GE_CHECK(stored_.contains(v), "region " + region_.name + " never stores " + g_.value(v).name);
    return std::move(lowered_);
  }

 private:
  bool KnownByFacts() const {
    return std::all_of(region_.outputs.begin(), region_.outputs.end(), [&](ValueId v) {
      return g_.value(v).elems && g_.value(v).type.layout.IsNd() && g_.value(v).halo.empty();
    });
  }

  void StoreFacts(LoweringContext& c) {
    tile::Builder& b = c.b();
    for (ValueId v : region_.outputs) {
      const std::vector<Expr>& elems = *g_.value(v).elems;
      DType type = ComputeType(g_.value(v).type.dtype);
      int arg = c.ArgOf(v);
      for (size_t i = 0; i < elems.size(); ++i) {
        tile::Val e = elems[i].IsConst() ? b.ConstInt(type, elems[i].value())
                                         : b.Cast(b.Index(elems[i]), type);
        b.Store(arg, Expr(i), e);
      }
    }
  }

  // Builds one kernel: a trial for arguments and cost, then the final one.
  void Add(const Build& build, bool parallel = true) {
    LoopPolicy policy;
    policy.parallel = false;
    policy.vector_store = vector_store_;
    LoopReport report;
    LoweringContext trial(g_, region_, soc_);
    build(trial, policy, &report);
    std::set<ValueId> used = trial.used();
    covered_.insert(trial.covered().begin(), trial.covered().end());
    KernelCost cost = EstimateCost(trial.b().kernel(), soc_);
    policy.parallel = parallel;
    policy.crossed = CrossedAxis(trial.b().kernel());
    policy.ns_per_iteration = cost.ns / std::max(report.iterations, 1.0);
    LoopReport final_report;
    LoweringContext context(g_, region_, soc_, &used);
    build(context, policy, &final_report);
    for (ValueId v : region_.outputs)
      if (used.contains(v)) stored_.insert(v);
    LoweredKernel kernel = context.Finish(final_report.schedule);
    for (KernelArg& arg : kernel.args)
      if (arg.kind == KernelArg::Kind::kPack) arg.id = PackId(context.packs()[arg.id]);
    if (Status fault = tile::Verify(kernel.kernel); !fault.ok())
      GE_CHECK(false, "kernel " + region_.name + ": " + fault.message() + "\n" +
                          tile::ToString(kernel.kernel));
    lowered_.kernels.push_back(std::move(kernel));
  }

  int PackId(const Pack& pack) {
    for (size_t i = 0; i < lowered_.packs.size(); ++i)
      if (lowered_.packs[i].source == pack.source && lowered_.packs[i].key == pack.key)
        return static_cast<int>(i);
    lowered_.packs.push_back(pack);
    return static_cast<int>(lowered_.packs.size()) - 1;
  }

  // Element nodes only: outputs with one storage share a kernel.
  void Elements() {
    std::vector<ValueId> rest = region_.outputs;
    while (!rest.empty()) {
      View view = BufferView(g_.value(rest[0]));
      std::vector<ValueId> now, later;
      for (ValueId v : rest)
        (SameStorage(view, BufferView(g_.value(v))) ? now : later).push_back(v);
      const int64_t tile = TileOfInput(view);
      Add([&](LoweringContext& c, const LoopPolicy& policy, LoopReport* report) {
        if (tile > 0) return WalkTiles(c, view, now, tile, policy, report);
        WalkStorage(c, view, now, policy, [&](const Index& idx) { c.StoreAll(now, idx); }, report);
      });
      rest = std::move(later);
    }
  }

  // The channels of a block of an input, if the storage at hand is plain and would be walked along
  // rows, which are far apart there: 0 if not.
  int64_t TileOfInput(const View& view) const {
    const size_t rank = view.dims.size();
    if (!vector_store_ || !view.layout.IsNd() || HasBorder(view) || rank < 3) return 0;
    if (HintValue(view.dims.back()) < soc_.F32Lanes()) return 0;
    for (ValueId v : region_.inputs) {
      const TensorType& type = g_.value(v).type;
      const bool blocked = type.layout.dims.size() == rank + 1 && type.dims == view.dims &&
                           type.layout == Nc1hwc0(static_cast<int>(rank), type.layout.dims[1].tile);
      if (blocked) return type.layout.dims[1].tile;
    }
    return 0;
  }

  // Channels of a block around the last axis, so that both sides are read and written in order.
  void WalkTiles(LoweringContext& c, const View& view, const std::vector<ValueId>& outputs,
                 int64_t tile, LoopPolicy policy, LoopReport* report) {
    policy.crossed = -1;  // the loops are in that order already
    std::vector<Expr> outer(view.dims.begin(), view.dims.end() - 1);
    const Expr channels = outer[1];
    outer[1] = CeilDiv(channels, tile);
    NestLoops(
        c.b(), outer, false, policy,
        [&](const Index& place) {
          const Expr first = place[1] * tile;
          const Expr count = DivisibleBy(channels, tile) ? Expr(tile) : Min(tile, channels - first);
          c.b().For("c", count, tile::LoopKind::kSerial, [&](Expr i) {
            c.b().For("x", view.dims.back(), tile::LoopKind::kVector, [&](Expr x) {
              Index idx = place;
              idx[1] = first + i;
              idx.push_back(x);
              c.StoreAll(outputs, idx);
            });
          });
        },
        report);
  }

  void Anchor() {
    // What stands outside the op's loops, and how many loop nests it has.
    int nests = 0;
    bool outside = false;
    {
      LoweringContext probe(g_, region_, soc_);
      LoopPolicy policy{.parallel = false, .vector_store = vector_store_};
      size_t seen = 0;
      LoopReport report;
      RunAnchor(probe, [&](auto& extents, bool vector, auto& body) {
        size_t now = probe.b().kernel().body.body.size();
        outside |= now != seen;
        ++nests;
        ForEach(probe, extents, vector, policy, body, &report);
        seen = probe.b().kernel().body.body.size();
      });
      outside |= probe.b().kernel().body.body.size() != seen;
    }
    // Each kernel walks past all nests to find its own: their number is bounded.
    const int per_kernel = outside ? std::max(nests, 1) : (nests + kMostNests - 1) / kMostNests;
    for (int first = 0; first < std::max(nests, outside ? 1 : 0); first += per_kernel)
      Add(
          [&](LoweringContext& c, const LoopPolicy& policy, LoopReport* report) {
            int nest = 0;
            RunAnchor(c, [&](auto& extents, bool vector, auto& body) {
              if (nest >= first && nest < first + per_kernel)
                ForEach(c, extents, vector, policy, body, report);
              ++nest;
            });
          },
          per_kernel == 1 && !outside);
    Borders();
  }

  void RunAnchor(LoweringContext& c, const NodeLowering::Loops& loops) {
    NodeLowering face(c, region_.anchor, loops);
    g_.node(region_.anchor).op->lower(face);
  }

  // In the order of storage where the space is that of a blocked or bordered output; in the order
  // of a blocked operand where it has the same rank.
  void ForEach(LoweringContext& c, const std::vector<Expr>& extents, bool vector,
               const LoopPolicy& policy, const std::function<void(const Index&)>& body,
               LoopReport* report) {
    std::vector<ValueId> along;
    Layout blocked;
    auto consider = [&](ValueId v) {
      const TensorType& type = g_.value(v).type;
      if (blocked.IsNd() && type.rank() == static_cast<int>(extents.size()) && !g_.IsConstant(v))
        blocked = type.layout;
    };
    for (ValueId v : region_.outputs) {
      const View& view = c.ViewOf(v);
      bool special = HasBorder(view) || !g_.value(v).type.layout.IsNd();
      bool same =
          along.empty() ? special && view.dims == extents : SameStorage(view, c.ViewOf(along[0]));
      if (same) along.push_back(v);
      consider(v);
    }
    if (!along.empty() && (vector || !g_.value(along[0]).type.layout.IsNd()))
      return WalkStorage(c, View(c.ViewOf(along[0])), along, policy, body, report);
    for (ValueId v : region_.inputs) consider(v);
    if (!blocked.IsNd())
      return WalkStorage(c, DenseView(blocked, extents), {}, policy, body, report);
    NestLoops(c.b(), extents, vector, policy, body, report);
  }

  // Pad lanes and halos that no walk has filled.
  void Borders() {
    std::vector<ValueId> rest;
    for (ValueId v : region_.outputs)
      if (!covered_.contains(v) && HasBorder(BufferView(g_.value(v)))) rest.push_back(v);
    while (!rest.empty()) {
      View view = BufferView(g_.value(rest[0]));
      std::vector<ValueId> now, later;
      for (ValueId v : rest)
        (SameStorage(view, BufferView(g_.value(v))) ? now : later).push_back(v);
      Add([&](LoweringContext& c, const LoopPolicy& policy, LoopReport* report) {
        FillBorders(c, now, policy, report);
      });
      rest = std::move(later);
    }
  }

  const Graph& g_;
  const Region& region_;
  const SocSpec& soc_;
  Lowered lowered_;
  bool vector_store_ = true;
  std::set<ValueId> covered_, stored_;
};

}  // namespace

Lowered LowerRegion(const Graph& g, const Region& region, const SocSpec& soc,
                    const Policy& policy) {
  if (region.engine == Engine::kHost || region.engine == Engine::kControl) return {};
  if (CubeSupports(g, region, soc, policy)) return LowerCube(g, region, soc, policy);
  return RegionLowering(g, region, soc).Run();
}

}  // namespace ge
