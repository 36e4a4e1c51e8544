// CodeCache: compiled objects by kernel hash, in a folder shared by processes.
//
// "<kernel hash>.k" names the object that holds the kernel; "<object hash>.o" is that object, whose
// name is the hash of its bytes, so that damage is seen. Files appear whole, by rename; nothing is
// ever changed in place. A miss, a damaged entry and an unwritable folder all mean: compile again.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace ge::emit {

class CodeCache {
 public:
  // dir: "" = $GE_CACHE_DIR or ~/.cache/ge; "off" = no cache.
  explicit CodeCache(const std::string& dir);
  bool enabled() const { return !dir_.empty(); }
  // Path of an intact object that holds the kernel, or "".
  std::string Find(const std::string& kernel_hash);
  // Stores an object; returns its path, or "" if that failed.
  std::string Add(std::string_view object);
  void Link(const std::string& kernel_hash, const std::string& object_path);

 private:
  std::string dir_;
  std::string last_object_;  // the object checked last: kernels of one batch follow one another
};

}  // namespace ge::emit
