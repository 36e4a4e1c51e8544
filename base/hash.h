// Hash: XXH3 of bytes. The 64-bit form guards files, the 128-bit form names contents (kernels,
// cache entries). Stable across machines and versions: it is written into files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ge {

uint64_t Hash64(const void* data, size_t bytes);
uint64_t Hash64(std::string_view text);
std::string HashHex(std::string_view text);  // 128 bits as 32 hex digits

}  // namespace ge
