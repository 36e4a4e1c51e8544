// What fills huge pages lies on them where the system gives them: fewer TLB misses in big tensors,
// and the first touch of 2 MB takes 0.1 ms where 512 small pages take 0.6. The rest of a block is
// on small pages, unless it fills half of a huge one: a block holds at most 1 MB more than is asked
// for. Large blocks are mapped, not allocated: what the C library was once asked for, it keeps for
// each thread, and runs that are made and dropped by many threads would seem to leak.
#include "rt/block.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

namespace ge::rt {
namespace {
constexpr int64_t kHugePage = int64_t{2} << 20, kLine = 64, kLimit = int64_t{1} << 46;
constexpr int64_t kWorthHuge = kHugePage / 2;  // a last page with so much in it

// Null if there is no memory. `size` is a multiple of whole pages.
std::byte* MapHuge(int64_t size) {
  const auto reach = static_cast<size_t>(size + kHugePage);
  void* found = mmap(nullptr, reach, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (found == MAP_FAILED) return nullptr;
  auto* begin = static_cast<std::byte*>(found);
  const auto past = static_cast<int64_t>(reinterpret_cast<uintptr_t>(begin) % kHugePage);
  const int64_t before = past == 0 ? 0 : kHugePage - past, after = kHugePage - before;  // > 0
  if (before > 0) munmap(begin, static_cast<size_t>(before));
  munmap(begin + before + size, static_cast<size_t>(after));
  madvise(begin + before, static_cast<size_t>(size), MADV_HUGEPAGE);
  return begin + before;
}

}  // namespace

void Block::Free::operator()(std::byte* data) const {
  if (mapped > 0)
    munmap(data, static_cast<size_t>(mapped));
  else
    std::free(data);
}

Status Block::Grow(int64_t bytes, int64_t keep) {
  asked_ = std::max(asked_, bytes);
  if (bytes <= bytes_ && data_ != nullptr) return {};
  const auto refuse = [&] {
    return Error(Code::kResourceExhausted, "cannot allocate " + std::to_string(bytes) + " bytes");
  };
  if (bytes > kLimit) return refuse();
  const int64_t wanted = std::max({bytes, keep > 0 ? bytes_ * 3 / 2 : 0, kLine});
  const bool huge = wanted >= kHugePage;
  const int64_t rest = wanted % kHugePage;
  const int64_t to = rest >= kWorthHuge ? kHugePage : huge ? sysconf(_SC_PAGESIZE) : kLine;
  const int64_t size = (wanted + to - 1) / to * to;
  auto* memory =
      size >= kHugePage
          ? MapHuge(size)
          : static_cast<std::byte*>(std::aligned_alloc(kLine, static_cast<size_t>(size)));
  if (memory == nullptr) return refuse();
  keep = std::min(keep, bytes_);
  if (keep > 0) std::memcpy(memory, data_.get(), static_cast<size_t>(keep));
  data_ = {memory, Free{size >= kHugePage ? size : 0}};
  bytes_ = size;
  return {};
}

void Block::Trim(int64_t used) {
  constexpr int64_t kWorth = int64_t{1} << 20;
  const int64_t most = std::max(used, asked_);
  asked_ = 0;
  if (bytes_ - most < kWorth || most > bytes_ / 2) return;
  static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto at = reinterpret_cast<uintptr_t>(data_.get());
  const uintptr_t begin = (at + static_cast<uintptr_t>(most) + page - 1) / page * page,
                  end = (at + static_cast<uintptr_t>(bytes_)) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace ge::rt
