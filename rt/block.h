// Block: memory that a Run owns and keeps; it only grows.
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

 private:
  struct Free {
    void operator()(std::byte* data) const;
  };
  std::unique_ptr<std::byte, Free> data_;
  int64_t bytes_ = 0;
};

}  // namespace ge::rt
