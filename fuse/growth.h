// Growth: the regions of one graph while they grow.
//
// Invariant: every region's inputs come from regions with a smaller position. A node joins only the
// latest region that it reads, and a producer merges only into a later region while nothing between
// them reads it; so no cycle can arise and no search for one is needed.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "ir/opdef.h"
#include "ir/policy.h"
#include "ir/region.h"

namespace ge {

struct Growing {
  std::vector<NodeId> nodes;
  Engine engine = Engine::kVector;
  NodeId anchor = kNone;
  ValueId pilot = kNone;       // a value whose dims and layout all outputs of the region share
  std::vector<ValueId> reads;  // tensors from outside, beyond the anchor's own; may repeat
  double flops = 0;            // per output element, of the element nodes
  bool closed = false;         // takes nothing: host, control, views that cost nothing
  bool dead = false;           // merged into another
};

class RegionGrowth {
 public:
  RegionGrowth(const Graph& g, const Policy& policy);
  // Adds one node, in topological order.
  void Add(NodeId n, Engine engine);
  void AddAlone(NodeId n, Engine engine);  // a region that stays as it is
  // The regions in execution order, without inputs and outputs.
  std::vector<Growing> Take();

 private:
  bool WaitsForReader(NodeId n) const;
  void TakeWaiting(int into, NodeId n);
  bool JoinLatest(NodeId n);
  void Start(NodeId n, Engine engine);
  void TakeProducers(int into, NodeId n);
  // Why producer region `from` cannot merge into `into`, where node n reads v; "" if it can.
  std::string Refusal(int from, int into, NodeId n, ValueId v) const;
  bool DotTakes(int from, const Node& n, int operand) const;
  void Merge(int from, int into);
  int RegionOf(ValueId v) const;
  bool UsedOnlyBy(int from, int into, NodeId n, bool aligned) const;
  void NearMiss(NodeId n, int region, const std::string& reason) const;
  bool Aligned(int region, ValueId v) const;
  bool Follows(int region, ValueId v) const;
  void AddReads(Growing& r, NodeId n);
  bool TooWide(const Growing& a, const Growing* b, NodeId n) const;

  const Graph& g_;
  const Policy& policy_;
  std::vector<std::vector<Use>> uses_;
  std::unordered_set<ValueId> graph_outputs_;
  std::vector<Growing> regions_;
  std::vector<int> region_of_;          // per node, -1 = not yet
  std::unordered_set<NodeId> waiting_;  // joined when their reader is
};

// Operators whose result is the same bytes in another shape: an alias for the planner, never fused.
bool IsAlias(const Node& n);

}  // namespace ge
