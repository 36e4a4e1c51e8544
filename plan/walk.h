// PlanWalk: goes through the regions of a graph in order and adds their tasks; control flow becomes
// jumps (walk_control.cc).
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ir/policy.h"
#include "plan/builder.h"

namespace ge {

class PlanWalk {
 public:
  PlanWalk(const RegionMap& regions, const LoweredMap& lowered, const Policy& policy, Planned& out)
      : regions_(regions), lowered_(lowered), policy_(policy), out_(out), b_(out) {}
  Status Run(const Graph& root);

 private:
  using Key = std::pair<const Graph*, ValueId>;

  Status Inputs(const Graph& g);
  Status Outputs(const Graph& g);
  Status Walk(const Graph& g);
  void AddRegion(const Graph& g, const Region& r, const Lowered& lowered);
  void AddHostNode(const Graph& g, const Node& n);
  Status AddControl(const Graph& g, const Node& n);
  Status AddIf(const Graph& g, const Node& n);
  Status AddLoop(const Graph& g, const Node& n);
  Status AddScan(const Graph& g, const Node& n);
  bool AliasReshape(const Graph& g, const Region& r);

  // The buffer of a value; made on first use (a constant, or memory that its producer will write).
  int32_t BufferOf(const Graph& g, ValueId v);
  void SetBuffer(const Graph& g, ValueId v, int32_t buffer) { buffers_[{&g, v}] = buffer; }
  bool HasBuffer(const Graph& g, ValueId v) const { return buffers_.contains({&g, v}); }
  // Known integers that nothing computes are written by a host task where they are first read.
  void Materialise(const Graph& g, const std::vector<ValueId>& values);
  void Copy(const std::string& name, int32_t from, int32_t to);

  // Which regions somebody needs (backward over the list). Host tasks that bind symbols stay.
  std::vector<bool> Needed(const Graph& g, const std::vector<Region>& list,
                           const std::vector<Lowered>& lowered) const;
  // Delivers subgraph results into the outer node's values: binds of fresh dims first.
  void Deliver(const Graph& sub, const Graph& g, const Node& n, size_t first_output);

  struct LoopState;
  void StartCarried(const Graph& g, const Node& n, const Graph& body, LoopState& s);
  void NextCarried(const Graph& body, LoopState& s);
  void FinishCarried(const Graph& g, const Node& n, const Graph& body, LoopState& s);

  const RegionMap& regions_;
  const LoweredMap& lowered_;
  const Policy& policy_;
  Planned& out_;
  PlanBuilder b_;
  std::map<Key, int32_t> buffers_;
  std::map<Key, bool> written_;        // a producer has been planned
};

}  // namespace ge
