// Which values lie between constants, and which divisions by a constant need no division.
#pragma once

#include <optional>
#include <utility>

#include "tile/tile.h"

namespace ge::emit {

// Between which numbers an f32 value lies unless it is NaN; infinite where nothing is known.
std::pair<double, double> RangeOf(const tile::Kernel& k, tile::ExprId id);

// Is rint(fma(x, reciprocal, x * rest)) == rint(x / s) for all x in [low, high]? Sets the two
// parts.
bool RoundsLikeDivision(float s, double low, double high, float* reciprocal, float* rest);

// x, if `n` is Round(x / constant) and the form above gives the same.
std::optional<tile::ExprId> RoundedQuotient(const tile::Kernel& k, const tile::ValueNode& n,
                                            float* reciprocal, float* rest);

}  // namespace ge::emit
