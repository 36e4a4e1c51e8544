// Kernels of the client's own: functions of a shared object for this processor, launched on
// streams.
//
// A binary is an ELF file that the system's loader takes (of another machine it is refused). A
// kernel is a C function of at most kMostWords arguments, each a pointer or an integer of up to 8
// bytes: the argument area, word by word. Blocks run one after the other on the stream's thread;
// before each one the object's ge_set_block(index, count) is called, if it has one. Device memory
// that an argument points to is pinned until the launch is over.
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "api/acl/error.h"
#include "api/acl/memory.h"
#include "api/acl/stream.h"

namespace ge::acl {
namespace {

constexpr size_t kMostWords = 32, kMostBytes = size_t{1} << 20;
using Word = uint64_t;

// Bytes that are loaded later.
struct RawBinary {
  static constexpr int kHandleKind = 34;
  std::vector<char> bytes;
};

struct Binary {
  static constexpr int kHandleKind = 35;
  void* object = nullptr;
  int fd = -1;  // open while it is loaded: the loader knows objects by name
  void (*set_block)(uint32_t, uint32_t) = nullptr;
  std::mutex mutex;
  std::vector<std::pair<std::string, void*>> functions;  // name, handle
  std::vector<void*> arguments;                          // handles made for its functions
  Binary() = default;
  Binary(const Binary&) = delete;
  Binary& operator=(const Binary&) = delete;
  ~Binary() {
    if (object != nullptr) dlclose(object);
    if (fd >= 0) close(fd);
  }
};

struct Function {
  static constexpr int kHandleKind = 36;
  std::shared_ptr<Binary> binary;
  void* code = nullptr;
};

// What a launch hands over: words, and bytes that words of it point to.
struct Arguments {
  static constexpr int kHandleKind = 37;
  std::vector<char> area;
  struct Buffer {
    size_t offset = 0;  // of the word that holds its address
    std::vector<char> bytes;
  };
  std::mutex mutex;
  std::vector<Buffer> buffers;  // a handle of a parameter is its number here + 1
  bool complete = false;
};

aclError Open(const char* name, int fd, aclrtBinHandle* handle, const char* function) {
  auto binary = std::make_shared<Binary>();
  binary->fd = fd;
  binary->object = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (binary->object == nullptr) {
    const char* reason = dlerror();
    return Fail(ACL_ERROR_API_NOT_SUPPORT, function,
                std::string("kernels are functions of a shared object for this processor; the "
                            "loader says: ") +
                    (reason == nullptr ? "no reason" : reason));
  }
  binary->set_block =
      reinterpret_cast<void (*)(uint32_t, uint32_t)>(dlsym(binary->object, "ge_set_block"));
  *handle = Live<Binary>().Add(std::move(binary));
  return ACL_SUCCESS;
}

aclError OpenBytes(const void* data, size_t bytes, aclrtBinHandle* handle, const char* function) {
  const int fd = memfd_create("ge_kernels", MFD_CLOEXEC);
  if (fd < 0) return Fail(ACL_ERROR_RT_MEMORY_ALLOCATION, function, std::strerror(errno));
  for (size_t at = 0; at < bytes;) {
    const ssize_t n = write(fd, static_cast<const char*>(data) + at, bytes - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      close(fd);
      return Fail(ACL_ERROR_RT_MEMORY_ALLOCATION, function, std::strerror(errno));
    }
    at += static_cast<size_t>(n);
  }
  return Open(("/proc/self/fd/" + std::to_string(fd)).c_str(), fd, handle, function);
}

template <size_t... I>
void CallWith(void* code, const Word* words, std::index_sequence<I...>) {
  reinterpret_cast<void (*)(decltype((void)I, Word{})...)>(code)(words[I]...);
}

// A launch: `area` is what the kernel gets, `buffers` what its pointers lead to.
struct Launch {
  std::shared_ptr<Function> function;
  uint32_t blocks = 1;
  std::vector<char> area;
  std::vector<Arguments::Buffer> buffers;
  std::vector<std::shared_ptr<MemoryBlock>> pins;
};

aclError Submit(std::shared_ptr<Launch> launch, aclrtFuncHandle function, uint32_t blocks,
                aclrtStream stream, const char* name) {
  launch->function = Live<Function>().Get(function);
  if (!launch->function) return Fail(ACL_ERROR_RT_INVALID_HANDLE, name, "not a live function");
  if (blocks == 0) return Fail(ACL_ERROR_INVALID_PARAM, name, "numBlocks is 0");
  launch->blocks = blocks;
  if (launch->area.size() > kMostWords * sizeof(Word))
    return Fail(ACL_ERROR_INVALID_PARAM, name,
                "the arguments have " + std::to_string(launch->area.size()) + " bytes, at most " +
                    std::to_string(kMostWords * sizeof(Word)) + " are passed");
  launch->area.resize(kMostWords * sizeof(Word));
  for (Arguments::Buffer& buffer : launch->buffers) {
    const void* address = buffer.bytes.data();
    std::memcpy(launch->area.data() + buffer.offset, &address, sizeof address);
  }
  for (size_t i = 0; i < kMostWords; ++i) {
    const void* address = nullptr;
    std::memcpy(&address, launch->area.data() + i * sizeof(Word), sizeof address);
    if (auto pin = address == nullptr ? nullptr : BlockOf(address))
      launch->pins.push_back(std::move(pin));
  }
  return SubmitTo(stream, name, [launch](const Stream& self) -> aclError {
    Word words[kMostWords];
    std::memcpy(words, launch->area.data(), sizeof words);
    const auto set_block = launch->function->binary->set_block;
    for (uint32_t block = 0; block < launch->blocks && !self.cut_off(); ++block) {
      if (set_block != nullptr) set_block(block, launch->blocks);
      CallWith(launch->function->code, words, std::make_index_sequence<kMostWords>());
    }
    return ACL_SUCCESS;
  });
}

aclError LaunchBytes(aclrtFuncHandle function, uint32_t blocks, const void* data, size_t bytes,
                     aclrtStream stream, const char* name) {
  if (data == nullptr && bytes > 0) return Fail(ACL_ERROR_INVALID_PARAM, name, "argsData is null");
  if (!Live<Function>().Get(function))
    return Fail(ACL_ERROR_RT_INVALID_HANDLE, name, "not a live function");
  auto launch = std::make_shared<Launch>();
  const auto* from = static_cast<const char*>(data);
  if (bytes > 0 && bytes <= kMostBytes) launch->area.assign(from, from + bytes);
  if (bytes > kMostBytes) return Fail(ACL_ERROR_INVALID_PARAM, name, "argsSize is above 1 MB");
  return Submit(std::move(launch), function, blocks, stream, name);
}

size_t NextWord(size_t at) { return (at + sizeof(Word) - 1) / sizeof(Word) * sizeof(Word); }

}  // namespace
}  // namespace ge::acl

