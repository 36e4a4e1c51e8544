/* What a compiled kernel receives. A standalone C header, versioned like a schema: generated code,
 * the runtime and the interpreter meet here and nowhere else.
 *
 * A kernel is one C function. It does the chunks [begin, end) of its grid; the runtime calls it
 * from several workers at once with disjoint ranges. A kernel never waits, allocates or calls libc.
 * Floating-point state on entry: round to nearest, denormals flushed (FTZ and DAZ on).
 */
#ifndef GE_ABI_KERNEL_ABI_H_
#define GE_ABI_KERNEL_ABI_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GE_KERNEL_ABI_VERSION 1u

/* Rare scalar mathematics, filled from libm by the runtime. Generated code uses it where no vector
 * polynomial exists. Append only; `count` says how many are present. */
enum ge_math1 {
  GE_M_EXP,
  GE_M_LOG,
  GE_M_SIN,
  GE_M_COS,
  GE_M_TAN,
  GE_M_ASIN,
  GE_M_ACOS,
  GE_M_ATAN,
  GE_M_SINH,
  GE_M_COSH,
  GE_M_TANH,
  GE_M_ASINH,
  GE_M_ACOSH,
  GE_M_ATANH,
  GE_M_ERF,
  GE_M_LGAMMA,
  GE_M_EXPM1,
  GE_M_LOG1P,
  GE_M_CBRT,
  GE_M_COUNT1
};
enum ge_math2 { GE_M_POW, GE_M_FMOD, GE_M_ATAN2, GE_M_COUNT2 };

typedef struct ge_math_table {
  uint32_t count1, count2;
  double (*f1[GE_M_COUNT1])(double);
  double (*f2[GE_M_COUNT2])(double, double);
} ge_math_table;

typedef struct ge_kernel_call {
  void* const* buffers; /* one address per buffer argument, in the kernel's order */
  const int64_t* sizes; /* one value per size symbol, in the kernel's order */
  void* scratch;        /* this worker's block, 64-byte aligned, of the kernel's scratch size */
  const ge_math_table* math;
  const void* self; /* for kernels that are not generated code (the interpreter) */
} ge_kernel_call;

typedef void (*ge_kernel_fn)(const ge_kernel_call* call, int64_t begin, int64_t end);

/* A code object exports one symbol, `ge_code`, of this type. */
typedef struct ge_code_table {
  uint32_t abi_version;
  uint32_t count;
  const ge_kernel_fn* kernels; /* in the order of the plan's kernel list */
} ge_code_table;

#ifdef __cplusplus
}
#endif
#endif /* GE_ABI_KERNEL_ABI_H_ */
