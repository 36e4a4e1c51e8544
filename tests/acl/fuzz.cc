// Random sequences of AscendCL calls, most of them wrong, from several threads.
//
//   fuzz SECONDS THREADS SEED [MODEL.om...]
//
// Handles are live, dead, of another kind, null or made up; order, sizes and ids are random. Host
// memory that is passed is valid, and nothing waits without a timeout: else a client hangs by its
// own fault. The program must not crash and must end; sanitizers look for the rest. At the end
// every thread's own handles are released, and what is right must work again.
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "api/acl/include/acl/acl.h"
#include "tests/acl/fuzz_pool.h"

// Runs of several threads may be given the same memory for results here; where a result is staged,
// the copy into it is seen to race. That is the clients' race: only that copy is excepted.
// Code that is loaded may lie where another thread had a file mapped and unmapped it: the dynamic
// loader's mapping is not seen, so that the table of kernels seems to race with that.
extern "C" const char* __tsan_default_suppressions() {
  return "race:ge::rt::Run::State::FinishOne\nrace:ge::rt::Run::State::FillStaged\n"
         "race:ge::rt::Run::State::PlaceInput\n"
         "race:ge::rt::CodeObject::Load\nrace:LoadKernels\n";
}

namespace {

Pool contexts([](void* h) { aclrtDestroyContext(h); });
Pool streams([](void* h) { aclrtDestroyStreamForce(h); });
Pool events([](void* h) { aclrtDestroyEvent(h); });
Pool notifies([](void* h) { aclrtDestroyNotify(h); });
Pool buffers([](void* h) { aclDestroyDataBuffer(As<aclDataBuffer>(h)); });
Pool datasets([](void* h) { aclmdlDestroyDataset(As<aclmdlDataset>(h)); });
Pool descs([](void* h) { aclmdlDestroyDesc(As<aclmdlDesc>(h)); });
Pool tensor_descs([](void* h) { aclDestroyTensorDesc(As<aclTensorDesc>(h)); });
Pool aipps([](void* h) { aclmdlDestroyAIPP(As<aclmdlAIPP>(h)); });
Pool blocks([](void* h) { aclrtFree(h); });
Pool configs([](void* h) { aclmdlDestroyConfigHandle(As<aclmdlConfigHandle>(h)); });
Pool physical([](void* h) { aclrtFreePhysical(h); });
Pool groups([](void* h) { aclrtDestroyGroupInfo(As<aclrtGroupInfo>(h)); });
Pool recordings([](void* h) { aclmdlRIDestroy(h); });
std::mutex models_mutex;
std::vector<uint32_t> models = {0, 1, 77};
std::vector<std::string> files;
std::vector<std::vector<char>> contents;
std::atomic<long> calls{0}, good{0};

// One pool in ten gives a handle of any kind.
void* Any(Rng& rng, Pool& pool) {
  Pool* all[] = {&contexts, &streams,  &events, &notifies,
                 &buffers,  &datasets, &descs,  &tensor_descs};
  return rng() % 10 == 0 ? all[rng() % 8]->Pick(rng) : pool.Pick(rng);
}
uint32_t Model(Rng& rng) {
  std::lock_guard lock(models_mutex);
  return models[rng() % models.size()];
}
void PutModel(uint32_t id) {
  std::lock_guard lock(models_mutex);
  if (models.size() < 16) {
    models.push_back(id);
  } else {
    std::swap(models[3 + id % 13], id);
    aclmdlUnload(id);
  }
}
size_t Size(Rng& rng) {
  constexpr size_t kSizes[] = {0, 1, 8, 40, 63, 64, 4096, 12288, 100000, SIZE_MAX};
  return kSizes[rng() % 10];
}

void CountCall(void* data) { ++*static_cast<std::atomic<long>*>(data); }
std::atomic<long> called{0};
// A host function that itself misbehaves.
void Naughty(void* data) {
  switch (reinterpret_cast<uintptr_t>(data) % 4) {
    case 0: aclrtSynchronizeStreamWithTimeout(data, 1); break;
    case 1: aclrtDestroyStreamForce(data); break;
    case 2: aclrtStreamAbort(data); break;
    default: aclrtLaunchHostFunc(data, CountCall, &called); break;
  }
}

aclError Load(Rng& rng) {
  uint32_t id = 0;
  aclError code = ACL_SUCCESS;
  if (files.empty()) return aclmdlLoadFromFile("/nowhere.om", &id);
  const size_t i = rng() % files.size();
  switch (rng() % 6) {
    case 0: code = aclmdlLoadFromFile(files[i].c_str(), rng() % 8 ? &id : nullptr); break;
    case 1: {
      const std::vector<char>& data = contents[i];
      const size_t n = rng() % 4 ? data.size() : rng() % data.size();
      code = aclmdlLoadFromMem(data.data(), n, &id);
      break;
    }
    case 2: {
      std::vector<char> data = contents[i];
      for (int k = 0; k < 3; ++k) data[rng() % data.size()] ^= static_cast<char>(1 << rng() % 8);
      // Weights have no checksum that loading reads: a damaged model may load, and is dropped.
      code = aclmdlLoadFromMem(data.data(), data.size(), &id);
      if (code == ACL_SUCCESS) aclmdlUnload(id);
      return code;
    }
    case 3:
      code = aclmdlLoadFromFileWithMem(files[i].c_str(), &id, blocks.Pick(rng), Size(rng),
                                       blocks.Pick(rng), Size(rng));
      break;
    case 4: code = aclmdlLoadFromFileWithQ(files[i].c_str(), &id, nullptr, 0, nullptr, 0); break;
    default: code = aclmdlLoadWithConfig(As<aclmdlConfigHandle>(Any(rng, configs)), &id); break;
  }
  if (code == ACL_SUCCESS) PutModel(id);
  return code;
}

// Datasets that fit a model often enough.
aclError Fill(Rng& rng) {
  aclmdlDataset* dataset = aclmdlCreateDataset();
  datasets.Put(dataset);
  const size_t bytes = rng() % 4 ? (rng() % 2 ? 12288 : 4 * 12288) : Size(rng);
  void* memory = blocks.Pick(rng);
  aclDataBuffer* buffer = aclCreateDataBuffer(rng() % 8 ? memory : nullptr, rng() % 8 ? bytes : 0);
  buffers.Put(buffer);
  return aclmdlAddDatasetBuffer(dataset, buffer);
}

aclError ModelStep(Rng& rng) {
  auto* dataset = As<aclmdlDataset>(Any(rng, datasets));
  auto* desc = As<aclmdlDesc>(Any(rng, descs));
  auto* tensor = As<aclTensorDesc>(Any(rng, tensor_descs));
  auto* aipp = As<aclmdlAIPP>(Any(rng, aipps));
  aclmdlIODims dims = {};
  size_t index = 0;
  switch (rng() % 30) {
    case 0: return Load(rng);
    case 1: return aclmdlUnload(Model(rng));
    case 2: {
      auto* made = aclmdlCreateDesc();
      descs.Put(made);
      return aclmdlGetDesc(made, Model(rng));
    }
    case 3: return aclmdlGetDesc(desc, Model(rng));
    case 4: return rng() % 4 ? ACL_SUCCESS : aclmdlDestroyDesc(desc);
    case 5: return aclmdlGetInputDims(desc, rng() % 3, rng() % 8 ? &dims : nullptr);
    case 6: return aclmdlGetCurOutputDims(desc, rng() % 3, &dims);
    case 7: return static_cast<aclError>(aclmdlGetInputSizeByIndex(desc, rng() % 4) % 2);
    case 8: aclmdlGetInputNameByIndex(desc, rng() % 3); return ACL_SUCCESS;
    case 9:
      return aclmdlGetInputIndexByName(desc, rng() % 2 ? "x" : ACL_DYNAMIC_TENSOR_NAME, &index);
    case 10:
    case 11: return Fill(rng);
    case 12: return rng() % 4 ? ACL_SUCCESS : aclmdlDestroyDataset(dataset);
    case 13: return aclmdlAddDatasetBuffer(dataset, As<aclDataBuffer>(Any(rng, buffers)));
    case 14: aclmdlGetDatasetBuffer(dataset, rng() % 4); return ACL_SUCCESS;
    case 15: return aclmdlSetDatasetTensorDesc(dataset, tensor, rng() % 3);
    case 16: tensor_descs.Put(aclmdlGetDatasetTensorDesc(dataset, rng() % 3)); return ACL_SUCCESS;
    case 17: return aclmdlSetDynamicBatchSize(Model(rng), dataset, rng() % 3, rng() % 5);
    case 18: return aclmdlSetDynamicHWSize(Model(rng), dataset, rng() % 3, rng() % 64, rng() % 64);
    case 19:
      dims = {"", 4, {static_cast<int64_t>(rng() % 5), 3, 32, 32}};
      if (rng() % 8 == 0) dims.dimCount = Size(rng);
      return aclmdlSetInputDynamicDims(Model(rng), dataset, rng() % 3, &dims);
    case 20: aipps.Put(aclmdlCreateAIPP(rng() % 4)); return ACL_SUCCESS;
    case 21:
      return aclmdlSetAIPPCropParams(aipp, static_cast<int8_t>(rng() % 3), 1, 1, 8, 8, rng() % 4);
    case 22: return aclmdlSetInputAIPP(Model(rng), dataset, rng() % 3, aipp);
    case 23: return rng() % 2 ? ACL_SUCCESS : aclmdlDestroyAIPP(aipp);
    case 24: {
      configs.Put(aclmdlCreateConfigHandle());
      size_t type = rng() % 8;
      const char* path = files.empty() ? "/nowhere" : files[rng() % files.size()].c_str();
      auto* config = As<aclmdlConfigHandle>(Any(rng, configs));
      aclmdlSetConfigOpt(config, ACL_MDL_PATH_PTR, &path, sizeof path);
      return aclmdlSetConfigOpt(config, ACL_MDL_LOAD_TYPE_SIZET, &type,
                                rng() % 8 ? sizeof type : 3);
    }
    case 25:
      return rng() % 2 ? ACL_SUCCESS
                       : aclmdlDestroyConfigHandle(As<aclmdlConfigHandle>(Any(rng, configs)));
    case 26: return aclmdlGetDynamicBatch(desc, nullptr);
    case 27:
      return aclmdlExecuteAsync(Model(rng), dataset, As<aclmdlDataset>(Any(rng, datasets)),
                                Any(rng, streams));
    default: return aclmdlExecute(Model(rng), dataset, As<aclmdlDataset>(Any(rng, datasets)));
  }
}

aclError StreamStep(Rng& rng) {
  void* stream = Any(rng, streams);
  void* event = Any(rng, events);
  void* notify = Any(rng, notifies);
  void* made = nullptr;
  aclError code = ACL_SUCCESS;
  const auto self = static_cast<uint64_t>(pthread_self());
  switch (rng() % 32) {
    case 0:
    case 1:
      code = aclrtCreateStream(rng() % 8 ? &made : nullptr);
      streams.Put(made);
      return code;
    case 2: return aclrtDestroyStreamForce(stream);
    case 3: {
      // What waits for nothing would hang a plain destruction.
      return aclrtSynchronizeStreamWithTimeout(stream, 1) == ACL_SUCCESS ? ACL_SUCCESS
                                                                         : aclrtStreamAbort(stream);
    }
    case 4: return aclrtSynchronizeStreamWithTimeout(stream, static_cast<int32_t>(rng() % 3));
    case 5: {
      aclrtStreamStatus status;
      return aclrtStreamQuery(stream, rng() % 8 ? &status : nullptr);
    }
    case 6: return aclrtSetStreamFailureMode(stream, rng() % 3);
    case 7:
      code = rng() % 2 ? aclrtCreateEvent(&made) : aclrtCreateEventExWithFlag(&made, rng() % 64);
      events.Put(made);
      return code;
    case 8: return rng() % 2 ? ACL_SUCCESS : aclrtDestroyEvent(event);
    case 9:
    case 10: return aclrtRecordEvent(event, stream);
    case 11: return aclrtStreamWaitEvent(stream, event);
    case 12: return aclrtResetEvent(event, stream);
    case 13: {
      aclrtEventRecordedStatus status;
      return aclrtQueryEventStatus(event, &status);
    }
    case 14: return aclrtSynchronizeEventWithTimeout(event, 1);
    case 15: {
      float ms = 0;
      return aclrtEventElapsedTime(&ms, event, Any(rng, events));
    }
    case 16:
      code = aclrtCreateNotify(&made, rng() % 3);
      notifies.Put(made);
      return code;
    case 17: return rng() % 2 ? ACL_SUCCESS : aclrtDestroyNotify(notify);
    case 18: return aclrtRecordNotify(notify, stream);
    case 19: return aclrtWaitAndResetNotify(notify, stream, static_cast<uint32_t>(rng() % 3));
    case 20: return aclrtSubscribeReport(rng() % 4 ? self : rng() % 3, stream);
    case 21: return aclrtUnSubscribeReport(rng() % 4 ? self : rng() % 3, stream);
    case 22: return aclrtProcessReport(static_cast<int32_t>(rng() % 3) - (rng() % 16 == 0 ? 5 : 0));
    case 23:
    case 24:
      return aclrtLaunchCallback(rng() % 8 ? CountCall : nullptr, &called,
                                 static_cast<aclrtCallbackBlockType>(rng() % 3), stream);
    case 25: return aclrtLaunchHostFunc(stream, CountCall, &called);
    case 26: return stream == nullptr ? ACL_SUCCESS : aclrtLaunchHostFunc(stream, Naughty, stream);
    case 27: return aclrtSynchronizeDeviceWithTimeout(1);
    case 28: return aclrtStreamAbort(stream);
    case 29: {
      // In memory of its own: what a model writes meanwhile would be the client's race.
      if (rng() % 4 == 0) return aclrtValueWait(nullptr, 1, 0, stream);
      if (aclrtMalloc(&made, 64, ACL_MEM_MALLOC_HUGE_FIRST) != ACL_SUCCESS) return ACL_SUCCESS;
      aclrtMemset(made, 64, 0, 64);
      code = aclrtValueWait(made, rng() % 3, rng() % 5, stream);
      aclrtFree(made);
      return code;
    }
    case 30: return aclrtSubscribeHostFunc(rng() % 2 ? self : 0, stream);
    default: return rng() % 2 ? aclrtUnSubscribeHostFunc(self, stream) : aclrtProcessHostFunc(0);
  }
}

aclError MemoryStep(Rng& rng, std::vector<void*>* own) {
  static thread_local char host[100000];
  void* made = nullptr;
  aclError code = ACL_SUCCESS;
  const auto kind = static_cast<aclrtMemcpyKind>(rng() % 9);
  switch (rng() % 14) {
    case 0:
      code = aclrtMalloc(rng() % 8 ? &made : nullptr, rng() % 4 ? 50000 : Size(rng),
                         static_cast<aclrtMemMallocPolicy>(rng() % 10));
      blocks.Put(made);
      return code;
    case 1: return rng() % 2 ? ACL_SUCCESS : aclrtFree(blocks.Pick(rng));
    case 2: {
      if (aclrtMallocHost(&made, 4096) != ACL_SUCCESS) return ACL_SUCCESS;
      own->push_back(made);
      return ACL_SUCCESS;
    }
    case 3: {
      // Memory of this thread alone, used by one call at a time: no race of the client's own.
      if (own->empty()) return ACL_SUCCESS;
      const size_t n = rng() % 8000;
      return aclrtMemcpy((*own)[rng() % own->size()], rng() % 2 ? 4096 : 8000, host, n, kind);
    }
    case 4: {
      if (own->empty()) return ACL_SUCCESS;
      void* p = own->back();
      own->pop_back();
      code = aclrtFreeHost(p);
      return code | (aclrtFreeHost(p) == ACL_SUCCESS ? 1 : 0);
    }
    case 5: {
      // Asynchronous copies into a block of their own, which is freed at once.
      if (aclrtMalloc(&made, 4096, ACL_MEM_MALLOC_HUGE_FIRST) != ACL_SUCCESS) return ACL_SUCCESS;
      static const char source[4096] = {};
      code = aclrtMemcpyAsync(made, 4096, source, rng() % 8 ? 4096 : 5000, kind, Any(rng, streams));
      aclrtFree(made);
      return code;
    }
    case 6: {
      if (aclrtMalloc(&made, 4096, ACL_MEM_MALLOC_NORMAL_ONLY) != ACL_SUCCESS) return ACL_SUCCESS;
      code = aclrtMemsetAsync(made, 4096, 1, rng() % 8 ? 4096 : Size(rng), Any(rng, streams));
      aclrtFree(made);
      return code;
    }
    case 7: buffers.Put(aclCreateDataBuffer(blocks.Pick(rng), Size(rng))); return ACL_SUCCESS;
    case 8:
      return rng() % 2 ? ACL_SUCCESS : aclDestroyDataBuffer(As<aclDataBuffer>(Any(rng, buffers)));
    case 9:
      return aclUpdateDataBuffer(As<aclDataBuffer>(Any(rng, buffers)), blocks.Pick(rng), Size(rng));
    case 10: {
      int64_t dims[4] = {static_cast<int64_t>(rng() % 5) - 1, 3, 32, 32};
      tensor_descs.Put(aclCreateTensorDesc(static_cast<aclDataType>(rng() % 45),
                                           static_cast<int>(rng() % 6) - 1,
                                           rng() % 8 ? dims : nullptr, ACL_FORMAT_ND));
      return ACL_SUCCESS;
    }
    case 11: {
      auto* desc = As<aclTensorDesc>(Any(rng, tensor_descs));
      aclSetTensorDescName(desc, "name");
      if (rng() % 4 == 0) aclDestroyTensorDesc(desc);
      return static_cast<aclError>(aclGetTensorDescSize(desc) % 2);
    }
    case 12: {
      aclrtPhysicalMemProp prop = {};
      code = aclrtMallocPhysical(&made, 2 << 20, &prop, 0);
      physical.Put(made);
      void* at = nullptr;
      if (aclrtReserveMemAddress(&at, 2 << 20, 0, nullptr, 0) != ACL_SUCCESS) return code;
      if (aclrtMapMem(at, 2 << 20, 0, Any(rng, physical), 0) == ACL_SUCCESS) aclrtUnmapMem(at);
      if (rng() % 2) aclrtFreePhysical(Any(rng, physical));
      return aclrtReleaseMemAddress(at);
    }
    default: {
      size_t free = 0, total = 0;
      aclrtGetMemInfo(static_cast<aclrtMemAttr>(rng() % 20), &free, rng() % 8 ? &total : nullptr);
      groups.Put(aclrtCreateGroupInfo());
      return rng() % 2 ? aclrtGetAllGroupInfo(As<aclrtGroupInfo>(Any(rng, groups)))
                       : aclrtDestroyGroupInfo(As<aclrtGroupInfo>(Any(rng, groups)));
    }
  }
}

aclError RecordingStep(Rng& rng) {
  void* stream = Any(rng, streams);
  void* model = Any(rng, recordings);
  void* made = nullptr;
  aclError code = ACL_SUCCESS;
  uint32_t count = static_cast<uint32_t>(rng() % 3);
  switch (rng() % 16) {
    case 0:
    case 1: return aclmdlRICaptureBegin(stream, static_cast<aclmdlRICaptureMode>(rng() % 4));
    case 2:
    case 3:
      code = aclmdlRICaptureEnd(stream, rng() % 8 ? &made : nullptr);
      recordings.Put(made);
      return code;
    case 4: {
      aclmdlRICaptureStatus status;
      return aclmdlRICaptureGetInfo(stream, &status, rng() % 8 ? &made : nullptr);
    }
    case 5: return rng() % 4 ? ACL_SUCCESS : aclmdlRIDestroy(model);
    case 6: return aclmdlRIExecuteAsync(model, stream);
    case 7: return aclmdlRIExecute(model, 1);
    case 8:
      code = aclmdlRIBuildBegin(rng() % 8 ? &made : nullptr, 0);
      recordings.Put(made);
      return code;
    case 9:
      return aclmdlRIBindStream(
          model, stream, rng() % 2 ? ACL_MODEL_STREAM_FLAG_HEAD : ACL_MODEL_STREAM_FLAG_DEFAULT);
    case 10:
      return rng() % 2 ? aclmdlRIBuildEnd(model, nullptr) : aclmdlRIUnbindStream(model, stream);
    case 11: return aclmdlRICaptureTaskGrpBegin(stream);
    case 13:
    case 14: return JumpStep(rng, stream, Any(rng, streams), Any(rng, blocks));
    case 12: {
      code = aclmdlRICaptureTaskGrpEnd(stream, &made);
      if (code != ACL_SUCCESS) made = stream;
      aclmdlRICaptureTaskUpdateBegin(stream, made);
      aclrtLaunchHostFunc(stream, CountCall, &called);
      return aclmdlRICaptureTaskUpdateEnd(stream);
    }
    default: {
      void* some[2];
      return rng() % 2 ? aclmdlRIGetStreams(model, some, &count)
                       : aclmdlRIGetTasksByStream(stream, some, &count);
    }
  }
}

aclError ContextStep(Rng& rng) {
  void* made = nullptr;
  aclError code = ACL_SUCCESS;
  switch (rng() % 8) {
    case 0: return aclrtSetDevice(static_cast<int32_t>(rng() % 4) - 1);
    case 1: return rng() % 4 ? ACL_SUCCESS : aclrtResetDevice(static_cast<int32_t>(rng() % 3) - 1);
    case 2:
      code = aclrtCreateContext(&made, static_cast<int32_t>(rng() % 3));
      contexts.Put(made);
      return code;
    case 3: return rng() % 4 ? ACL_SUCCESS : aclrtDestroyContext(Any(rng, contexts));
    case 4:
    case 5: return aclrtSetCurrentContext(Any(rng, contexts));
    case 6: return rng() % 16 ? aclInit(nullptr) : aclFinalize();
    default: return aclrtSetDevice(0);
  }
}

void* AnyHandle(Rng& rng) {
  Pool* all[] = {&contexts, &streams,      &events, &notifies, &buffers,  &datasets, &descs,
                 &aipps,    &tensor_descs, &blocks, &configs,  &physical, &groups,   &recordings};
  return all[rng() % std::size(all)]->Pick(rng);
}

void Play(uint64_t seed, std::chrono::steady_clock::time_point end) {
  Rng rng(seed);
  std::vector<void*> own;
  while (std::chrono::steady_clock::now() < end) {
    for (int i = 0; i < 50; ++i) {
      const uint64_t which = rng() % 16;
      const aclError code = which < 1                      ? ContextStep(rng)
                            : which < 6                    ? StreamStep(rng)
                            : which < 9                    ? MemoryStep(rng, &own)
                            : which < 10                   ? RecordingStep(rng)
                            : which < 11                   ? QueueStep(rng)
                            : which < 12 && rng() % 2 == 0 ? SurfaceStep(rng, AnyHandle)
                            : which < 12 && rng() % 4 == 0 ? ProfileStep(rng)
                                                           : ModelStep(rng);
      ++calls;
      if (code == ACL_SUCCESS) ++good;
      if (rng() % 64 == 0)
        if (const char* message = aclGetRecentErrMsg()) calls += std::strlen(message) > 1u << 20;
    }
  }
  for (void* p : own) aclrtFreeHost(p);
}

bool Ok(aclError code, const char* what) {
  if (code == ACL_SUCCESS) return true;
  const char* message = aclGetRecentErrMsg();
  std::printf("afterwards, %s: %d %s\n", what, code, message == nullptr ? "" : message);
  return false;
}

bool StillWorks() {
  aclInit(nullptr);
  if (!Ok(aclrtSetDevice(0), "set device")) return false;
  aclrtStream stream = nullptr;
  if (!Ok(aclrtCreateStream(&stream), "create stream")) return false;
  std::atomic<long> n{0};
  if (!Ok(aclrtLaunchHostFunc(stream, CountCall, &n), "launch")) return false;
  if (!Ok(aclrtSynchronizeStream(stream), "synchronize") || n != 1) return false;
  for (const std::string& file : files) {
    uint32_t id = 0;
    if (!Ok(aclmdlLoadFromFile(file.c_str(), &id), "load")) return false;
    if (!Ok(aclmdlUnload(id), "unload")) return false;
  }
  return Ok(aclrtDestroyStream(stream), "destroy stream");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  // Profiles, dumps and whatever else random calls write: gone at the end.
  std::string folder = (std::filesystem::temp_directory_path() / "acl_fuzz.XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 2;
  const double seconds = std::atof(argv[1]);
  const int threads = std::atoi(argv[2]);
  const uint64_t seed = std::strtoull(argv[3], nullptr, 10);
  for (int i = 4; i < argc; ++i) {
    files.push_back(std::filesystem::absolute(argv[i]).string());
    std::vector<char>& data = contents.emplace_back();
    FILE* f = std::fopen(argv[i], "rb");
    if (f == nullptr) return 2;
    char chunk[4096];
    for (size_t n = 0; (n = std::fread(chunk, 1, sizeof chunk, f)) > 0;)
      data.insert(data.end(), chunk, chunk + n);
    std::fclose(f);
  }
  std::filesystem::current_path(folder);
  aclInit(nullptr);
  const auto end =
      std::chrono::steady_clock::now() +
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds));
  std::vector<std::thread> players;
  for (int i = 0; i < threads; ++i)
    players.emplace_back(Play, seed * 1000 + static_cast<uint64_t>(i), end);
  for (std::thread& player : players) player.join();
  for (Pool* pool : {&streams, &events, &notifies, &datasets, &buffers, &descs, &tensor_descs,
                     &aipps, &configs, &physical, &groups, &contexts, &blocks, &recordings})
    pool->ReleaseAll();
  ReleaseQueueHandles();
  const bool works = StillWorks();
  std::printf("%ld calls, %ld of them successful, %ld callbacks; afterwards %s\n", calls.load(),
              good.load(), called.load(), works ? "all works" : "NOTHING WORKS");
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return works ? 0 : 1;
}