using namespace ge::acl;  // NOLINT: this file is the face of the namespace

GE_ACL aclrtBinary aclrtCreateBinary(const void* data, size_t dataLen) {
  if (data == nullptr || dataLen == 0 || dataLen > (size_t{1} << 32)) {
    Fail(ACL_ERROR_INVALID_PARAM, __func__, "data is null, or dataLen is 0 or above 4 GB");
    return nullptr;
  }
  auto binary = std::make_shared<RawBinary>();
  const auto* from = static_cast<const char*>(data);
  binary->bytes.assign(from, from + dataLen);
  return Live<RawBinary>().Add(std::move(binary));
}
GE_ACL aclError aclrtDestroyBinary(aclrtBinary binary) {
  ACL_NEEDS(binary != nullptr, "binary is null");
  if (!Live<RawBinary>().Remove(binary)) ACL_FAIL(ACL_ERROR_RT_INVALID_HANDLE, "not a live binary");
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtBinaryLoad(const aclrtBinary binary, aclrtBinHandle* binHandle) {
  ACL_NEEDS(binary != nullptr && binHandle != nullptr, "a null pointer");
  const auto raw = Live<RawBinary>().Get(binary);
  if (!raw) ACL_FAIL(ACL_ERROR_RT_INVALID_HANDLE, "not a live binary");
  return OpenBytes(raw->bytes.data(), raw->bytes.size(), binHandle, __func__);
}
// Options are about Ascend's own code.
GE_ACL aclError aclrtBinaryLoadFromFile(const char* binPath, aclrtBinaryLoadOptions*,
                                        aclrtBinHandle* binHandle) {
  ACL_NEEDS(binPath != nullptr && binPath[0] != 0 && binHandle != nullptr, "a null pointer");
  // The loader looks for names without a slash elsewhere.
  const std::string path = std::strchr(binPath, '/') ? binPath : std::string("./") + binPath;
  if (access(path.c_str(), R_OK) != 0)
    ACL_FAIL(ACL_ERROR_RT_FILE_OPEN, path + ": " + std::strerror(errno));
  return Open(path.c_str(), -1, binHandle, __func__);
}
GE_ACL aclError aclrtBinaryLoadFromData(const void* data, size_t length,
                                        const aclrtBinaryLoadOptions*, aclrtBinHandle* binHandle) {
  ACL_NEEDS(data != nullptr && length > 0 && binHandle != nullptr, "a null pointer, or length 0");
  return OpenBytes(data, length, binHandle, __func__);
}
GE_ACL aclError aclrtBinaryUnLoad(aclrtBinHandle binHandle) {
  ACL_NEEDS(binHandle != nullptr, "binHandle is null");
  const auto binary = Live<Binary>().Remove(binHandle);
  if (!binary) ACL_FAIL(ACL_ERROR_RT_INVALID_HANDLE, "not a live binary");
  // Launches that are under way hold the functions, and these the code.
  std::lock_guard lock(binary->mutex);
  for (const auto& [name, handle] : binary->functions) Live<Function>().Remove(handle);
  for (void* handle : binary->arguments) Live<Arguments>().Remove(handle);
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtBinaryGetFunction(const aclrtBinHandle binHandle, const char* kernelName,
                                       aclrtFuncHandle* funcHandle) {
  ACL_NEEDS(binHandle != nullptr && kernelName != nullptr && funcHandle != nullptr,
            "a null pointer");
  const auto binary = Live<Binary>().Get(binHandle);
  if (!binary) ACL_FAIL(ACL_ERROR_RT_INVALID_HANDLE, "not a live binary");
  std::lock_guard lock(binary->mutex);
  for (const auto& [name, handle] : binary->functions) {
    if (name != kernelName) continue;
    *funcHandle = handle;
    return ACL_SUCCESS;
  }
  auto function = std::make_shared<Function>();
  function->binary = binary;
  function->code = dlsym(binary->object, kernelName);
  if (function->code == nullptr)
    ACL_FAIL(ACL_ERROR_KERNEL_NOT_FOUND, std::string("the binary has no function ") + kernelName);
  *funcHandle = Live<Function>().Add(std::move(function));
  binary->functions.emplace_back(kernelName, *funcHandle);
  return ACL_SUCCESS;
}

GE_ACL aclError aclrtKernelArgsInit(aclrtFuncHandle funcHandle, aclrtArgsHandle* argsHandle) {
  ACL_NEEDS(argsHandle != nullptr, "argsHandle is null");
  const auto function = Live<Function>().Get(funcHandle);
  if (!function) ACL_FAIL(ACL_ERROR_RT_INVALID_HANDLE, "not a live function");
  *argsHandle = Live<Arguments>().Add(std::make_shared<Arguments>());
  // They live as long as the binary: the interface has no call that destroys them.
  std::lock_guard lock(function->binary->mutex);
  function->binary->arguments.push_back(*argsHandle);
  return ACL_SUCCESS;
}
#define ACL_ARGUMENTS(name, handle)                                       \
  ACL_NEEDS(handle != nullptr, "argsHandle is null");                     \
  const auto name = Live<Arguments>().Get(handle);                        \
  if (!name) ACL_FAIL(ACL_ERROR_RT_INVALID_HANDLE, "not live arguments"); \
  std::lock_guard lock(name->mutex);                                      \
  if (name->complete) ACL_FAIL(ACL_ERROR_RT_PARAM_INVALID, "the arguments are complete")

GE_ACL aclError aclrtKernelArgsAppend(aclrtArgsHandle argsHandle, void* param, size_t paramSize,
                                      aclrtParamHandle* paramHandle) {
  ACL_NEEDS(param != nullptr && paramSize > 0 && paramSize <= kMostBytes && paramHandle != nullptr,
            "a null pointer, or paramSize is 0 or above 1 MB");
  ACL_ARGUMENTS(arguments, argsHandle);
  const size_t at = arguments->area.size();
  arguments->area.resize(NextWord(at + paramSize));
  std::memcpy(arguments->area.data() + at, param, paramSize);
  *paramHandle = param;
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtKernelArgsAppendPlaceHolder(aclrtArgsHandle argsHandle,
                                                 aclrtParamHandle* paramHandle) {
  ACL_NEEDS(paramHandle != nullptr, "paramHandle is null");
  ACL_ARGUMENTS(arguments, argsHandle);
  arguments->buffers.push_back({arguments->area.size(), {}});
  arguments->area.resize(arguments->area.size() + sizeof(Word));
  *paramHandle = reinterpret_cast<aclrtParamHandle>(arguments->buffers.size());
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtKernelArgsGetPlaceHolderBuffer(aclrtArgsHandle argsHandle,
                                                    aclrtParamHandle paramHandle, size_t dataSize,
                                                    void** bufferAddr) {
  ACL_NEEDS(bufferAddr != nullptr && dataSize > 0 && dataSize <= kMostBytes,
            "bufferAddr is null, or dataSize is 0 or above 1 MB");
  ACL_ARGUMENTS(arguments, argsHandle);
  const auto number = reinterpret_cast<size_t>(paramHandle);
  ACL_NEEDS(number > 0 && number <= arguments->buffers.size(), "not a placeholder");
  std::vector<char>& bytes = arguments->buffers[number - 1].bytes;
  bytes.resize(dataSize);
  *bufferAddr = bytes.data();
  return ACL_SUCCESS;
}
GE_ACL aclError aclrtKernelArgsFinalize(aclrtArgsHandle argsHandle) {
  ACL_ARGUMENTS(arguments, argsHandle);
  arguments->complete = true;
  return ACL_SUCCESS;
}

// Area and size in device memory on a card: any memory here.
GE_ACL aclError aclrtLaunchKernel(aclrtFuncHandle funcHandle, uint32_t numBlocks,
                                  const void* argsData, size_t argsSize, aclrtStream stream) {
  return LaunchBytes(funcHandle, numBlocks, argsData, argsSize, stream, __func__);
}
GE_ACL aclError aclrtLaunchKernelV2(aclrtFuncHandle funcHandle, uint32_t numBlocks,
                                    const void* argsData, size_t argsSize, aclrtLaunchKernelCfg*,
                                    aclrtStream stream) {
  return LaunchBytes(funcHandle, numBlocks, argsData, argsSize, stream, __func__);
}
GE_ACL aclError aclrtLaunchKernelWithConfig(aclrtFuncHandle funcHandle, uint32_t numBlocks,
                                            aclrtStream stream, aclrtLaunchKernelCfg*,
                                            aclrtArgsHandle argsHandle, void*) {
  const auto arguments = argsHandle == nullptr ? nullptr : Live<Arguments>().Get(argsHandle);
  if (!arguments) ACL_FAIL(ACL_ERROR_RT_INVALID_HANDLE, "not live arguments");
  std::unique_lock lock(arguments->mutex);
  if (!arguments->complete) ACL_FAIL(ACL_ERROR_RT_PARAM_INVALID, "the arguments are not complete");
  auto launch = std::make_shared<Launch>();
  launch->area = arguments->area;
  launch->buffers = arguments->buffers;
  lock.unlock();
  return Submit(std::move(launch), funcHandle, numBlocks, stream, __func__);
}
GE_ACL aclError aclrtLaunchKernelWithHostArgs(aclrtFuncHandle funcHandle, uint32_t numBlocks,
                                              aclrtStream stream, aclrtLaunchKernelCfg*,
                                              void* hostArgs, size_t argsSize,
                                              aclrtPlaceHolderInfo* placeHolderArray,
                                              size_t placeHolderNum) {
  ACL_NEEDS((hostArgs != nullptr || argsSize == 0) && argsSize <= kMostBytes &&
                (placeHolderArray != nullptr || placeHolderNum == 0) &&
                placeHolderNum <= kMostWords,
            "a null pointer, argsSize is above 1 MB, or there are too many placeholders");
  if (!Live<Function>().Get(funcHandle))
    ACL_FAIL(ACL_ERROR_RT_INVALID_HANDLE, "not a live function");
  auto launch = std::make_shared<Launch>();
  const auto* from = static_cast<const char*>(hostArgs);
  // What stands behind the first data that a placeholder leads to is no argument.
  size_t area = argsSize;
  for (size_t i = 0; i < placeHolderNum; ++i) {
    const aclrtPlaceHolderInfo& p = placeHolderArray[i];
    ACL_NEEDS(p.addrOffset % sizeof(Word) == 0 && p.addrOffset + sizeof(Word) <= argsSize &&
                  p.dataOffset < argsSize,
              "a placeholder lies outside of the arguments");
    launch->buffers.push_back(
        {p.addrOffset, std::vector<char>(from + p.dataOffset, from + argsSize)});
    area = std::min<size_t>(area, p.dataOffset);
  }
  for (const Arguments::Buffer& buffer : launch->buffers)
    ACL_NEEDS(buffer.offset + sizeof(Word) <= area, "a placeholder lies behind its data");
  if (area > 0) launch->area.assign(from, from + area);
  return Submit(std::move(launch), funcHandle, numBlocks, stream, __func__);
}
