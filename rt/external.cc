// Weights outside the .om: each file is mapped at its place in one reserved range.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

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

}  // namespace

ExternalRange::~ExternalRange() {
  if (base_ != nullptr) munmap(base_, size_);
}

Status ExternalRange::Map(const std::vector<om::ExternalWeight>& weights, const std::string& folder,
                          bool verify) {
  if (weights.empty()) return {};
  const auto size = static_cast<size_t>(weights.back().offset + weights.back().bytes);
  void* range = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED)
    return Error(Code::kResourceExhausted, "no addresses for the external weights");
  base_ = static_cast<std::byte*>(range);
  size_ = size;
  for (const om::ExternalWeight& w : weights)
    GE_TRY(MapAt(base_ + w.offset, w, folder + "/" + w.path, verify));
  return {};
}

}  // namespace ge::rt
