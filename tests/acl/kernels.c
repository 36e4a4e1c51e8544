/* Kernels of a client, for kernel_test.cc. */
#include <stdint.h>

static uint32_t block, blocks;

void ge_set_block(uint32_t index, uint32_t count) {
  block = index;
  blocks = count;
}

/* z = x + y, each block its part. */
void add_custom(const float* x, const float* y, float* z, int64_t length) {
  const int64_t part = (length + blocks - 1) / blocks, begin = block * part;
  for (int64_t i = begin; i < begin + part && i < length; ++i) z[i] = x[i] + y[i];
}

/* The same, told by pointers. */
void add_placeholder(const float* x, const float* y, float* z, const int32_t* length,
                     const int32_t* tiles) {
  for (int32_t i = 0; i < *length * *tiles; ++i) z[i] = x[i] + y[i];
}

void nine(uint64_t* out, int8_t a, uint8_t b, int16_t c, uint16_t d, int32_t e, uint32_t f,
          int64_t g, uint64_t h) {
  const uint64_t all[8] = {(uint64_t)a, b, (uint64_t)c, d, (uint64_t)e, f, (uint64_t)g, h};
  for (int i = 0; i < 8; ++i) out[i] = all[i];
}

void count_call(uint32_t* calls) { ++*calls; }
