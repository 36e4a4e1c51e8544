// POSIX mmap. Descriptors are closed as soon as the mapping stands.
#include "base/file_map.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace ge {
namespace {

Status Failed(const std::string& path, const char* what, int error) {
  const Code code = error == ENOENT ? Code::kNotFound
                    : error == ENOSPC || error == ENOMEM || error == EFBIG
                        ? Code::kResourceExhausted
                        : Code::kInvalidArgument;
  return Error(code, path + ": cannot " + what + ": " + std::strerror(error));
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

Result<std::span<std::byte>> Map(const std::string& path, int fd, int64_t bytes, int protection,
                                 int flags) {
  if (bytes == 0) return std::span<std::byte>();
  void* data = mmap(nullptr, static_cast<size_t>(bytes), protection, flags, fd, 0);
  if (data == MAP_FAILED) return Failed(path, "map", errno);
  return std::span(static_cast<std::byte*>(data), static_cast<size_t>(bytes));
}

Result<std::span<std::byte>> MapExisting(const std::string& path, int protection) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.fd() < 0) return Failed(path, "open", errno);
  struct stat info;
  if (fstat(file.fd(), &info) != 0) return Failed(path, "stat", errno);
  if (!S_ISREG(info.st_mode)) return Invalid(path + ": not a regular file");
  return Map(path, file.fd(), info.st_size, protection, MAP_PRIVATE);
}

}  // namespace

Result<FileMap> FileMap::Open(const std::string& path) {
  GE_ASSIGN(const std::span<std::byte> span, MapExisting(path, PROT_READ));
  FileMap map;
  map.data_ = span.data(), map.size_ = span.size();
  return map;
}

Result<FileMap> FileMap::OpenPrivate(const std::string& path) {
  GE_ASSIGN(const std::span<std::byte> span, MapExisting(path, PROT_READ | PROT_WRITE));
  FileMap map;
  map.data_ = span.data(), map.size_ = span.size();
  return map;
}

Result<FileMap> FileMap::Create(const std::string& path, int64_t bytes) {
  if (bytes < 0) return Invalid(path + ": negative size");
  const Descriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (file.fd() < 0) return Failed(path, "create", errno);
  if (bytes > 0) {
    if (const int error = posix_fallocate(file.fd(), 0, bytes); error != 0) {
      unlink(path.c_str());
      return Failed(path, "reserve disk space", error);
    }
  }
  GE_ASSIGN(const std::span<std::byte> span,
            Map(path, file.fd(), bytes, PROT_READ | PROT_WRITE, MAP_SHARED));
  FileMap map;
  map.data_ = span.data(), map.size_ = span.size();
  return map;
}

FileMap::FileMap(FileMap&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

FileMap& FileMap::operator=(FileMap&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

FileMap::~FileMap() {
  if (data_ != nullptr) munmap(data_, size_);
}

}  // namespace ge
