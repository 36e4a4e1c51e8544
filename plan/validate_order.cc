// The second half of the check of a finished plan: the order of accesses to bytes that are shared.
//
//   1. Within a straight stretch of tasks, a buffer that was written is not read after another
//      buffer has overwritten some of its bytes (one that is no larger whole around it).
//   2. What is read of memory that is written in parts has been written, byte for byte.
//   3. Of two tasks that may run at the same time (lanes), neither writes bytes that the other
//      touches; waits lead backwards and stay in their section.
//
// Sizes that are symbolic are not known here: then a whole root counts as touched in 3, and 1 and 2
// are left to the shapes that are known.
#include <algorithm>
#include <map>
#include <vector>

#include "om/live.h"
#include "om/size.h"
#include "plan/validate.h"

namespace ge {
namespace {

using om::BufferKind;
using om::Task;
using om::TaskKind;

struct Bytes {
  int64_t begin = 0, end = 0;
  bool Meets(const Bytes& o) const { return begin < o.end && o.begin < end; }
};

class OrderCheck {
 public:
  explicit OrderCheck(const om::Plan& plan) : plan_(plan) {
    const std::vector<int64_t> unknown(plan.symbols.size(), om::kNoSize);
    for (size_t b = 0; b < plan.buffers.size(); ++b) {
      const om::Buffer& buffer = plan.buffers[b];
      const int64_t bytes = buffer.bytes < 0 ? 0 : om::EvalSize(plan, buffer.bytes, unknown);
      const int64_t offset =
          buffer.alias_offset < 0 ? 0 : om::EvalSize(plan, buffer.alias_offset, unknown);
      known_.push_back(bytes != om::kNoSize && offset != om::kNoSize);
      range_.push_back(known_.back() ? Bytes{offset, offset + bytes} : Bytes{0, INT64_MAX});
    }
    family_.resize(plan.buffers.size());
    for (size_t b = 0; b < plan.buffers.size(); ++b)
      family_[Root(static_cast<int32_t>(b))].push_back(static_cast<int32_t>(b));
  }

  Status Run() {
    FindStretches();
    for (size_t s = 0; s + 1 < starts_.size(); ++s) GE_TRY(CheckStale(starts_[s], starts_[s + 1]));
    if (starts_.size() <= 2) GE_TRY(CheckParts());
    for (size_t t = 0; t < plan_.tasks.size(); ++t) {
      size_t end = t;
      while (end < plan_.tasks.size() && plan_.tasks[end].lane >= 0) ++end;
      if (end > t) GE_TRY(CheckSection(t, end));
      t = std::max(t, end);
    }
    return {};
  }

 private:
  Status Fault(size_t t, const std::string& what) const {
    return Error(Code::kInternal,
                 "plan: task " + std::to_string(t) + " (" + plan_.tasks[t].name + "): " + what);
  }
  size_t Root(int32_t b) const { return static_cast<size_t>(om::RootOf(plan_, b)); }
  const std::string& NameOf(int32_t b) const { return plan_.buffers[static_cast<size_t>(b)].name; }
  static bool Writes(const Task& t, int32_t b) {
    return std::find(t.outs.begin(), t.outs.end(), b) != t.outs.end();
  }
  template <class F>
  void ForReads(const Task& t, F f) const {
    for (int32_t b : t.args)
      if (b >= 0 && !(t.kind == TaskKind::kLaunch && Writes(t, b))) f(b);
  }

  // Tasks that are entered from the one before them only, and left to the next only.
  void FindStretches() {
    std::vector<bool> start(plan_.tasks.size() + 1, false);
    start[0] = start[plan_.tasks.size()] = true;
    for (size_t t = 0; t < plan_.tasks.size(); ++t) {
      const Task& task = plan_.tasks[t];
      if (task.kind != TaskKind::kJump && task.kind != TaskKind::kJumpUnless) continue;
      start[t + 1] = true;
      start[static_cast<size_t>(task.target)] = true;
    }
    for (size_t t = 0; t < start.size(); ++t)
      if (start[t]) starts_.push_back(t);
  }

