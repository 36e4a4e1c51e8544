// Counts this test program's allocations through operator new; in a file of its own, so that no
// compiler looks through it.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace ge::rt {
namespace {
std::atomic<int64_t> allocations{0};
}  // namespace

int64_t AllocationsSoFar();
int64_t AllocationsSoFar() { return allocations; }
}  // namespace ge::rt

#ifndef GE_SANITIZED
void* operator new(size_t bytes) {
  ++ge::rt::allocations;
  void* memory = std::malloc(bytes);
  if (memory == nullptr) std::abort();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
#endif
