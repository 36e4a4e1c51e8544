// The interpreter's BrGemm: acc[row, col] = sum over batch and k of A[row, k] * B[k, col], four
// rows by eight columns at a time for f32, plain loops otherwise. Sums run in the order batch, then
// k.
#include <algorithm>
#include <vector>

#include "abi/convert.h"
#include "base/check.h"
#include "tile/interpret_frame.h"

namespace ge::tile::interpret {
namespace {

struct Strides {
  int64_t a_row, a_k, b_k;
};

template <int kRows, int kCols>
void Tile(const float* a, const float* b, Strides s, int64_t k, float* c, int64_t c_row) {
  float acc[kRows][kCols];
  for (int r = 0; r < kRows; ++r) {
    for (int j = 0; j < kCols; ++j) acc[r][j] = c[r * c_row + j];
  }
  for (int64_t i = 0; i < k; ++i) {
    const float* bp = b + i * s.b_k;
    for (int r = 0; r < kRows; ++r) {
      const float v = a[r * s.a_row + i * s.a_k];
      for (int j = 0; j < kCols; ++j) acc[r][j] += v * bp[j];
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int j = 0; j < kCols; ++j) c[r * c_row + j] = acc[r][j];
  }
}

template <int kCols>
void Columns(const float* a, const float* b, Strides s, int64_t k, int m, float* c, int64_t n) {
  int r = 0;
  for (; r + 4 <= m; r += 4) Tile<4, kCols>(a + r * s.a_row, b, s, k, c + r * n, n);
  for (; r < m; ++r) Tile<1, kCols>(a + r * s.a_row, b, s, k, c + r * n, n);
}

void GemmF32(const float* a, const float* b, Strides s, int64_t k, int m, int n, float* c) {
  int j = 0;
  for (; j + 8 <= n; j += 8) Columns<8>(a, b + j, s, k, m, c + j, n);
  for (; j < n; ++j) Columns<1>(a, b + j, s, k, m, c + j, n);
}

// A u8, B i8 in groups of four: B's element (k, j) at (k / 4) * b_k + j * 4 + k % 4.
// `flip` is 0x80 for an i8 A that counts as its value + 128; `sign` = 128 takes that away again.
void GemmBytes(const uint8_t* a, uint8_t flip, int sign, const int8_t* b, Strides s, int64_t k,
               int m, int n, int32_t* c) {
  for (int r = 0; r < m; ++r) {
    for (int64_t i = 0; i < k; i += 4) {
      const uint8_t* ap = a + r * s.a_row + i;
      const int a0 = (ap[0] ^ flip) - sign, a1 = (ap[1] ^ flip) - sign, a2 = (ap[2] ^ flip) - sign,
                a3 = (ap[3] ^ flip) - sign;
      const int8_t* bp = b + i / 4 * s.b_k;
      for (int j = 0; j < n; ++j, bp += 4) {
        const int sum = a0 * bp[0] + a1 * bp[1] + a2 * bp[2] + a3 * bp[3];
        c[r * n + j] =
            static_cast<int32_t>(static_cast<uint32_t>(c[r * n + j]) + static_cast<uint32_t>(sum));
      }
    }
  }
}

// A and B bf16 in pairs: B's element (k, j) at (k / 2) * b_k + j * 2 + k % 2.
void GemmPairs(const uint16_t* a, const uint16_t* b, Strides s, int64_t k, int m, int n, float* c) {
  for (int r = 0; r < m; ++r) {
    for (int64_t i = 0; i < k; i += 2) {
      const float a0 = LoadElement<float>(DType::kBF16, a + r * s.a_row, i),
                  a1 = LoadElement<float>(DType::kBF16, a + r * s.a_row, i + 1);
      const uint16_t* bp = b + i / 2 * s.b_k;
      for (int j = 0; j < n; ++j) {
        const float b0 = LoadElement<float>(DType::kBF16, bp, 2 * j),
                    b1 = LoadElement<float>(DType::kBF16, bp, 2 * j + 1);
        c[r * n + j] = (c[r * n + j] + a1 * b1) + a0 * b0;
      }
    }
  }
}

// Any storage types, computed in T (float, double or int32_t; integers wrap).
template <class T>
void GemmAny(const GemmCode& g, const void* a, int64_t a0, const void* b, int64_t b0, Strides s,
             int64_t k, int m, T* c) {
  std::vector<T> row(static_cast<size_t>(g.n));
  for (int64_t i = 0; i < k; ++i) {
    for (int j = 0; j < g.n; ++j) row[j] = LoadElement<T>(g.b_type, b, b0 + i * s.b_k + j);
    for (int r = 0; r < m; ++r) {
      const T v = LoadElement<T>(g.a_type, a, a0 + r * s.a_row + i * s.a_k);
      T* out = c + static_cast<int64_t>(r) * g.n;
      if constexpr (std::is_floating_point_v<T>) {
        for (int j = 0; j < g.n; ++j) out[j] += v * row[j];
      } else {
        for (int j = 0; j < g.n; ++j) {
          out[j] = static_cast<T>(static_cast<uint32_t>(out[j]) +
                                  static_cast<uint32_t>(v) * static_cast<uint32_t>(row[j]));
        }
      }
    }
  }
}

// One step of the batch for rows that lie at equal distances from a0: C += A * B at the current
// slots.
void Rows(const GemmCode& g, Frame& f, int64_t a0, int m, void* acc, int64_t k) {
  const Strides s{g.a_row.Eval(f), g.a_k.Eval(f), g.b_k.Eval(f)};
  const int64_t b0 = g.b.Eval(f);
  const int64_t rows = s.a_row * (m - 1), ks = s.a_k * (k - 1), bs = s.b_k * (k / g.k_group - 1);
  CheckRange(f, g.a_buffer, a0 + std::min<int64_t>(rows, 0) + std::min<int64_t>(ks, 0),
             a0 + std::max<int64_t>(rows, 0) + std::max<int64_t>(ks, 0), "gemm load");
  CheckRange(f, g.b_buffer, b0 + std::min<int64_t>(bs, 0),
             b0 + std::max<int64_t>(bs, 0) + g.n * g.k_group - 1, "gemm load");
  const std::byte* a = f.buffers[g.a_buffer];
  const std::byte* b = f.buffers[g.b_buffer];
  if (g.a_type == DType::kF32 && g.b_type == DType::kF32) {
    GemmF32(reinterpret_cast<const float*>(a) + a0, reinterpret_cast<const float*>(b) + b0, s, k, m,
            g.n, static_cast<float*>(acc));
  } else if (g.k_group == 4) {
    GemmBytes(reinterpret_cast<const uint8_t*>(a) + a0, g.a_type == DType::kI8 ? 0x80 : 0,
              g.signed_a ? 128 : 0, reinterpret_cast<const int8_t*>(b) + b0, s, k, m, g.n,
              static_cast<int32_t*>(acc));
  } else if (g.k_group == 2) {
    GemmPairs(reinterpret_cast<const uint16_t*>(a) + a0, reinterpret_cast<const uint16_t*>(b) + b0,
              s, k, m, g.n, static_cast<float*>(acc));
  } else if (g.a_type == DType::kF64) {
    GemmAny(g, a, a0, b, b0, s, k, m, static_cast<double*>(acc));
  } else if (IsFloat(g.a_type)) {
    GemmAny(g, a, a0, b, b0, s, k, m, static_cast<float*>(acc));
  } else {
    GemmAny(g, a, a0, b, b0, s, k, m, static_cast<int32_t*>(acc));
  }
}

void Step(const GemmCode& g, Frame& f, void* acc, int64_t k) {
  if (g.row_slot < 0) return Rows(g, f, g.a.Eval(f), g.m, acc, k);
  const int64_t row_bytes = (g.a_type == DType::kF64 ? 8 : 4) * int64_t{g.n};
  const int64_t stride = g.a_row.Eval(f);
  for (int r = 0; r < g.m; ++r) {
    f.slots[g.row_slot] = r;
    Rows(g, f, g.a.Eval(f) + r * stride, 1, static_cast<std::byte*>(acc) + r * row_bytes, k);
  }
}

}  // namespace

void RunGemm(const GemmCode& g, Frame& f, void* acc) {
  const int64_t words = g.a_type == DType::kF64 ? 2 : 1;
  std::fill_n(static_cast<uint32_t*>(acc), words * g.m * g.n, 0u);
  const int64_t k = g.k.Eval(f);
  if (k <= 0) return;
  const size_t depth = g.batch.size();
  std::vector<int64_t> extent(depth);
  for (size_t d = 0; d < depth; ++d) {
    extent[d] = g.batch[d].extent.Eval(f);
    if (extent[d] <= 0) return;
    f.slots[g.batch[d].slot] = 0;
  }
  for (;;) {
    Step(g, f, acc, k);
    size_t d = depth;
    while (d > 0 && ++f.slots[g.batch[d - 1].slot] == extent[d - 1]) f.slots[g.batch[--d].slot] = 0;
    if (d == 0) return;
  }
}

}  // namespace ge::tile::interpret
