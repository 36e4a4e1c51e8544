// Twelve or sixteen independent chains of fused multiply-adds: enough to hide a latency of four
// cycles on two ports.

#include "tools/peak.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
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

// Loads of whole vectors, in eight chains.
template <int kBytes>
__attribute__((always_inline)) inline void ReadAll(const std::byte* data, size_t bytes) {
  using V = typename Chains<kBytes>::Vector;
  V sums[8] = {};
  for (size_t i = 0; i < bytes; i += 8 * kBytes) {
#pragma GCC unroll 8
    for (size_t j = 0; j < 8; ++j) {
      V v;
      std::memcpy(&v, data + i + j * kBytes, kBytes);
      sums[j] += v;
    }
  }
  for (V& sum : sums) asm volatile("" : : "v"(sum));
}
__attribute__((target("avx512f"), optimize("O3"))) void Read512(const std::byte* p, size_t n) {
  ReadAll<64>(p, n);
}
__attribute__((target("avx2"), optimize("O3"))) void Read256(const std::byte* p, size_t n) {
  ReadAll<32>(p, n);
}

}  // namespace

double MeasureFmaPeak() {
  const bool wide = __builtin_cpu_supports("avx512f");
  double best = 0;
  for (int i = 0; i < 20; ++i) best = std::max(best, wide ? Peak512(200000) : Peak256(400000));
  return best;
}

double MeasureReadRate(int64_t bytes) {
  const bool wide = __builtin_cpu_supports("avx512f");
  const size_t size = static_cast<size_t>(bytes) / 512 * 512;
  const std::vector<std::byte> data(size + 64);
  const std::byte* begin = data.data() + (64 - reinterpret_cast<uintptr_t>(data.data()) % 64);
  const size_t passes = std::max<size_t>(1, (size_t{32} << 20) / size);
  double best = 0;
  for (int round = 0; round < 4; ++round) {
    const auto t = std::chrono::steady_clock::now();
    for (size_t pass = 0; pass < passes; ++pass) wide ? Read512(begin, size) : Read256(begin, size);
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - t).count();
    best = std::max(best, static_cast<double>(passes * size) / seconds / 1e9);
  }
  return best;
}

}  // namespace ge
