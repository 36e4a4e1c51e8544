// --topo_sorting_mode: which of the topological orders the nodes stand in.
#pragma once

#include "ir/graph.h"

namespace ge {

// kModel: as imported. kBreadth: what is ready first. kDepth: a node's consumers next to it.
// kReverseDepth: each node as late as its consumers allow, from the outputs backwards.
enum class NodeOrder : char { kModel, kBreadth, kDepth, kReverseDepth };
// Of the graph and its subgraphs. Regions, and so tasks, follow it.
void OrderNodes(Graph& g, NodeOrder order);

}  // namespace ge
