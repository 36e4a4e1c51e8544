// Twelve or sixteen independent chains of fused multiply-adds: enough to hide a latency of four
// cycles on two ports.

#include "tools/peak.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

namespace ge {
namespace {

template <int kBytes>
struct Chains {
  typedef float Vector __attribute__((vector_size(kBytes)));
};

template <int kBytes, int kChains>
__attribute__((always_inline)) inline double Loop(long steps) {
  using V = typename Chains<kBytes>::Vector;
  V x[kChains];
#pragma GCC unroll 32
  for (int i = 0; i < kChains; ++i) x[i] = V{} + static_cast<float>(i);
  V a = V{} + 0.999f, b = V{} + 0.001f;
  asm volatile("" : "+v"(a), "+v"(b));
  const auto t = std::chrono::steady_clock::now();
  for (long s = 0; s < steps; ++s) {
#pragma GCC unroll 32
    for (int i = 0; i < kChains; ++i) x[i] = x[i] * a + b;
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - t).count();
#pragma GCC unroll 32
  for (int i = 0; i < kChains; ++i) asm volatile("" : : "v"(x[i]));
  return 2.0 * kChains * (kBytes / 4) * static_cast<double>(steps) / seconds / 1e9;
}

__attribute__((target("avx512f,fma"), optimize("O3"))) double Peak512(long steps) {
  return Loop<64, 16>(steps);
}
__attribute__((target("avx2,fma"), optimize("O3"))) double Peak256(long steps) {
  return Loop<32, 12>(steps);
}

}  // namespace

double MeasureFmaPeak() {
  const bool wide = __builtin_cpu_supports("avx512f");
  double best = 0;
  for (int i = 0; i < 20; ++i) best = std::max(best, wide ? Peak512(200000) : Peak256(400000));
  return best;
}

double MeasureReadRate() {
  constexpr size_t kWords = (size_t{96} << 20) / sizeof(uint64_t);
  const std::vector<uint64_t> data(kWords, 1);
  double best = 0;
  for (int round = 0; round < 3; ++round) {
    const auto t = std::chrono::steady_clock::now();
    uint64_t sums[8] = {};
    for (size_t i = 0; i < kWords; i += 8)
      for (size_t j = 0; j < 8; ++j) sums[j] += data[i + j];
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - t).count();
    for (uint64_t& sum : sums) asm volatile("" : : "r"(sum));
    best = std::max(best, static_cast<double>(kWords * sizeof(uint64_t)) / seconds / 1e9);
  }
  return best;
}

}  // namespace ge
