// Weights outside the .om: each file is mapped at its place in one reserved range; what the caller
// gives instead of a file is copied there.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/hash.h"
#include "rt/state.h"

namespace ge::rt {
namespace {

Status MapAt(std::byte* at, const om::ExternalWeight& w, const std::string& path, bool verify) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return Error(Code::kNotFound, "external weights " + path + ": " + std::strerror(errno));
  struct stat facts{};
  Status status;
  if (fstat(file, &facts) != 0 || facts.st_size != w.bytes) {
    status = Error(Code::kDataLoss, "external weights " + path + " should have " +
                                        std::to_string(w.bytes) + " bytes");
  } else if (mmap(at, static_cast<size_t>(w.bytes), PROT_READ, MAP_SHARED | MAP_FIXED, file, 0) ==
             MAP_FAILED) {
    status = Error(Code::kResourceExhausted, "external weights " + path + " cannot be mapped");
  }
  close(file);
  if (status.ok() && verify && Hash64(at, static_cast<size_t>(w.bytes)) != w.checksum)
    return Error(Code::kDataLoss, "external weights " + path + ": the checksum differs");
  return status;
}

// The last part of a path: clients name a file with or without its folder.
std::string_view NameOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

Status CopyTo(std::byte* at, const om::ExternalWeight& w, const LoadOptions::GivenWeights& given) {
  const auto size = static_cast<size_t>(w.bytes);
  if (given.bytes.size() < size)
    return Invalid("external weights " + w.path + " have " + std::to_string(w.bytes) + " bytes, " +
                   std::to_string(given.bytes.size()) + " are given");
  if (mprotect(at, size, PROT_READ | PROT_WRITE) != 0)
    return Error(Code::kResourceExhausted, "no memory for external weights " + w.path);
  std::memcpy(at, given.bytes.data(), size);
  if (Hash64(at, size) != w.checksum)
    return Error(Code::kDataLoss, "external weights " + w.path + ": the given bytes are others");
  return {};
}

}  // namespace

ExternalRange::~ExternalRange() {
  if (base_ != nullptr) munmap(base_, size_);
}

Status ExternalRange::Map(const std::vector<om::ExternalWeight>& weights,
                          const LoadOptions& options, bool verify) {
  if (weights.empty()) return {};
  const auto size = static_cast<size_t>(weights.back().offset + weights.back().bytes);
  void* range = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED)
    return Error(Code::kResourceExhausted, "no addresses for the external weights");
  base_ = static_cast<std::byte*>(range);
  size_ = size;
  for (const om::ExternalWeight& w : weights) {
    const LoadOptions::GivenWeights* given = nullptr;
    for (const auto& g : options.given_weights)
      if (NameOf(g.file) == NameOf(w.path)) given = &g;
    if (given != nullptr) {
      GE_TRY(CopyTo(base_ + w.offset, w, *given));
    } else if (options.weight_dir.empty()) {
      return Invalid("the weights lie in files: a model in memory needs their folder");
    } else {
      // The folder of the .om, or the one that the files themselves lie in.
      std::string path = options.weight_dir + "/" + w.path;
      const std::string beside = options.weight_dir + "/" + std::string(NameOf(w.path));
      if (access(path.c_str(), F_OK) != 0 && access(beside.c_str(), F_OK) == 0) path = beside;
      GE_TRY(MapAt(base_ + w.offset, w, path, verify));
    }
  }
  return {};
}

}  // namespace ge::rt
