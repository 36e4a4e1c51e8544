// CodeObject: the machine code of an .om file, loaded from memory.
#pragma once

#include <cstddef>
#include <span>

#include "abi/kernel_abi.h"
#include "base/status.h"

namespace ge::rt {

class CodeObject {
 public:
  // `kernels`: how many the plan has; the code must have as many.
  static Result<CodeObject> Load(std::span<const std::byte> shared_object, size_t kernels);
  CodeObject() = default;
  CodeObject(CodeObject&& other) noexcept;
  CodeObject& operator=(CodeObject&& other) noexcept;
  ~CodeObject();

  std::span<const ge_kernel_fn> kernels() const { return kernels_; }

 private:
  void* handle_ = nullptr;
  // Open as long as the code is loaded: the loader knows objects by name, and the name is the
  // descriptor's number.
  int fd_ = -1;
  std::span<const ge_kernel_fn> kernels_;
};

// libm's functions, for kernels.
const ge_math_table& MathTable();

}  // namespace ge::rt
