// XXH3 through its header alone, so that no shared library is needed.
#include "base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace ge {

uint64_t Hash64(const void* data, size_t bytes) { return XXH3_64bits(data, bytes); }

uint64_t Hash64(std::string_view text) { return Hash64(text.data(), text.size()); }

std::string HashHex(std::string_view text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  std::string out;
  for (const uint64_t half : {hash.high64, hash.low64}) {
    for (int shift = 60; shift >= 0; shift -= 4) {
      out.push_back("0123456789abcdef"[(half >> shift) & 15]);
    }
  }
  return out;
}

}  // namespace ge
