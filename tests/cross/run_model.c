/* Runs a model with the runtime library alone, through its C face; for machines that have only
 * that.
 *
 *   run_model MODEL.om THREADS OUT [DTYPE:DIMS:FILE ...]
 * One argument per input: ONNX's number of its type, its sizes with commas, a file of its bytes.
 * The bytes of output i become OUT.i. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/c/ge_c.h"

enum { kMost = 16 };

static int Fail(const char* what) {
  fprintf(stderr, "run_model: %s\n", what);
  return 1;
}

/* Reads one input argument; 0 if it is well-formed and its file can be read. */
static int ReadInput(char* text, ge_tensor* t) {
  char* dims = strchr(text, ':');
  char* file = dims ? strchr(dims + 1, ':') : NULL;
  if (file == NULL) return Fail("an input is DTYPE:DIMS:FILE");
  t->dtype = atoi(text);
  for (char* at = dims + 1; at < file && t->rank < 8; t->rank++, at++)
    t->dims[t->rank] = strtoll(at, &at, 10);
  FILE* f = fopen(file + 1, "rb");
  if (f == NULL) return Fail("an input's file cannot be read");
  fseek(f, 0, SEEK_END);
  t->bytes = ftell(f);
  rewind(f);
  t->data = malloc((size_t)t->bytes + 1);
  const size_t got = fread(t->data, 1, (size_t)t->bytes, f);
  fclose(f);
  return got == (size_t)t->bytes ? 0 : Fail("an input's file cannot be read");
}

static int WriteOutput(const char* prefix, int index, const ge_tensor* t) {
  char name[4096];
  snprintf(name, sizeof name, "%s.%d", prefix, index);
  FILE* f = fopen(name, "wb");
  if (f == NULL) return Fail("an output cannot be written");
  const size_t put = fwrite(t->data, 1, (size_t)t->bytes, f);
  return fclose(f) == 0 && put == (size_t)t->bytes ? 0 : Fail("an output cannot be written");
}

int main(int argc, char** argv) {
  if (argc < 4) return Fail("MODEL.om THREADS OUT [DTYPE:DIMS:FILE ...]");
  ge_model* model = NULL;
  ge_run* run = NULL;
  ge_tensor in[kMost], out[kMost];
  memset(in, 0, sizeof in);
  memset(out, 0, sizeof out);
  if (ge_model_load(argv[1], atoi(argv[2]), &model) || ge_run_create(model, &run))
    return Fail(ge_last_error());
  const int inputs = ge_model_num_inputs(model), outputs = ge_model_num_outputs(model);
  if (inputs != argc - 4 || inputs > kMost || outputs > kMost)
    return Fail("the model has another number of inputs");
  for (int i = 0; i < inputs; i++) {
    if (ReadInput(argv[4 + i], &in[i])) return 1;
  }
  for (int again = 0; again < 2; again++) { /* the second run finds the arena used */
    if (ge_run_execute(run, in, out)) return Fail(ge_last_error());
  }
  for (int i = 0; i < outputs; i++) {
    if (WriteOutput(argv[3], i, &out[i])) return 1;
  }
  for (int i = 0; i < inputs; i++) free(in[i].data);
  ge_run_free(run);
  ge_model_free(model);
  return 0;
}
