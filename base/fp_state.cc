// MXCSR on x86, FPCR on ARM: exceptions masked, round to nearest, denormals flushed.
#include "base/fp_state.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace ge {

#if defined(__x86_64__)
FpState::FpState() : saved_(_mm_getcsr()) {
  constexpr unsigned kAllMasked = 0x1f80, kFlushToZero = 0x8000, kDenormalsAreZero = 0x0040;
  _mm_setcsr(kAllMasked | kFlushToZero | kDenormalsAreZero);
}
FpState::~FpState() { _mm_setcsr(static_cast<unsigned>(saved_)); }
#elif defined(__aarch64__)
FpState::FpState() {
  asm volatile("mrs %0, fpcr" : "=r"(saved_));
  const uint64_t flush = uint64_t{1} << 24;
  asm volatile("msr fpcr, %0" : : "r"(flush));
}
FpState::~FpState() { asm volatile("msr fpcr, %0" : : "r"(saved_)); }
#else
FpState::FpState() : saved_(0) {}
FpState::~FpState() = default;
#endif

}  // namespace ge
