// See store.h. Where a file system has no files without names, one is made and unlinked at once.
#include "rt/store.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace ge::rt {
namespace {

int OpenUnnamed(const std::string& folder) {
  const int file = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR)) return file;
  std::string name = folder + "/ge_store_XXXXXX";
  const int named = mkostemp(name.data(), O_CLOEXEC);
  if (named >= 0) unlink(name.c_str());
  return named;
}

// Past the limit on the size of files (ulimit -f) the system would end the process by a signal.
bool MayReach(int64_t bytes) {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
      static_cast<uint64_t>(bytes) <= limit.rlim_cur)
    return true;
  errno = EFBIG;
  return false;
}

}  // namespace

Store::~Store() {
  if (file_ >= 0) close(file_);
}

Status Store::Fault(const char* what) const {
  return Error(Code::kResourceExhausted, std::string("backing store for spilled values: ") + what +
                                             " in " + folder_ + ": " + std::strerror(errno) +
                                             " (TMPDIR names another folder)");
}

Status Store::Open(int64_t bytes) {
  const char* wanted = std::getenv("TMPDIR");
  folder_ = wanted != nullptr && *wanted != 0 ? wanted : "/tmp";
  file_ = OpenUnnamed(folder_);
  if (file_ < 0) return Fault("cannot make a file");
  if (!MayReach(bytes)) return Fault("no space");
  if (bytes <= 0 || fallocate(file_, 0, 0, bytes) == 0) return {};
  if (errno != EOPNOTSUPP) return Fault("no space");
  return ftruncate(file_, bytes) == 0 ? Status() : Fault("no space");
}

Status Store::Write(int64_t offset, const std::byte* data, int64_t bytes) const {
  if (!MayReach(offset + bytes)) return Fault("cannot write");
  while (bytes > 0) {
    const ssize_t done = pwrite(file_, data, static_cast<size_t>(bytes), offset);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return Fault("cannot write");
    offset += done, data += done, bytes -= done;
  }
  return {};
}

Status Store::Read(int64_t offset, std::byte* data, int64_t bytes) const {
  while (bytes > 0) {
    const ssize_t done = pread(file_, data, static_cast<size_t>(bytes), offset);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return Fault("cannot read");
    offset += done, data += done, bytes -= done;
  }
  return {};
}

}  // namespace ge::rt
