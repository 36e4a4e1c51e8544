// Device memory: every block that a client may hand to a copy or a model.
//
// A block is aligned host memory (or the client's own memory, registered). Work that was submitted
// pins its blocks: memory that is freed under it goes back to the system when the work is done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace ge::acl {

enum class Place : uint8_t { kDevice, kHost, kRegistered, kReserved };

struct MemoryBlock {
  uintptr_t begin = 0;
  size_t bytes = 0;  // as asked for, rounded up as the interface says
  Place place = Place::kDevice;
  void* owned = nullptr;  // freed with the block; null: not ours
  MemoryBlock(const void* p, size_t size, Place where, void* to_free)
      : begin(reinterpret_cast<uintptr_t>(p)), bytes(size), place(where), owned(to_free) {}
  ~MemoryBlock();
  MemoryBlock(const MemoryBlock&) = delete;
  MemoryBlock& operator=(const MemoryBlock&) = delete;
};

// Null if there is no memory.
void* AllocateBlock(size_t bytes, Place place, bool huge);
// False if p is not the begin of such a block.
bool AddRegistered(void* p, size_t bytes, Place place);
bool ReleaseBlock(const void* p, Place place);
// The block that holds [p, p + bytes), or null.
std::shared_ptr<MemoryBlock> PinBlock(const void* p, size_t bytes);
// The block that holds p, or null.
std::shared_ptr<MemoryBlock> BlockOf(const void* p);
// Pins all ranges under one lock; the index of the first range that no block holds, or -1.
struct MemoryRange {
  const void* data;
  size_t bytes;
};
int PinBlocks(std::span<const MemoryRange> ranges, std::vector<std::shared_ptr<MemoryBlock>>* pins);
size_t LiveBytes();

}  // namespace ge::acl
