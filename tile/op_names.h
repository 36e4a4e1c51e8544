// Names of operations, statements and reductions in TileIR text.
#pragma once

#include <optional>
#include <string_view>

#include "tile/tile.h"

namespace ge::tile {

std::string_view Name(Op op);          // "add", "floormod", ...
std::string_view Name(LoopKind kind);  // "serial", ...
std::string_view Name(ReduceOp op);    // "sum", ...
std::optional<Op> ParseOp(std::string_view name);
std::optional<LoopKind> ParseLoopKind(std::string_view name);
std::optional<ReduceOp> ParseReduceOp(std::string_view name);

}  // namespace ge::tile
