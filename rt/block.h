// Block: memory that a Run owns and keeps. Its address changes only when it grows; what is long not
// asked for goes back to the system, and comes again, as zeros, when it is touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/status.h"

namespace ge::rt {

class Block {
 public:
  std::byte* data() const { return data_.get(); }
  int64_t bytes() const { return bytes_; }
  // At least `bytes`, 64-byte aligned; the first `keep` bytes stay as they are. Growing by small
  // steps takes amortised constant time.
  Status Grow(int64_t bytes, int64_t keep);
  // Gives back what lies behind `used` and behind all that was asked for since the last Trim, if it
  // is half of the block and worth the trouble.
  void Trim(int64_t used);

 private:
  struct Free {
    int64_t mapped;  // bytes; 0: allocated, or no memory
    void operator()(std::byte* data) const;
  };
  std::unique_ptr<std::byte, Free> data_;
  int64_t bytes_ = 0, asked_ = 0;  // asked_: the most since the last Trim
};

}  // namespace ge::rt
