// ge.Attend, attention as one kernel (ops/attend.cc, lower/cube_attend.cc): its operands, and when
// it is worth making.
#pragma once

#include <string>

#include "ir/opdef.h"

namespace ge {

// kMask is added to the scores. Scores where kAllowed is false (true, with attribute `hides`)
// become attribute `low` before that.
enum { kAttendQ, kAttendK, kAttendV, kAttendMask, kAttendAllowed };

// Why products around a Softmax are better for q [.., heads, s, d], k [.., heads / shared, d, t]
// and v [.., heads / shared, t, n]; "" if one kernel is.
std::string AgainstAttend(const TensorType& q, const TensorType& k, const TensorType& v,
                          int64_t shared);

}  // namespace ge
