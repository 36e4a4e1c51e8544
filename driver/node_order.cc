// See node_order.h.
#include "driver/node_order.h"

#include <algorithm>
#include <deque>

namespace ge {
namespace {

// What a node waits for: producers of its operands, each once.
std::vector<NodeId> Producers(const Graph& g, NodeId n) {
  std::vector<NodeId> producers;
  for (const ValueId v : g.node(n).inputs) {
    const NodeId p = v == kNone ? kNone : g.value(v).producer;
    if (p == kNone || g.node(p).dead) continue;
    if (std::find(producers.begin(), producers.end(), p) == producers.end()) producers.push_back(p);
  }
  return producers;
}

std::vector<NodeId> Forward(const Graph& g, bool breadth) {
  std::vector<int> waits(g.nodes.size(), 0);
  std::vector<std::vector<NodeId>> consumers(g.nodes.size());
  for (const NodeId n : g.order)
    for (const NodeId p : Producers(g, n)) {
      consumers[p].push_back(n);
      ++waits[n];
    }
  std::deque<NodeId> ready;
  for (const NodeId n : g.order)
    if (waits[n] == 0) ready.push_back(n);
  std::vector<NodeId> order;
  while (!ready.empty()) {
    const NodeId n = ready.front();
    ready.pop_front();
    order.push_back(n);
    std::vector<NodeId> freed;
    for (const NodeId c : consumers[n])
      if (--waits[c] == 0) freed.push_back(c);
    ready.insert(breadth ? ready.end() : ready.begin(), freed.begin(), freed.end());
  }
  return order;
}

}  // namespace

// A node comes when its consumer is about to, without recursion.
std::vector<NodeId> NodesBackward(const Graph& g) {
  std::vector<char> state(g.nodes.size(), 0);  // 1: its producers are on the stack, 2: placed
  std::vector<NodeId> order, stack;
  const auto place = [&](NodeId root) {
    stack.push_back(root);
    while (!stack.empty()) {
      const NodeId n = stack.back();
      if (state[n] != 0) {
        stack.pop_back();
        if (state[n] == 1) order.push_back(n);
        state[n] = 2;
        continue;
      }
      state[n] = 1;
      const std::vector<NodeId> producers = Producers(g, n);
      for (auto p = producers.rbegin(); p != producers.rend(); ++p)
        if (state[*p] == 0) stack.push_back(*p);
    }
  };
  for (const ValueId v : g.outputs)
    if (v != kNone && g.value(v).producer != kNone) place(g.value(v).producer);
  for (const NodeId n : g.order) place(n);  // what no output needs
  return order;
}

void OrderNodes(Graph& g, NodeOrder order) {
  if (order == NodeOrder::kModel) return;
  std::vector<NodeId> nodes = order == NodeOrder::kReverseDepth
                                  ? NodesBackward(g)
                                  : Forward(g, order == NodeOrder::kBreadth);
  if (nodes.size() == g.order.size()) g.order = std::move(nodes);
  for (const NodeId n : g.order)
    for (const auto& sub : g.node(n).subgraphs) OrderNodes(*sub, order);
}

}  // namespace ge
