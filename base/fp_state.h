// FpState: while alive, this thread rounds to nearest and flushes denormals (FTZ and DAZ). Kernels,
// host kernels, the interpreter and constant folding all compute under it, so that results agree;
// the state that was there before is restored.
#pragma once

#include <cstdint>

namespace ge {

class FpState {
 public:
  FpState();
  ~FpState();
  FpState(const FpState&) = delete;
  FpState& operator=(const FpState&) = delete;

 private:
  uint64_t saved_;
};

}  // namespace ge
