// The pieces of the prelude: C text that every translation unit of generated code begins with.
//
// Text with '$' is a template: it is printed twice, once with '$' as "v" (a vector of W lanes, all
// element types with the same W) and once as "s" (one element). Bool is a mask: int32, 0 or -1.
#pragma once

#include <string>

#include "soc/soc.h"

namespace ge::emit {

constexpr int kMostStep = 4;  // of strided loads

std::string PreludeTypes(const SocSpec& soc);  // types, masks, raw loads and stores
std::string PreludeLanes(const SocSpec& soc);  // strided loads, turned squares, folded lanes
std::string PreludeBytes(const SocSpec& soc);  // products of bytes: brgemm_int8.cc
std::string PreludeTiles(const SocSpec& soc);  // the matrix unit: brgemm_amx.cc
std::string PreludeStorage();      // template: decode, encode, ld, st of byte-sized dtypes
std::string PreludeStorageOnce();  // tails, and the types that go lane by lane
std::string PreludeOps();          // template: selects, casts, simple operations
std::string PreludeOpsOnce();      // division, the math table
std::string PreludeDivision();     // of vectors of integers
std::string PreludeMath();         // template: exp, log, tanh, erf, sin, cos, ...
std::string PreludeArcs();         // its second part: asin, sinh, asinh, pow, fmod, ...
std::string PreludeMathOnce();     // powers of two

}  // namespace ge::emit