  // stale[b]: bytes of b, which a task of the stretch has written, were written by another buffer.
  Status CheckStale(size_t begin, size_t end) const {
    std::map<int32_t, int32_t> stale;
    std::map<size_t, std::vector<int32_t>> fresh;  // per root: written, and as written
    for (size_t t = begin; t < end; ++t) {
      const Task& task = plan_.tasks[t];
      Status fault;
      ForReads(task, [&](int32_t b) {
        const auto it = stale.find(b);
        if (it != stale.end() && fault.ok())
          fault =
              Fault(t, "reads " + NameOf(b) + ", which " + NameOf(it->second) + " has overwritten");
      });
      GE_TRY(std::move(fault));
      for (int32_t b : task.outs) {
        if (b < 0 || !known_[static_cast<size_t>(b)]) continue;
        std::erase_if(fresh[Root(b)], [&](int32_t other) {
          const Bytes &own = range_[static_cast<size_t>(b)],
                      &old = range_[static_cast<size_t>(other)];
          // A kernel of a concatenation may add its part to a whole of which others are there.
          const bool adds = own.begin <= old.begin && old.end <= own.end &&
                            own.end - own.begin > old.end - old.begin;
          if (!own.Meets(old) || adds) return false;
          if (other != b) stale[other] = b;
          return true;
        });
      }
      for (int32_t b : task.outs) {
        if (b < 0 || !known_[static_cast<size_t>(b)]) continue;
        fresh[Root(b)].push_back(b);
        stale.erase(b);
      }
    }
    return {};
  }

  // Without jumps: the union of what was written holds what is read.
  Status CheckParts() const {
    std::vector<std::vector<Bytes>> done(plan_.buffers.size());
    std::vector<bool> open(plan_.buffers.size(), false);  // written in a way that is not known here
    for (size_t t = 0; t < plan_.tasks.size(); ++t) {
      const Task& task = plan_.tasks[t];
      Status fault;
      ForReads(task, [&](int32_t b) {
        const size_t root = Root(b);
        const BufferKind kind = plan_.buffers[root].kind;
        const bool planned = kind == BufferKind::kArena || kind == BufferKind::kOutput;
        if (!planned || open[root] || !known_[static_cast<size_t>(b)] || !fault.ok()) return;
        if (!Covered(done[root], range_[static_cast<size_t>(b)]))
          fault = Fault(t, "reads bytes of " + NameOf(b) + " that nothing has written");
      });
      GE_TRY(std::move(fault));
      for (int32_t b : task.outs) {
        if (b < 0) continue;
        if (!known_[static_cast<size_t>(b)] || task.host == "ScanStore") open[Root(b)] = true;
        Add(done[Root(b)], range_[static_cast<size_t>(b)]);
      }
    }
    return {};
  }

  // `parts` stay apart from each other and in order.
  static void Add(std::vector<Bytes>& parts, Bytes more) {
    std::erase_if(parts, [&](const Bytes& p) {
      if (p.begin > more.end || more.begin > p.end) return false;
      more = {std::min(more.begin, p.begin), std::max(more.end, p.end)};
      return true;
    });
    parts.insert(std::upper_bound(parts.begin(), parts.end(), more,
                                  [](const Bytes& a, const Bytes& b) { return a.begin < b.begin; }),
                 more);
  }

  static bool Covered(const std::vector<Bytes>& parts, const Bytes& wanted) {
    return wanted.begin >= wanted.end ||
           std::any_of(parts.begin(), parts.end(), [&](const Bytes& p) {
             return p.begin <= wanted.begin && wanted.end <= p.end;
           });
  }

