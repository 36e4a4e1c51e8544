// The check of a finished plan. Follows the jumps block by block: forward for what is surely
// written and bound, backward for what is still read. From that come the tasks at which each
// planned buffer is alive; they must lie in its recorded lifetime, and no two lifetimes may share
// bytes. Places in the backing store are held to the same; only spills write them, each one of its
// own, and only fetches of that size read them. What a fetch brings back is a buffer of its own, so
// a read between a spill and its fetch is one of a buffer that is not alive or not written.
#include "plan/validate.h"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "om/live.h"
#include "om/size.h"

namespace ge {
namespace {

using om::Buffer;
using om::BufferKind;
using om::Task;
using om::TaskKind;

class Bits {
 public:
  Bits(size_t n, bool value) : words_((n + 63) / 64, value ? ~uint64_t{0} : 0) {}
  bool Has(size_t i) const { return words_[i / 64] >> (i % 64) & 1; }
  void Add(size_t i) { words_[i / 64] |= uint64_t{1} << (i % 64); }
  void Remove(size_t i) { words_[i / 64] &= ~(uint64_t{1} << (i % 64)); }
  void Intersect(const Bits& o) {
    for (size_t w = 0; w < words_.size(); ++w) words_[w] &= o.words_[w];
  }
  void Unite(const Bits& o) {
    for (size_t w = 0; w < words_.size(); ++w) words_[w] |= o.words_[w];
  }
  template <class F>
  void ForEach(F f) const {
    for (size_t w = 0; w < words_.size(); ++w) {
      for (uint64_t rest = words_[w]; rest; rest &= rest - 1) {
        f(64 * w + static_cast<size_t>(__builtin_ctzll(rest)));
      }
    }
  }
  bool operator==(const Bits&) const = default;

 private:
  std::vector<uint64_t> words_;
};

struct Block {
  int32_t begin = 0, end = 0;
  std::vector<int32_t> next;  // blocks
};

class Validator {
 public:
  explicit Validator(const om::Plan& plan) : plan_(plan) {}
  Status Run();

 private:
  Status Fault(const std::string& what) const { return Error(Code::kInternal, "plan: " + what); }
  Status TaskFault(size_t t, const std::string& what) const {
    return Fault("task " + std::to_string(t) + " (" + plan_.tasks[t].name + "): " + what);
  }
  Status CheckIndices() const;
  Status CheckTask(size_t t) const;
  Status CheckStores() const;
  void FindBlocks();
  Status CheckWrites();
  Status CheckBlock(size_t block, Bits& written, bool report) const;
  Status CheckSize(size_t t, om::SizeRef size, const Bits& written) const;
  void FindLives();
  Bits LiveAfter(size_t block, const std::vector<Bits>& in) const;
  Bits WalkBack(size_t block, Bits live, bool record);
  Status CheckLives() const;
  Status CheckOverlaps(BufferKind kind) const;

  int32_t Root(int32_t b) const { return om::RootOf(plan_, b); }
  bool IsSize(om::SizeRef s) const { return s >= 0 && static_cast<size_t>(s) < plan_.sizes.size(); }
  bool IsBuffer(int32_t b) const { return b >= 0 && static_cast<size_t>(b) < plan_.buffers.size(); }
  size_t SymbolBit(int64_t s) const { return plan_.buffers.size() + static_cast<size_t>(s); }
  template <class F>
  void ForReads(const Task& t, F f) const;
  template <class F>
  void ForWrites(const Task& t, F f) const;
  bool Jumps(const Task& t) const {
    return t.kind == TaskKind::kJump || t.kind == TaskKind::kJumpUnless;
  }
  int64_t ConstantOf(om::SizeRef s) const { return om::EvalSize(plan_, s, symbols_); }

