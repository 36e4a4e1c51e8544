// The backing store of a Run: a file without a name in $TMPDIR (else /tmp), for values that the
// plan spills. The system gives its space back however the process ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/status.h"

namespace ge::rt {

class Store {
 public:
  Store() = default;
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // Space for so many bytes is taken now: a full disk is an error here rather than in a run.
  Status Open(int64_t bytes);
  Status Write(int64_t offset, const std::byte* data, int64_t bytes) const;
  Status Read(int64_t offset, std::byte* data, int64_t bytes) const;

 private:
  Status Fault(const char* what) const;

  int file_ = -1;
  std::string folder_;
};

}  // namespace ge::rt
