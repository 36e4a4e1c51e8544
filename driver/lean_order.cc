// LeanOrders (node_order.h): a beam search over sequences of regions. A state is the set of regions
// that ran; of two ways to the same set the one with the lower peak stays.
#include <algorithm>
#include <random>
#include <unordered_map>

#include "driver/node_order.h"

namespace ge {
namespace {

constexpr size_t kBeam = 16, kMostRegions = 4000;

int64_t BytesOf(const Value& v) {
  if (v.kind != ValueKind::kTensor) return 0;
  int64_t bits = BitWidth(v.type.dtype);
  for (const Expr& d : v.type.dims) bits *= d.IsConst() ? d.value() : 0;
  return bits / 8;
}

class Beam {
 public:
  Beam(const Graph& g, const std::vector<Region>& regions, const std::vector<Lowered>& lowered)
      : regions_(regions), bytes_(g.values.size(), 0), temps_(regions.size(), 0) {
    std::vector<size_t> maker(g.values.size(), regions.size());
    for (size_t r = 0; r < regions.size(); ++r) {
      for (ValueId v : regions[r].outputs) {
        maker[static_cast<size_t>(v)] = r;
        bytes_[static_cast<size_t>(v)] = BytesOf(g.value(v));
      }
      for (const Temp& t : lowered[r].temps)
        if (t.bytes.IsConst()) temps_[r] += t.bytes.value();
    }
    for (ValueId v : g.outputs) bytes_[static_cast<size_t>(v)] = 0;  // the caller's memory
    State first;
    first.uses.assign(g.values.size(), 0);
    first.waits.assign(regions.size(), 0);
    readers_.resize(regions.size());
    for (size_t r = 0; r < regions.size(); ++r) {
      for (ValueId v : regions[r].inputs) {
        if (v == kNone) continue;
        ++first.uses[static_cast<size_t>(v)];
        const size_t from = maker[static_cast<size_t>(v)];
        if (from >= regions.size() || from == r) continue;
        ++first.waits[r];
        readers_[from].push_back(r);
      }
      if (first.waits[r] == 0) first.ready.push_back(r);
    }
    states_.push_back(std::move(first));
  }

  // Regions in the order found; empty if they cannot be ordered.
  std::vector<size_t> Run() {
    std::mt19937_64 random(1);
    std::vector<uint64_t> key(regions_.size());
    for (uint64_t& k : key) k = random();
    for (size_t step = 0; step < regions_.size(); ++step) {
      std::vector<Move> moves;
      for (size_t s = 0; s < states_.size(); ++s)
        for (size_t r : states_[s].ready) moves.push_back(Weigh(s, r, key[r]));
      std::sort(moves.begin(), moves.end(), [](const Move& a, const Move& b) {
        return std::tie(a.peak, a.live, a.region) < std::tie(b.peak, b.live, b.region);
      });
      std::vector<State> next;
      std::unordered_map<uint64_t, bool> seen;
      for (const Move& m : moves) {
        if (next.size() == kBeam) break;
        if (seen.emplace(m.done, true).second) next.push_back(After(m));
      }
      if (next.empty()) return {};
      states_ = std::move(next);
    }
    return states_[0].order;
  }

 private:
  struct State {
    std::vector<int32_t> uses;   // per value: readers that are to come
    std::vector<int32_t> waits;  // per region: operands that are to come
    std::vector<size_t> ready, order;
    int64_t live = 0, peak = 0;
    uint64_t done = 0;  // hash of the set
  };
  struct Move {
    size_t state, region;
    int64_t live, peak;
    uint64_t done;
  };

  Move Weigh(size_t s, size_t r, uint64_t key) const {
    const State& state = states_[s];
    int64_t live = state.live;
    for (ValueId v : regions_[r].outputs) live += bytes_[static_cast<size_t>(v)];
    const int64_t peak = std::max(state.peak, live + temps_[r]);
    for (ValueId v : regions_[r].inputs)
      if (v != kNone && state.uses[static_cast<size_t>(v)] == 1)
        live -= bytes_[static_cast<size_t>(v)];
    for (ValueId v : regions_[r].outputs)
      if (state.uses[static_cast<size_t>(v)] == 0) live -= bytes_[static_cast<size_t>(v)];
    return {s, r, live, peak, state.done ^ key};
  }

  State After(const Move& m) const {
    State state = states_[m.state];
    state.live = m.live, state.peak = m.peak, state.done = m.done;
    for (ValueId v : regions_[m.region].inputs)
      if (v != kNone) --state.uses[static_cast<size_t>(v)];
    std::erase(state.ready, m.region);
    for (size_t r : readers_[m.region])
      if (--state.waits[r] == 0) state.ready.push_back(r);
    state.order.push_back(m.region);
    return state;
  }

  const std::vector<Region>& regions_;
  std::vector<int64_t> bytes_, temps_;  // per value; per region
  std::vector<std::vector<size_t>> readers_;
  std::vector<State> states_;
};

bool IsTopological(const Graph& g, const std::vector<NodeId>& order) {
  std::vector<bool> done(g.nodes.size(), false);
  for (NodeId n : order) {
    for (ValueId v : g.node(n).inputs) {
      const NodeId p = v == kNone ? kNone : g.value(v).producer;
      if (p != kNone && !done[static_cast<size_t>(p)]) return false;
    }
    done[static_cast<size_t>(n)] = true;
  }
  return order.size() == g.order.size();
}

}  // namespace

std::vector<std::vector<NodeId>> LeanOrders(const Graph& g, const std::vector<Region>& regions,
                                            const std::vector<Lowered>& lowered) {
  std::vector<std::vector<NodeId>> orders = {NodesBackward(g)};
  if (regions.size() <= kMostRegions) {
    std::vector<NodeId> nodes;
    std::vector<bool> placed(g.nodes.size(), false);
    for (size_t r : Beam(g, regions, lowered).Run()) {
      for (NodeId n : regions[r].nodes) {
        if (!placed[static_cast<size_t>(n)]) nodes.push_back(n);
        placed[static_cast<size_t>(n)] = true;
      }
    }
    orders.push_back(std::move(nodes));
  }
  std::erase_if(orders, [&](const std::vector<NodeId>& order) {
    return order == g.order || !IsTopological(g, order);
  });
  return orders;
}

}  // namespace ge