  const om::Plan& plan_;
  std::vector<int64_t> symbols_;  // all unknown
  std::vector<Block> blocks_;
  std::vector<int32_t> block_at_;     // per task that begins a block
  std::vector<bool> sliced_;          // roots that are written in parts: not known to be whole
  std::vector<int32_t> first_write_;  // scratch of WalkBack
  std::vector<std::pair<int32_t, int32_t>> live_;  // per root: first and last task; -1 = never
};

// A launch lists what its kernel writes in `outs`, too; the other arguments are read.
template <class F>
void Validator::ForReads(const Task& t, F f) const {
  for (int32_t b : t.args) {
    const bool written =
        t.kind == TaskKind::kLaunch && std::find(t.outs.begin(), t.outs.end(), b) != t.outs.end();
    if (b >= 0 && !written) f(b);
  }
}

template <class F>
void Validator::ForWrites(const Task& t, F f) const {
  for (int32_t b : t.outs) {
    if (b >= 0) f(b);
  }
}

Status Validator::CheckTask(size_t t) const {
  const Task& task = plan_.tasks[t];
  for (int32_t b : task.args) {
    const bool optional = task.kind == TaskKind::kHost && b == -1;
    if (!optional && !IsBuffer(b)) return TaskFault(t, "argument out of range");
  }
  for (int32_t b : task.outs) {
    if (b == -1) continue;
    if (!IsBuffer(b)) return TaskFault(t, "output out of range");
    const BufferKind kind = plan_.buffers[Root(b)].kind;
    if (kind == BufferKind::kInput || kind == BufferKind::kConst) {
      return TaskFault(t, "writes " + plan_.buffers[b].name + ", which is only read");
    }
  }
  for (om::SizeRef s : task.sizes) {
    if (!IsSize(s)) return TaskFault(t, "size out of range");
  }
  for (int32_t s : task.binds) {
    if (s < 0 || static_cast<size_t>(s) >= plan_.symbols.size())
      return TaskFault(t, "binds no symbol");
    if (plan_.symbols[s].input >= 0) return TaskFault(t, "binds an input's symbol");
  }
  if (Jumps(task) && (task.target < 0 || static_cast<size_t>(task.target) > plan_.tasks.size())) {
    return TaskFault(t, "jumps out of the plan");
  }
  if (task.kind == TaskKind::kJumpUnless && task.args.size() != 1)
    return TaskFault(t, "no condition");
  if (task.kind == TaskKind::kBind &&
      (task.binds.size() != 1 || task.args.size() + task.sizes.size() != 1)) {
    return TaskFault(t, "binds not one symbol to one value");
  }
  if (task.kind == TaskKind::kLaunch) {
    for (int32_t b : task.outs) {
      if (std::find(task.args.begin(), task.args.end(), b) == task.args.end()) {
        return TaskFault(t, "writes what is no argument");
      }
    }
    if (task.kernel < 0 || static_cast<size_t>(task.kernel) >= plan_.kernels.size()) {
      return TaskFault(t, "no kernel");
    }
    if (!IsSize(task.grid)) return TaskFault(t, "no grid");
  }
  return {};
}

Status Validator::CheckStores() const {
  const auto is_store = [&](int32_t b) {
    return b >= 0 && plan_.buffers[Root(b)].kind == BufferKind::kStore;
  };
  std::vector<bool> spilled(plan_.buffers.size(), false);
  for (size_t t = 0; t < plan_.tasks.size(); ++t) {
    const Task& task = plan_.tasks[t];
    const bool spill = task.kind == TaskKind::kSpill, fetch = task.kind == TaskKind::kFetch;
    if (!spill && !fetch) {
      if (std::any_of(task.args.begin(), task.args.end(), is_store) ||
          std::any_of(task.outs.begin(), task.outs.end(), is_store))
        return TaskFault(t, "uses backing store");
      continue;
    }
    if (task.args.size() != 1 || task.outs.size() != 1 || is_store(task.args[0]) == spill ||
        is_store(task.outs[0]) == fetch)
      return TaskFault(t, "moves no value between arena and backing store");
    const Buffer &from = plan_.buffers[task.args[0]], &to = plan_.buffers[task.outs[0]];
    const int64_t bytes = ConstantOf(from.bytes);
    if (bytes == om::kNoSize || bytes != ConstantOf(to.bytes))
      return TaskFault(t, "moves " + from.name + " to a place of another size");
    const Buffer& value = spill ? from : to;
    if (value.alias >= 0 && bytes != ConstantOf(plan_.buffers[value.alias].bytes))
      return TaskFault(t, "moves a part of " + value.name);
    if (spill && spilled[task.outs[0]]) return TaskFault(t, "spills to a place that is taken");
    if (spill) spilled[task.outs[0]] = true;
  }
  return {};
}

Status Validator::CheckIndices() const {
  for (size_t i = 0; i < plan_.buffers.size(); ++i) {
    const Buffer& b = plan_.buffers[i];
    const std::string name = "buffer " + std::to_string(i) + " (" + b.name + ")";
    if (b.kind != BufferKind::kSlot && !IsSize(b.bytes)) return Fault(name + " has no size");
    for (om::SizeRef d : b.dims) {
      if (!IsSize(d)) return Fault(name + " has a bad dim");
    }
    if (b.alias == -1) continue;
    if (!IsBuffer(b.alias) || plan_.buffers[b.alias].alias != -1)
      return Fault(name + " has a bad alias");
    if (b.alias_offset != -1 && !IsSize(b.alias_offset)) return Fault(name + " has a bad offset");
    const int64_t offset = b.alias_offset == -1 ? 0 : ConstantOf(b.alias_offset);
    const int64_t bytes = ConstantOf(b.bytes), room = ConstantOf(plan_.buffers[b.alias].bytes);
    const bool known = offset != om::kNoSize && bytes != om::kNoSize && room != om::kNoSize;
    if (known && (offset < 0 || offset + bytes > room)) return Fault(name + " leaves its root");
  }
  for (size_t t = 0; t < plan_.tasks.size(); ++t) GE_TRY(CheckTask(t));
  for (const om::IoTensor& io : plan_.outputs) {
    if (!IsBuffer(io.buffer)) return Fault("output " + io.name + " has no buffer");
  }
  for (const om::IoTensor& io : plan_.inputs) {
    if (!IsBuffer(io.buffer)) return Fault("input " + io.name + " has no buffer");
  }
  return {};
}

void Validator::FindBlocks() {
  const auto count = static_cast<int32_t>(plan_.tasks.size());
  std::vector<bool> leader(count + 1, false);
  leader[0] = true;
  for (int32_t t = 0; t < count; ++t) {
    if (!Jumps(plan_.tasks[t])) continue;
    leader[t + 1] = true;
    leader[plan_.tasks[t].target] = true;
  }
  block_at_.assign(count + 1, -1);
  for (int32_t t = 0; t < count; ++t) {
    if (leader[t]) {
      block_at_[t] = static_cast<int32_t>(blocks_.size());
      blocks_.push_back({t, t, {}});
    }
    blocks_.back().end = t + 1;
  }
  block_at_[count] = static_cast<int32_t>(blocks_.size());
  blocks_.push_back({count, count, {}});  // the exit
  for (size_t b = 0; b + 1 < blocks_.size(); ++b) {
    const Task& last = plan_.tasks[blocks_[b].end - 1];
    if (last.kind != TaskKind::kJump) blocks_[b].next.push_back(block_at_[blocks_[b].end]);
    if (Jumps(last)) blocks_[b].next.push_back(block_at_[last.target]);
  }
}

// A size whose symbols are not all bound has no value, unless a branch of it is not taken.
Status Validator::CheckSize(size_t t, om::SizeRef size, const Bits& written) const {
  if (size < 0) return {};
  const auto code = om::CodeOf(plan_, size);
  for (const om::SizeCode& c : code) {
    const bool lazy =
        c.op == om::SizeOp::kSelect || c.op == om::SizeOp::kAnd || c.op == om::SizeOp::kOr;
    if (lazy) return {};
  }
  for (const om::SizeCode& c : code) {
    if (c.op != om::SizeOp::kSymbol || written.Has(SymbolBit(c.value))) continue;
    return TaskFault(t, "uses size " + plan_.symbols[c.value].name + " before it is bound");
  }
  return {};
}

// Advances `written` over a block; with `report`, every read must have been written before.
Status Validator::CheckBlock(size_t block, Bits& written, bool report) const {
  for (int32_t t = blocks_[block].begin; t < blocks_[block].end; ++t) {
    const Task& task = plan_.tasks[t];
    if (report) {
      for (om::SizeRef s : task.sizes) GE_TRY(CheckSize(t, s, written));
      GE_TRY(CheckSize(t, task.grid, written));
      GE_TRY(CheckSize(t, task.scratch, written));
      for (int32_t b : task.args) {
        if (b < 0) continue;
        GE_TRY(CheckSize(t, plan_.buffers[b].bytes, written));
        GE_TRY(CheckSize(t, plan_.buffers[b].alias_offset, written));
      }
      for (int32_t b : task.args) {
        const bool out = task.kind == TaskKind::kLaunch &&
                         std::find(task.outs.begin(), task.outs.end(), b) != task.outs.end();
        if (b < 0 || out || sliced_[Root(b)] || written.Has(Root(b))) continue;
        return TaskFault(t, "reads " + plan_.buffers[b].name + " before it is written");
      }
    }
    ForWrites(task, [&](int32_t b) { written.Add(Root(b)); });
    for (int32_t s : task.binds) written.Add(SymbolBit(s));
  }
  return {};
}

Status Validator::CheckWrites() {
  const size_t bits = plan_.buffers.size() + plan_.symbols.size();
  Bits start(bits, false);
  for (size_t b = 0; b < plan_.buffers.size(); ++b) {
    const BufferKind kind = plan_.buffers[b].kind;
    if (kind == BufferKind::kInput || kind == BufferKind::kConst) start.Add(b);
  }
  for (const om::IoTensor& io : plan_.inputs) start.Add(io.buffer);
  for (size_t s = 0; s < plan_.symbols.size(); ++s) {
    if (plan_.symbols[s].input >= 0) start.Add(SymbolBit(static_cast<int64_t>(s)));
  }
  sliced_.assign(plan_.buffers.size(), false);
  for (const Task& t : plan_.tasks) {
    for (int32_t b : t.outs) {
      const bool part = b >= 0 && (plan_.buffers[b].alias_offset >= 0 || t.host == "ScanStore");
      if (part) sliced_[Root(b)] = true;
    }
  }
  std::vector<Bits> in(blocks_.size(), Bits(bits, true));
  in[0] = start;
  std::vector<bool> reached(blocks_.size(), false);
  reached[0] = true;
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t b = 0; b < blocks_.size(); ++b) {
      if (!reached[b]) continue;
      Bits out = in[b];
      GE_TRY(CheckBlock(b, out, false));
      for (int32_t next : blocks_[b].next) {
        Bits merged = in[next];
        merged.Intersect(out);
        changed |= !reached[next] || !(merged == in[next]);
        reached[next] = true;
        in[next] = std::move(merged);
      }
    }
  }
  for (size_t b = 0; b < blocks_.size(); ++b) {
    if (!reached[b]) continue;
    Bits now = in[b];
    GE_TRY(CheckBlock(b, now, true));
  }
  for (const om::IoTensor& io : plan_.outputs) {
    const int32_t root = Root(io.buffer);
    const auto bytes = om::CodeOf(plan_, plan_.buffers[static_cast<size_t>(io.buffer)].bytes);
    const bool empty =
        bytes.size() == 1 && bytes[0].op == om::SizeOp::kConst && bytes[0].value == 0;
    if (empty) continue;  // a slice of it is at no offset, as the whole
    if (reached.back() && !sliced_[root] && !in.back().Has(root)) {
      return Fault("output " + io.name + " is not written on every path");
    }
  }
  return {};
}

