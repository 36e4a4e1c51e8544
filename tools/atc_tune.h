// atc --tune: register tiles by measurement.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "driver/compile.h"

namespace ge {

// {node or problem: (rows, vectors)}
using TileChoices = std::map<std::string, std::pair<int, int>>;

// Lines "problem or node = ROWSxVECTORS"; '#' begins a comment. A file that is not there is empty.
Result<TileChoices> ReadTiles(const std::string& path);

// Compiles the model once for each width of tile and runs it on one thread with random inputs; for
// each problem the tile wins whose kernels took the least time, in sequence, behind the others'
// weights. Adds the winners to the file and to request.policy.tiles.
Status Tune(CompileRequest& request, const std::string& path);

}  // namespace ge
