// Nodes that live for a size: what NonZero finds may be unread while its number is used (Shape of
// it).
#pragma once

#include <unordered_set>

#include "ir/graph.h"

namespace ge {

// The symbols that inference made for data-dependent sizes (Node::fresh) and that a value of
// another node, in any of the model's graphs, uses in its dims or known elements. Empty, and cheap,
// for graphs without such sizes.
using SymbolSet = std::unordered_set<const ExprNode*>;
SymbolSet SizesInUse(const Graph& root);

// Whether n gives one of them: such a node must run though nothing reads its outputs.
bool GivesSize(const Node& n, const SymbolSet& in_use);

}  // namespace ge
