// Pieces of AscendIR's text form that others use too. The form is shown in docs/ir.md.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/graph.h"

namespace ge {

// Like ToString(g), but constants of more than max_constant_bytes appear as their hash only: for
// people, the result does not parse.
std::string ToString(const Graph& g, int64_t max_constant_bytes);
// "{axis=1, mode="linear", pads=[0, 1], alpha=0.5f, value=const f32[2] {1, 2}}", sorted by name; ""
// for none.
std::string ToString(const std::map<std::string, Attr, std::less<>>& attrs);
Result<std::map<std::string, Attr, std::less<>>> ParseAttrs(std::string_view text);

// Elements as an i64 constant has them, or as ge.Exprs has them in its attribute; true: all are
// numbers, and the constant will do.
bool AsNumbers(const std::vector<Expr>& elements, std::vector<int64_t>* numbers,
               std::vector<std::string>* texts);

}  // namespace ge
