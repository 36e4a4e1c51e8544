// tiles.txt: choices of tiling by problem or node, a user's or those that atc --tune measured.
#pragma once

#include <map>
#include <string>

#include "driver/compile.h"

namespace ge {

// By node or problem.
using TileChoices = std::map<std::string, DotChoice>;

// Lines "problem or node = FIELDS" (ir/policy.h); '#' begins a comment. A file that is not there is
// empty.
Result<TileChoices> ReadTiles(const std::string& path);

// Compiles the model with the cost model's choices, then with the next best of each problem, and so
// on, and runs each on one thread with random inputs; for each problem the choice wins whose
// regions took the least time, in sequence, behind the others' weights. Adds the winners to the
// file and to request.policy.tiles.
Status Tune(CompileRequest& request, const std::string& path);

}  // namespace ge
