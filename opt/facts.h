// What several passes ask of graphs: numbers of constants, operators that may not be merged or
// folded, inference again after a change.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace ge {

// Elements of a numeric constant as doubles; empty for strings and 64-bit integers beyond 2^53.
std::optional<std::vector<double>> Numbers(const Constant& c);
// A constant of these values (rounded to dtype).
Constant FromNumbers(DType dtype, std::vector<int64_t> dims, const std::vector<double>& values);
// The slices of a numeric constant with these indices along an axis.
Constant Taken(const Constant& c, int axis, const std::vector<int64_t>& indices);
// Every element equals x by value and sign; false for an empty constant.
bool AllAre(const Constant& c, double x);

// The number of a constant that holds one; empty for anything else.
std::optional<double> OneNumber(const Graph& g, ValueId v);

// An operator of ai.onnx with that name.
bool IsPlain(const Node& n, std::string_view name);

// Draws random numbers: two of its kind are not equal, and it is never a constant.
bool IsRandom(const Node& n);

// Infers the nodes that use one of `changed`, and so on along the order. What inference refuses
// keeps its facts. Returns whether any fact changed.
bool InferAgain(Graph& g, const std::vector<ValueId>& changed);

// Values must have different names; those that came from a subgraph may repeat ones of g.
void MakeNamesUnique(Graph& g);

// Calls f on g and on every graph inside of it, inner ones first.
void ForEachGraph(Graph& g, const std::function<void(Graph&)>& f);

}  // namespace ge
