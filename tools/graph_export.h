// Graphs and plans in the forms of other programs: DOT for Graphviz, ONNX for Netron.
#pragma once

#include <string>

#include "base/status.h"
#include "ir/graph.h"
#include "om/plan.h"

namespace ge {

// Nodes with their results' types; a control node's subgraphs are clusters.
std::string DotText(const Graph& g);
// Tasks in their order; an edge from who writes a buffer to who reads it, dashed ones are events.
std::string DotText(const om::Plan& plan);
// The graph as an ONNX model of the newest opset, constants included; operators of GE's own stay in
// their domain, and memory orders are left out. It must fit in the 2 GB of a message.
Result<std::string> OnnxModel(const Graph& g);

}  // namespace ge
