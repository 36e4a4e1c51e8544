// Internal to soc/: how files of chips add their models.
#pragma once

#include "soc/model.h"

namespace ge {
bool RegisterModel(ChipModel (*make)());
}  // namespace ge
