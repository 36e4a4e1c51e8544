// Region: a set of nodes that becomes one sequence of kernels. An engine is a label of it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace ge {

enum class Engine : uint8_t { kVector, kCube, kHost, kControl };

struct Region {
  std::string name;  // of its anchor, or its last node
  Engine engine = Engine::kVector;
  std::vector<NodeId> nodes;     // topological. kHost, kControl: exactly one
  NodeId anchor = kNone;         // the node with a `lower`; kNone: all are element nodes
  std::vector<ValueId> inputs;   // read from outside (constants included), each once
  std::vector<ValueId> outputs;  // needed outside, each once
};

// The regions of each graph (subgraphs included), in execution order.
using RegionMap = std::map<const Graph*, std::vector<Region>>;

}  // namespace ge
