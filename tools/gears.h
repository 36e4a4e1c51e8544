// Gears of atc: --dynamic_batch_size, --dynamic_image_size, --dynamic_dims. One symbolic plan
// serves all of them; the declared points become the description's "gears" and the bounds and
// typical values of the symbols.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"
#include "tools/shape_option.h"

namespace ge {

enum class GearKind : char { kNone, kBatch, kImage, kDims };

struct Gears {
  GearKind kind = GearKind::kNone;
  std::vector<std::vector<int64_t>> values;
  std::string Json() const;  // {"mode": ..., "values": [[..]..]}
};

// Counts, duplicates and the rules on where -1 stands.
Fault ReadGears(const AtcOptions& options, const InputShapes& shapes, Gears* gears);
// Gives the symbols of the inputs their bounds and hints.
Fault ApplyGears(const Gears& gears, const InputShapes& shapes, Graph* g);

}  // namespace ge
