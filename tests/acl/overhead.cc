// What AscendCL adds to a run of a model: aclmdlExecute and aclmdlExecuteAsync against rt::Run.
//   overhead MODEL.om INPUT_BYTES OUTPUT_BYTES      exits 1 if a limit is passed
//
// Rounds of the three take turns, so that the machine's moods hit all alike; the shortest of all
// runs are compared, which no other program held up.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "api/acl/include/acl/acl.h"
#include "rt/runtime.h"

namespace {

constexpr double kMaxSyncUs = 2, kMaxAsyncUs = 60;
constexpr int kRounds = 41, kRuns = 50;

double MinUs(const std::function<void()>& f) {
  double best = 1e9;
  for (int i = 0; i < kRuns; ++i) {
    const auto start = std::chrono::steady_clock::now();
    f();
    const std::chrono::duration<double, std::micro> d = std::chrono::steady_clock::now() - start;
    best = std::min(best, d.count());
  }
  return best;
}

aclmdlDataset* MakeDataset(size_t bytes, void** memory) {
  aclrtMalloc(memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemset(*memory, bytes, 0, bytes);
  aclmdlDataset* dataset = aclmdlCreateDataset();
  aclmdlAddDatasetBuffer(dataset, aclCreateDataBuffer(*memory, bytes));
  return dataset;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  aclInit(nullptr);
  aclrtSetDevice(0);
  aclrtSetDeviceResLimit(0, ACL_RT_DEV_RES_CUBE_CORE, 1);  // one worker: no noise of waking others
  aclrtStream stream = nullptr;
  aclrtCreateStream(&stream);
  uint32_t id = 0;
  if (aclmdlLoadFromFile(argv[1], &id) != ACL_SUCCESS) return 2;
  void *in = nullptr, *out = nullptr;
  aclmdlDataset* input = MakeDataset(std::strtoull(argv[2], nullptr, 10), &in);
  aclmdlDataset* output = MakeDataset(std::strtoull(argv[3], nullptr, 10), &out);

  ge::rt::LoadOptions options;
  options.threads = 1;
  auto model = ge::rt::Model::Load(argv[1], options);
  auto run = ge::rt::Run::Create(*model);
  const ge::om::Plan& plan = (*model)->plan();
  std::vector<ge::rt::Tensor> inputs(1), outputs(1);
  inputs[0].dtype = plan.inputs[0].dtype;
  outputs[0].dtype = plan.outputs[0].dtype;
  for (const ge::om::SizeRef dim : plan.inputs[0].dims)
    inputs[0].dims.push_back(plan.size_code[plan.sizes[static_cast<size_t>(dim)].begin].value);
  inputs[0].data = in;
  inputs[0].bytes = std::atoll(argv[2]);
  const auto direct = [&] {
    outputs[0].data = out;
    outputs[0].bytes = std::atoll(argv[3]);
    if (!(*run)->Execute(inputs, outputs).ok()) std::exit(2);
  };
  const auto sync = [&] {
    if (aclmdlExecute(id, input, output) != ACL_SUCCESS) std::exit(2);
  };
  const auto async = [&] {
    if (aclmdlExecuteAsync(id, input, output, stream) != ACL_SUCCESS) std::exit(2);
    if (aclrtSynchronizeStream(stream) != ACL_SUCCESS) std::exit(2);
  };
  double base = 1e9, best_sync = 1e9, best_async = 1e9;
  for (int i = 0; i < kRounds; ++i) {
    base = std::min(base, MinUs(direct));
    best_sync = std::min(best_sync, MinUs(sync));
    best_async = std::min(best_async, MinUs(async));
  }
  const double extra_sync = best_sync - base, extra_async = best_async - base;
  std::printf(
      "run %.2f us; aclmdlExecute adds %.2f us (limit %.0f); aclmdlExecuteAsync with the wake of "
      "the "
      "stream and synchronisation adds %.2f us (limit %.0f)\n",
      base, extra_sync, kMaxSyncUs, extra_async, kMaxAsyncUs);
  aclmdlUnload(id);
  aclrtDestroyStream(stream);
  aclrtResetDevice(0);
  aclFinalize();
  return extra_sync < kMaxSyncUs && extra_async < kMaxAsyncUs ? 0 : 1;
}
