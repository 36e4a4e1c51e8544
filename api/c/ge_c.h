/* The runtime in C: load an .om file, run it, read the results. For other languages (ctypes, cgo).
 *
 * Functions that can fail return 0 for success; then ge_last_error() is unchanged. Else it gives
 * the message of this thread's last failure. Handles are not thread-safe, but several ge_run of one
 * ge_model may run on several threads at once.
 */
#ifndef GE_API_C_GE_C_H_
#define GE_API_C_GE_C_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ge_model ge_model;
typedef struct ge_run ge_run;

/* Dense row-major tensor; dtype as ONNX's TensorProto.DataType. */
typedef struct ge_tensor {
  int32_t dtype;
  int32_t rank;
  int64_t dims[8];
  void* data;
  int64_t bytes;
} ge_tensor;

const char* ge_last_error(void);
/* threads 0 = as many as the CPUs available. */
int ge_model_load(const char* path, int threads, ge_model** model);
void ge_model_free(ge_model* model);
int ge_model_num_inputs(const ge_model* model);
int ge_model_num_outputs(const ge_model* model);
const char* ge_model_input_name(const ge_model* model, int index);
const char* ge_model_output_name(const ge_model* model, int index);
int ge_run_create(ge_model* model, ge_run** run);
void ge_run_free(ge_run* run);
/* inputs: one per model input. outputs: filled; their data belongs to the run until its next
 * execution. */
int ge_run_execute(ge_run* run, const ge_tensor* inputs, ge_tensor* outputs);

#ifdef __cplusplus
}
#endif
#endif /* GE_API_C_GE_C_H_ */