// Alive after a task: read by some task that may follow, with no full write in between. A write is
// full if it is the first access of its block (a region may write one buffer by several kernels).
void Validator::FindLives() {
  const size_t count = plan_.buffers.size();
  live_.assign(count, {-1, -1});
  std::vector<Bits> in(blocks_.size(), Bits(count, false));
  for (const om::IoTensor& io : plan_.outputs) in.back().Add(Root(io.buffer));
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t b = blocks_.size() - 1; b-- > 0;) {
      Bits now = WalkBack(b, LiveAfter(b, in), false);
      if (now == in[b]) continue;
      in[b] = std::move(now);
      changed = true;
    }
  }
  for (size_t b = 0; b + 1 < blocks_.size(); ++b) WalkBack(b, LiveAfter(b, in), true);
}

Bits Validator::LiveAfter(size_t block, const std::vector<Bits>& in) const {
  Bits live(plan_.buffers.size(), false);
  for (int32_t next : blocks_[block].next) live.Unite(in[next]);
  return live;
}

// `live` after the block becomes what is alive before it; with `record`, notes where.
Bits Validator::WalkBack(size_t block, Bits live, bool record) {
  const Block& range = blocks_[block];
  first_write_.resize(plan_.buffers.size(), -1);
  std::vector<int32_t> touched;
  for (int32_t t = range.begin; t < range.end; ++t) {
    const auto touch = [&](int32_t b, int32_t value) {
      if (first_write_[Root(b)] != -1) return;
      first_write_[Root(b)] = value;
      touched.push_back(Root(b));
    };
    ForReads(plan_.tasks[t], [&](int32_t b) { touch(b, -2); });
    ForWrites(plan_.tasks[t], [&](int32_t b) { touch(b, sliced_[Root(b)] ? -2 : t); });
  }
  const auto alive = [&](int32_t root, int32_t t) {
    auto& [first, last] = live_[root];
    first = first < 0 ? t : std::min(first, t);
    last = std::max(last, t);
  };
  if (record) {
    live.ForEach([&](size_t root) { alive(static_cast<int32_t>(root), range.end - 1); });
  }
  for (int32_t t = range.end; t-- > range.begin;) {
    ForWrites(plan_.tasks[t], [&](int32_t b) {
      if (record) alive(Root(b), t);
      if (first_write_[Root(b)] == t) live.Remove(Root(b));
    });
    ForReads(plan_.tasks[t], [&](int32_t b) {
      if (record) alive(Root(b), t);
      live.Add(Root(b));
    });
  }
  if (record) {
    live.ForEach([&](size_t root) { alive(static_cast<int32_t>(root), range.begin); });
  }
  for (int32_t root : touched) first_write_[root] = -1;
  return live;
}

