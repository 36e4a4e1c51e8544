// One kernel of a region under construction: what Load, Yield and ForEach of its nodes mean.
//
//   Read(v, idx)   known facts and splat constants become constants; a value made by an element
//   node of
//                  the region is computed in place; the anchor's output is the value just yielded;
//                  all else is a load through the value's view.
//   Yield(v, ..)   stores every region output that follows from the anchor's element v[idx].
//
// Invariant: no access lies outside a buffer, also for pad lanes and halos: an index handed to an
// operator is always a legal logical index (clamped on pad lanes, whose stores are zero).
// A fused value is rounded to its storage type, so that fused and unfused results are equal.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ir/lowered.h"
#include "ir/opdef.h"
#include "soc/soc.h"
#include "tile/builder.h"

namespace ge {

// How the open loops walk over storage, so that loads and stores use the loops' own coordinates
// instead of dividing a logical index again.
struct Walk {
  View view;                   // of the outputs that are written along the walk
  Index logical;               // what the body got; clamped on pad lanes
  std::vector<Expr> physical;  // one per physical dim of view, halo included
  struct Group {               // adjacent physical dims first..last that are one flat loop
    int first, last;
    Expr flat;
  };
  std::vector<Group> groups;
  tile::Val interior;  // false on pad lanes; invalid = always true
};

class LoweringContext {
 public:
  // args: the values to declare as kernel arguments (null: all inputs and outputs of the region).
  LoweringContext(const Graph& g, const Region& region, const SocSpec& soc,
                  const std::set<ValueId>* args = nullptr);
  LoweringContext(const LoweringContext&) = delete;
  LoweringContext& operator=(const LoweringContext&) = delete;

  const Graph& graph() const { return g_; }
  const Region& region() const { return region_; }
  const SocSpec& soc() const { return soc_; }
  tile::Builder& b() { return *b_; }

  tile::Val Read(ValueId v, const Index& idx);
  // A load of a value from outside the region; idx may lie in its halo.
  tile::Val ReadBuffer(ValueId v, const Index& idx);
  void Yield(ValueId v, const Index& idx, tile::Val value);
  // Stores these region outputs (values of element nodes) at idx.
  void StoreAll(const std::vector<ValueId>& outputs, const Index& idx);
  // Stores zero (or the halo's fill) in all `outputs` whose view is the walk's, at a physical
  // place.
  void StoreZero(const std::vector<ValueId>& outputs, const std::vector<Expr>& physical);

  int ArgOf(ValueId v);  // kernel argument of a value; marks it as used
  // One more argument (a pack, a temporary). Before any Builder::Alloc.
  int AddArg(KernelArg what, std::string_view name, DType dtype, Expr elements, bool written);
  const View& ViewOf(ValueId v);
  // Packs that arguments of kind kPack name by their position here.
  const std::vector<Pack>& packs() const { return packs_; }
  bool InRegion(ValueId v) const;  // made by a node of the region
  // The anchor's output from which v follows; kNone if v does not depend on the anchor.
  ValueId RootOf(ValueId v) const;
  std::vector<ValueId> OutputsOf(ValueId root) const;
  const std::set<ValueId>& used() const { return used_; }
  // Which outputs with pad lanes or a halo were written along a physical walk.
  const std::set<ValueId>& covered() const { return covered_; }

  std::optional<Walk> walk;

  // The finished kernel, its symbols gathered, with estimates.
  LoweredKernel Finish(std::string schedule);

 private:
  tile::Val ReadKnown(ValueId v, const Index& idx);
  tile::Val Evaluate(ValueId v, const Index& idx);
  std::optional<Expr> WalkOffset(const View& view, const Index& idx) const;
  void Store(ValueId v, const Index& idx, tile::Val value);
  bool UsedInside(ValueId v) const;

  const Graph& g_;
  const Region& region_;
  const SocSpec& soc_;
  LoweredKernel out_;
  std::unique_ptr<tile::Builder> b_;
  std::unordered_map<ValueId, int> arg_;
  std::map<ValueId, View> view_;
  std::unordered_set<NodeId> inside_;
  std::unordered_map<ValueId, ValueId> root_;
  std::unordered_map<ValueId, int> uses_inside_;
  std::set<ValueId> used_, covered_;
  std::vector<Pack> packs_;

  struct Yielded {
    ValueId value = kNone;
    Index idx;
    tile::Val val;
  } yielded_;
  // Values computed in the current statement's scope. A new scope is opened by what may open
  // blocks.
  std::vector<std::vector<std::pair<std::pair<ValueId, Index>, tile::Val>>> memo_;
};

// The face of one node of the region.
class NodeLowering : public Lowering {
 public:
  using Loops =
      std::function<void(const std::vector<Expr>&, bool, const std::function<void(const Index&)>&)>;
  NodeLowering(LoweringContext& context, NodeId node, Loops loops = {})
      : Lowering(context.graph(), context.graph().node(node), context.b()),
        context_(context),
        loops_(std::move(loops)) {}
  tile::Val Load(int input, const Index& idx) override;
  tile::Val LoadOr(int input, const Index& idx, tile::Val otherwise) override;
  void Yield(int output, const Index& idx, tile::Val value) override;
  void ForEach(const std::vector<Expr>& extents, bool vector,
               const std::function<void(const Index&)>& body) override;

 private:
  LoweringContext& context_;
  Loops loops_;
};

// A view of a value's buffer.
View BufferView(const Value& value);

}  // namespace ge
