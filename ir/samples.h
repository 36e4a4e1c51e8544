// The samples of operators (OpDef::samples) as graphs of one node, for tests.
#pragma once

#include <string>

#include "ir/opdef.h"

namespace ge {

// Text of a graph with the sample's node: inputs %i1.., outputs %o0... `symbolic`: dims over 1 of
// inputs without known elements become symbols, equal dims the same one.
std::string SampleGraph(const OpDef& op, const std::string& sample, bool symbolic = false);

}  // namespace ge