// A buffer that is filled slice by slice has no full write: its life begins with the first slice.
Status Validator::CheckLives() const {
  std::vector<int32_t> first_slice(plan_.buffers.size(), -1);
  for (size_t t = plan_.tasks.size(); t-- > 0;) {
    ForWrites(plan_.tasks[t], [&](int32_t b) { first_slice[Root(b)] = static_cast<int32_t>(t); });
  }
  for (size_t b = 0; b < plan_.buffers.size(); ++b) {
    const Buffer& record = plan_.buffers[b];
    const bool planned = record.kind == BufferKind::kArena || record.kind == BufferKind::kStore;
    if (!planned || record.alias >= 0 || live_[b].first < 0) continue;
    auto [first, last] = live_[b];
    if (sliced_[b] && first_slice[b] >= 0) first = first_slice[b];
    if (record.first > first || record.last < last) {
      return Fault("buffer " + std::to_string(b) + " (" + record.name + ") is alive at tasks " +
                   std::to_string(first) + " to " + std::to_string(last) +
                   ", but has memory from " + std::to_string(record.first) + " to " +
                   std::to_string(record.last));
    }
  }
  return {};
}

// Sweeps over time with the buffers of the moment in order of offset: neighbours must not touch.
Status Validator::CheckOverlaps(BufferKind kind) const {
  struct Event {
    int32_t time;
    bool starts;
    int32_t buffer;
  };
  std::vector<Event> events;
  std::vector<int64_t> bytes(plan_.buffers.size(), 0);
  for (size_t b = 0; b < plan_.buffers.size(); ++b) {
    const Buffer& record = plan_.buffers[b];
    if (record.kind != kind || record.alias >= 0 || record.offset < 0) continue;
    bytes[b] = ConstantOf(record.bytes);
    if (bytes[b] == om::kNoSize)
      return Fault("buffer " + record.name + " is placed without a size");
    const bool bounded = kind == BufferKind::kArena && plan_.arena_bytes >= 0;
    if (bounded && record.offset + bytes[b] > plan_.arena_bytes) {
      return Fault("buffer " + record.name + " leaves the arena");
    }
    if (bytes[b] == 0) continue;
    events.push_back({record.first, true, static_cast<int32_t>(b)});
    events.push_back({record.last + 1, false, static_cast<int32_t>(b)});
  }
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return std::tie(a.time, a.starts, a.buffer) < std::tie(b.time, b.starts, b.buffer);
  });
  std::set<std::pair<int64_t, int32_t>> now;
  const auto overlap = [&](int32_t a, int32_t b) {  // a lies below b
    if (plan_.buffers[a].offset + bytes[a] <= plan_.buffers[b].offset) return Status();
    return Fault("buffers " + std::to_string(a) + " (" + plan_.buffers[a].name + ") and " +
                 std::to_string(b) + " (" + plan_.buffers[b].name + ") share bytes");
  };
  for (const Event& e : events) {
    const std::pair<int64_t, int32_t> key{plan_.buffers[e.buffer].offset, e.buffer};
    if (!e.starts) {
      now.erase(key);
      continue;
    }
    const auto at = now.insert(key).first;
    if (at != now.begin()) GE_TRY(overlap(std::prev(at)->second, e.buffer));
    if (std::next(at) != now.end()) GE_TRY(overlap(e.buffer, std::next(at)->second));
  }
  return {};
}

Status Validator::Run() {
  symbols_.assign(plan_.symbols.size(), om::kNoSize);
  GE_TRY(CheckIndices());
  GE_TRY(CheckStores());
  FindBlocks();
  GE_TRY(CheckWrites());
  FindLives();
  GE_TRY(CheckLives());
  GE_TRY(CheckOverlaps(BufferKind::kArena));
  return CheckOverlaps(BufferKind::kStore);
}

}  // namespace

Status ValidatePlan(const om::Plan& plan) {
  GE_TRY(Validator(plan).Run());
  return ValidateOrder(plan);
}

}  // namespace ge
