// Which values lie between constants, which divisions by a constant need no division, and which
// bytes are rounded numbers as they are.
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

// A byte made of an f32 value that was rounded: rounded + zero, which surely is in the byte's
// range.
struct Quantised {
  tile::ExprId rounded = -1;
  int64_t zero = 0;
};
// If `n` is that byte (Narrow), or the byte less its zero again as a float (Cast): then it is
// `rounded` itself.
std::optional<Quantised> AsQuantised(const tile::Kernel& k, const tile::ValueNode& n);

// The Narrow to a byte of rounded + zero, in a form that leaves its limits to a conversion that
// saturates: nearest(x times a constant) + zero, where x is no NaN and not too large. Where x is
// the sum of two dequantised bytes, p * a + q * b takes its place: all pairs of bytes have been
// tried.
struct Saturated {
  tile::ExprId x = -1;
  float reciprocal = 1, rest = 0;  // as RoundedQuotient gives them
  tile::ExprId p = -1, q = -1;
  float a = 0, b = 0;
  int64_t zero = 0;
};
std::optional<Saturated> AsSaturated(const tile::Kernel& k, tile::ExprId narrow);

// Surely no NaN.
bool NeverNan(const tile::Kernel& k, tile::ExprId id);

}  // namespace ge::emit
