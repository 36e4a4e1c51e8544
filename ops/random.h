// The one source of random numbers: a hash of (seed, stream, position). Equal seeds give equal
// numbers on every machine and at every worker count; nothing keeps a state.
#pragma once

#include <cstdint>

#include "ir/opdef.h"

namespace ge {

// Evenly distributed f32 in [0, 1) for an i64 position.
tile::Val UniformAt(tile::Builder& b, tile::Val position, int64_t seed, int64_t stream = 0);
// Normally distributed f32 (mean 0, deviation 1).
tile::Val NormalAt(tile::Builder& b, tile::Val position, int64_t seed);
// The attribute `seed` of a node, else a number made of its name.
int64_t SeedOf(const Lowering& l);

}  // namespace ge