  // before[t] holds the tasks of the section that are over when t starts.
  Status CheckSection(size_t first, size_t end) const {
    const size_t count = end - first, words = (count + 63) / 64;
    std::vector<std::vector<uint64_t>> before(count, std::vector<uint64_t>(words, 0));
    std::map<int32_t, size_t> last;  // of each lane
    for (size_t p = 0; p < count; ++p) {
      const Task& task = plan_.tasks[first + p];
      if (task.kind != TaskKind::kLaunch) return Fault(first + p, "has a lane, but is no launch");
      const auto after = [&](size_t u) {
        for (size_t w = 0; w < words; ++w) before[p][w] |= before[u][w];
        before[p][u / 64] |= uint64_t{1} << (u % 64);
      };
      if (const auto it = last.find(task.lane); it != last.end()) after(it->second);
      for (int32_t w : task.waits) {
        if (w < static_cast<int32_t>(first) || w >= static_cast<int32_t>(first + p))
          return Fault(first + p, "waits for a task that is not before it in its section");
        after(static_cast<size_t>(w) - first);
      }
      last[task.lane] = p;
    }
    const auto ordered = [&](size_t a, size_t b) {
      const auto [early, late] = std::minmax(a, b);
      return (before[late][early / 64] >> (early % 64) & 1) != 0;
    };
    GE_TRY(CheckNeighbours(first, end, ordered));
    return CheckLifetimes(first, end, ordered);
  }

  struct Access {
    size_t position;
    int32_t buffer;
    Bytes bytes;
    bool writes;
  };

  // Accesses in the order of their bytes, for each memory that they are offsets into.
  template <class Ordered>
  Status CheckNeighbours(size_t first, size_t end, const Ordered& ordered) const {
    std::map<int64_t, std::vector<Access>> memories;  // -1: the arena; else a root
    for (size_t t = first; t < end; ++t) {
      const auto add = [&](int32_t b, bool writes) {
        const size_t root = Root(b);
        const om::Buffer& record = plan_.buffers[root];
        if (record.kind == BufferKind::kConst) return;
        const bool placed = record.kind == BufferKind::kArena && record.offset >= 0 &&
                            known_[static_cast<size_t>(b)];
        Bytes bytes = range_[static_cast<size_t>(b)];
        if (placed) bytes.begin += record.offset, bytes.end += record.offset;
        memories[placed ? -1 : static_cast<int64_t>(root)].push_back({t - first, b, bytes, writes});
      };
      ForReads(plan_.tasks[t], [&](int32_t b) { add(b, false); });
      for (int32_t b : plan_.tasks[t].outs) add(b, true);
    }
    for (auto& [memory, list] : memories) {
      std::sort(list.begin(), list.end(),
                [](const Access& a, const Access& b) { return a.bytes.begin < b.bytes.begin; });
      for (size_t i = 0; i < list.size(); ++i) {
        for (size_t k = i + 1; k < list.size() && list[k].bytes.begin < list[i].bytes.end; ++k) {
          const Access &a = list[i], &b = list[k];
          if (a.position == b.position || !(a.writes || b.writes)) continue;
          if (!ordered(a.position, b.position)) {
            return Fault(first + std::max(a.position, b.position),
                         "may run at the same time as task " +
                             std::to_string(first + std::min(a.position, b.position)) +
                             ", and both use bytes of " + NameOf(b.buffer));
          }
        }
      }
    }
    return {};
  }

  // Memory that is placed for each shape keeps apart only what lives at the same time.
  template <class Ordered>
  Status CheckLifetimes(size_t first, size_t end, const Ordered& ordered) const {
    if (plan_.arena_bytes >= 0) return {};
    for (size_t t = first; t < end; ++t) {
      for (size_t u = first; u < t; ++u) {
        if (ordered(u - first, t - first)) continue;
        for (int32_t a : plan_.tasks[u].args) {
          for (int32_t b : plan_.tasks[t].args) {
            const om::Buffer &x = plan_.buffers[Root(a)], &y = plan_.buffers[Root(b)];
            if (x.kind != BufferKind::kArena || y.kind != BufferKind::kArena) continue;
            if (x.last < y.first || y.last < x.first)
              return Fault(t, NameOf(a) + " and " + NameOf(b) +
                                  " are used at the same time, but may share memory");
          }
        }
      }
    }
    return {};
  }

  const om::Plan& plan_;
  std::vector<Bytes> range_;  // of each buffer, in its root
  std::vector<bool> known_;
  std::vector<std::vector<int32_t>> family_;  // per root
  std::vector<size_t> starts_;
};

}  // namespace

Status ValidateOrder(const om::Plan& plan) { return OrderCheck(plan).Run(); }

}  // namespace ge
