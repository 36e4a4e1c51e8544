// See ge_c.h. A thin face: no logic of its own.

#include "api/c/ge_c.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "rt/runtime.h"

struct ge_model {
  std::shared_ptr<const ge::rt::Model> model;
};
struct ge_run {
  std::shared_ptr<const ge::rt::Model> model;
  std::unique_ptr<ge::rt::Run> run;
  std::vector<ge::rt::Tensor> inputs, outputs;
};

namespace {

thread_local std::string last_error;

int Fail(const ge::Status& status) {
  last_error = status.message();
  return static_cast<int>(status.code());
}

}  // namespace

#define GE_EXPORT extern "C" __attribute__((visibility("default")))

GE_EXPORT const char* ge_last_error() { return last_error.c_str(); }

GE_EXPORT int ge_model_load(const char* path, int threads, ge_model** model) {
  ge::rt::LoadOptions options;
  options.threads = threads;
  auto loaded = ge::rt::Model::Load(path, options);
  if (!loaded.ok()) return Fail(loaded.status());
  *model = new ge_model{std::move(loaded).value()};
  return 0;
}

GE_EXPORT void ge_model_free(ge_model* model) { delete model; }

GE_EXPORT int ge_model_num_inputs(const ge_model* m) {
  return static_cast<int>(m->model->plan().inputs.size());
}
GE_EXPORT int ge_model_num_outputs(const ge_model* m) {
  return static_cast<int>(m->model->plan().outputs.size());
}
GE_EXPORT const char* ge_model_input_name(const ge_model* m, int i) {
  return m->model->plan().inputs[i].name.c_str();
}
GE_EXPORT const char* ge_model_output_name(const ge_model* m, int i) {
  return m->model->plan().outputs[i].name.c_str();
}

GE_EXPORT int ge_run_create(ge_model* model, ge_run** run) {
  auto created = ge::rt::Run::Create(model->model);
  if (!created.ok()) return Fail(created.status());
  *run = new ge_run{model->model, std::move(created).value(), {}, {}};
  (*run)->inputs.resize(model->model->plan().inputs.size());
  (*run)->outputs.resize(model->model->plan().outputs.size());
  return 0;
}

GE_EXPORT void ge_run_free(ge_run* run) { delete run; }

GE_EXPORT int ge_run_execute(ge_run* run, const ge_tensor* inputs, ge_tensor* outputs) {
  for (size_t i = 0; i < run->inputs.size(); ++i) {
    ge::rt::Tensor& t = run->inputs[i];
    const ge_tensor& from = inputs[i];
    if (from.rank < 0 || from.rank > 8)
      return Fail(ge::Invalid("rank of an input is outside 0..8"));
    t.dtype = static_cast<uint8_t>(from.dtype);
    t.dims.assign(from.dims, from.dims + from.rank);
    t.data = from.data;
    t.bytes = from.bytes;
  }
  for (ge::rt::Tensor& t : run->outputs) {
    t.data = nullptr;
    t.bytes = 0;
  }
  if (ge::Status status = run->run->Execute(run->inputs, run->outputs); !status.ok())
    return Fail(status);
  for (size_t i = 0; i < run->outputs.size(); ++i) {
    const ge::rt::Tensor& t = run->outputs[i];
    if (t.dims.size() > 8) return Fail(ge::Unsupported("an output of rank above 8"));
    outputs[i].dtype = t.dtype;
    outputs[i].rank = static_cast<int32_t>(t.dims.size());
    std::copy(t.dims.begin(), t.dims.end(), outputs[i].dims);
    outputs[i].data = t.data;
    outputs[i].bytes = t.bytes;
  }
  return 0;
}
