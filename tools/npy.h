// NumPy .npy files (format 1.0 to 3.0, C order), and raw binary files.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "abi/dtype.h"
#include "base/status.h"

namespace ge {

struct Array {
  DType dtype = DType::kNone;
  std::vector<int64_t> dims;
  std::vector<std::byte> bytes;
};

Result<Array> ReadNpy(const std::string& path);
Status WriteNpy(const std::string& path, const Array& array);
Result<std::vector<std::byte>> ReadFile(const std::string& path);
// All of it, or an error; a plain file that could not be written whole is removed.
Status WriteFile(const std::string& path, std::string_view bytes);

}  // namespace ge
