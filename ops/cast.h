// Conversion of a computed value to an element type as ONNX's Cast means it.
#pragma once

#include <string_view>

#include "ir/opdef.h"

namespace ge {

// Rounds to nearest even; small floats saturate, or overflow to infinity or NaN if not `saturate`;
// float8e8m0 rounds as `round_mode` says (up, down, nearest).
tile::Val CastTo(tile::Builder& b, tile::Val x, DType to, bool saturate = true,
                 std::string_view round_mode = "up");

}  // namespace ge
