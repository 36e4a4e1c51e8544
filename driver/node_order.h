// Which of the topological orders the nodes stand in: --topo_sorting_mode, or what takes least
// memory.
#pragma once

#include <vector>

#include "ir/graph.h"
#include "ir/lowered.h"
#include "ir/region.h"

namespace ge {

// kModel: as imported. kBreadth: what is ready first. kDepth: a node's consumers next to it.
// kReverseDepth: each node as late as its consumers allow, from the outputs backwards.
enum class NodeOrder : char { kModel, kBreadth, kDepth, kReverseDepth };
// Of the graph and its subgraphs. Regions, and so tasks, follow it.
void OrderNodes(Graph& g, NodeOrder order);
std::vector<NodeId> NodesBackward(const Graph& g);  // depth first from the outputs

// Orders of a graph's nodes, region by region, that may need less memory than the present one:
// depth first from the outputs, and the one with the fewest bytes alive at once that a bounded
// search finds. Only topological ones; sizes that are not known count as nothing.
std::vector<std::vector<NodeId>> LeanOrders(const Graph& g, const std::vector<Region>& regions,
                                            const std::vector<Lowered>& lowered);

}  // namespace ge
