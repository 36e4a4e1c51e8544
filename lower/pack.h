// Constants in another memory order than their file's.
#pragma once

#include "ir/lowered.h"

namespace ge {

// The constant v (dense ND bytes) as a dense buffer of type.layout; pad lanes are zero.
Pack PackInLayout(ValueId v, const TensorType& type);

}  // namespace ge
