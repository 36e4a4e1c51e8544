// From buffers to memory: which buffers are the caller's outputs, which share bytes, how long each
// lives, and where it lies in the arena.
#include <algorithm>

#include "base/check.h"
#include "ir/opdef.h"
#include "om/live.h"
#include "plan/arena.h"
#include "plan/lanes.h"
#include "plan/plan_builder.h"

namespace ge {
namespace {

bool IsPlanned(om::BufferKind k) {
  return k == om::BufferKind::kArena || k == om::BufferKind::kPool;
}

}  // namespace

// An output whose memory is made by tasks of this plan alone is made in the caller's memory.
void PlanBuilder::PromoteOutputs() {
  for (size_t o = 0; o < output_buffer_.size(); ++o) {
    const int b = output_buffer_[o], root = Find(b);
    om::Buffer& r = plan_.buffers[root];
    const Value& v = root_.value(root_.outputs[o]);
    const bool plain = v.type.layout.IsNd() && v.halo.empty() && slice_of_[root] < 0;
    if (!plain || !IsPlanned(r.kind) || !(bytes_[root] == bytes_[b])) continue;
    if (r.dtype != plan_.buffers[b].dtype) continue;
    r.kind = om::BufferKind::kOutput;
    r.index = static_cast<int32_t>(o);
    output_buffer_[o] = root;
  }
}

// A buffer lives as long as any task may run that may run at the same time as one that uses it.
void PlanBuilder::ComputeLives() {
  life_.assign(plan_.buffers.size(), {});
  const auto together = ConcurrentTasks(plan_);
  const auto use = [&](int buffer, int task) {
    if (buffer < 0) return;
    Life& life = life_[RootOf(buffer)];
    const auto& [earliest, latest] = together[static_cast<size_t>(task)];
    life.first = life.first < 0 ? earliest : std::min(life.first, earliest);
    life.last = std::max(life.last, latest);
  };
  for (size_t t = 0; t < plan_.tasks.size(); ++t) {
    for (int32_t b : plan_.tasks[t].args) use(b, static_cast<int>(t));
    for (int32_t b : plan_.tasks[t].outs) use(b, static_cast<int>(t));
  }
  ExtendOverLoops();
  for (int b : output_buffer_) {
    Life& life = life_[RootOf(b)];
    if (life.first >= 0) life.last = static_cast<int32_t>(plan_.tasks.size()) - 1;
  }
}

// What the arena would need at least if no two values shared bytes, views of the same elements in
// another shape apart: what the aliases save is measured against it.
void PlanBuilder::MeasureUnaliased() {
  struct Use {
    int32_t first = -1, last = -1;
  };
  std::vector<Use> uses(plan_.buffers.size());
  const auto use = [&](int buffer, int32_t time) {
    if (buffer < 0) return;
    Use& u = uses[static_cast<size_t>(Find(buffer))];
    if (u.first < 0) u.first = time;
    u.last = time;
  };
  // Time runs in halves: copies that were left out stand before the task that followed them.
  size_t copy = 0;
  const auto end = static_cast<int32_t>(plan_.tasks.size());
  for (int32_t t = 0; t <= end; ++t) {
    for (; copy < left_out_.size() && left_out_[copy].first == t; ++copy)
      use(left_out_[copy].second, 2 * t);
    if (t == end) break;
    for (int32_t b : plan_.tasks[static_cast<size_t>(t)].args) use(b, 2 * t + 1);
    for (int32_t b : plan_.tasks[static_cast<size_t>(t)].outs) use(b, 2 * t + 1);
  }
  om::LiveBytes lives;
  for (size_t b = 0; b < uses.size(); ++b) {
    if (uses[b].first < 0 || plan_.buffers[b].kind != om::BufferKind::kArena) continue;
    if (!bytes_[b].IsConst()) return;
    lives.Add(uses[b].first, uses[b].last, bytes_[b].value());
  }
  out_.arena_unaliased = lives.Most();
}

// The graph's own values by the order of its nodes. Not counted: what the caller or a constant
// holds, and integers that are known while compiling. Not measured with control flow: what happens
// inside has no place in this order.
void PlanBuilder::MeasureValues() {
  const bool branches = std::any_of(root_.order.begin(), root_.order.end(),
                                    [&](NodeId n) { return root_.node(n).op->control; });
  if (branches) return;
  std::vector<int32_t> first(root_.values.size(), -1), last(root_.values.size(), -1);
  const auto count = static_cast<int32_t>(root_.order.size());
  for (int32_t t = 0; t < count; ++t) {
    const Node& n = root_.node(root_.order[static_cast<size_t>(t)]);
    for (ValueId v : n.inputs)
      if (v != kNone) last[static_cast<size_t>(v)] = t;
    for (ValueId v : n.outputs)
      if (v != kNone) first[static_cast<size_t>(v)] = last[static_cast<size_t>(v)] = t;
  }
  for (ValueId v : root_.outputs) first[static_cast<size_t>(v)] = -1;
  om::LiveBytes lives;
  for (size_t v = 0; v < first.size(); ++v) {
    const Value& value = root_.values[v];
    if (first[v] < 0 || value.elems || IsObject(value)) continue;
    const Expr bytes = StorageBytes(value);
    if (!bytes.IsConst()) return;
    lives.Add(first[v], last[v], bytes.value());
  }
  out_.arena_values = lives.Most();
}

// What is made before a loop and used in it lives to the loop's end, as does what is made slice by
// slice (no write of it is known to be the first); what is made in it and used after it lives from
// its start. Loops nest: small ones first, then those around them.
void PlanBuilder::ExtendOverLoops() {
  std::vector<Life> loops;
  for (size_t t = 0; t < plan_.tasks.size(); ++t) {
    const om::Task& task = plan_.tasks[t];
    const bool jump = task.kind == om::TaskKind::kJump || task.kind == om::TaskKind::kJumpUnless;
    if (jump && task.target <= static_cast<int32_t>(t))
      loops.push_back({task.target, static_cast<int32_t>(t)});
  }
  std::sort(loops.begin(), loops.end(),
            [](const Life& a, const Life& b) { return a.last - a.first < b.last - b.first; });
  if (loops.empty()) return;
  std::vector<bool> sliced(life_.size(), false);
  for (const om::Task& task : plan_.tasks)
    for (const int32_t b : task.outs)
      if (b >= 0 && (RootOf(b) != Find(b) || task.host == "ScanStore")) sliced[RootOf(b)] = true;
  for (size_t b = 0; b < life_.size(); ++b) {
    Life& life = life_[b];
    if (life.first < 0) continue;
    for (const Life& loop : loops) {
      if (life.last < loop.first || life.first > loop.last) continue;
      if (life.first < loop.first || sliced[b]) life.last = std::max(life.last, loop.last);
      if (life.last > loop.last) life.first = std::min(life.first, loop.first);
    }
  }
}

// A task's output takes over the memory of an input that nothing uses afterwards.
void PlanBuilder::JoinInPlace() {
  std::vector<bool> leaves(plan_.buffers.size(), false);  // read after the last task
  for (int b : output_buffer_) leaves[static_cast<size_t>(RootOf(b))] = true;
  const auto mergeable = [&](int from, int to, int32_t task) {
    const int a = Find(from), b = Find(to);
    if (leaves[static_cast<size_t>(a)]) return false;
    if (a == b || slice_of_[a] >= 0 || slice_of_[b] >= 0) return false;
    const om::Buffer &x = plan_.buffers[a], &y = plan_.buffers[b];
    if (x.kind != om::BufferKind::kArena) return false;
    if (y.kind != om::BufferKind::kArena && y.kind != om::BufferKind::kOutput) return false;
    return bytes_[a] == bytes_[b] && life_[a].last == task && life_[b].first == task;
  };
  const auto merge = [&](int from, int to) {
    const int a = Find(from), b = Find(to);
    life_[b].first = life_[a].first;
    if (leaves[static_cast<size_t>(b)]) leaves[static_cast<size_t>(a)] = true;
    Join(a, b);
  };
  for (size_t t = 0; t < plan_.tasks.size(); ++t) {
    const om::Task& task = plan_.tasks[t];
    const auto at = static_cast<int32_t>(t);
    if (task.kind == om::TaskKind::kHost && task.host == "Copy") {
      if (mergeable(task.args[0], task.outs[0], at)) merge(task.args[0], task.outs[0]);
    }
    // A loop reads again in its next round what it wrote over in this one.
    if (task.kind != om::TaskKind::kLaunch || native_kernels_.contains(task.kernel)) continue;
    // What another stream may be reading stays.
    const auto readers = [&](int root) {
      return std::count_if(plan_.tasks.begin(), plan_.tasks.end(), [&](const om::Task& other) {
        return std::any_of(other.args.begin(), other.args.end(),
                           [&](int32_t b) { return b >= 0 && RootOf(b) == root; });
      });
    };
    const bool labelled = lane_of_kernel_.contains(task.kernel);
    const auto pairs = InPlaceArgs(*out_.kernels[task.kernel]);
    for (const auto& [from, to] : pairs) {
      const int root = RootOf(task.args[from]);
      const auto uses = std::count_if(task.args.begin(), task.args.end(),
                                      [&](int32_t b) { return RootOf(b) == root; });
      const auto fitting = std::count_if(pairs.begin(), pairs.end(), [&](const auto& pair) {
        return RootOf(task.args[pair.first]) == root;
      });
      if (labelled && readers(root) > 2) continue;  // its maker, and this task
      if (uses != fitting || !mergeable(task.args[from], task.args[to], at)) continue;
      merge(task.args[from], task.args[to]);
      break;
    }
  }
}

// Copies of a buffer to itself.
void PlanBuilder::DropCopies() {
  std::vector<om::Task> kept;
  std::vector<int32_t> now(plan_.tasks.size() + 1);
  for (size_t t = 0; t < plan_.tasks.size(); ++t) {
    om::Task& task = plan_.tasks[t];
    now[t] = static_cast<int32_t>(kept.size());
    const bool copy = task.kind == om::TaskKind::kHost && task.host == "Copy";
    if (copy && Find(task.args[0]) == Find(task.outs[0])) continue;
    kept.push_back(std::move(task));
  }
  now[plan_.tasks.size()] = static_cast<int32_t>(kept.size());
  for (om::Task& task : kept) {
    if (task.target >= 0) task.target = now[task.target];
  }
  plan_.tasks = std::move(kept);
}

Status PlanBuilder::PlaceArena() {
  std::vector<ArenaBuffer> buffers;
  std::vector<int> which;
  bool is_static = true;
  for (size_t b = 0; b < plan_.buffers.size(); ++b) {
    om::Buffer& record = plan_.buffers[b];
    if (RootOf(static_cast<int>(b)) != static_cast<int>(b)) continue;
    record.first = life_[b].first;
    record.last = life_[b].last;
    if (record.kind != om::BufferKind::kArena || record.first < 0) continue;  // unused: no memory
    is_static &= bytes_[b].IsConst();
    if (!bytes_[b].IsConst()) continue;
    if (bytes_[b].value() < 0) return Invalid("buffer " + record.name + " has a negative size");
    buffers.push_back({record.first, record.last, bytes_[b].value()});
    which.push_back(static_cast<int>(b));
  }
  if (!is_static) return {};
  if (!policy_.reuse_memory)
    for (ArenaBuffer& b : buffers) b = {0, static_cast<int32_t>(plan_.tasks.size()), b.bytes};
  const ArenaLayout layout = PlanArena(buffers, 64, policy_.arena_work);
  out_.arena_lower_bound = layout.lower_bound;
  for (size_t i = 0; i < which.size(); ++i) plan_.buffers[which[i]].offset = layout.offsets[i];
  plan_.arena_bytes = layout.height;
  return {};
}

void PlanBuilder::FinishBuffers() {
  for (size_t b = 0; b < plan_.buffers.size(); ++b) {
    const int root = RootOf(static_cast<int>(b));
    if (root == static_cast<int>(b)) continue;
    Expr offset = 0;
    for (int at = Find(static_cast<int>(b)); slice_of_[at] >= 0; at = Find(slice_of_[at])) {
      offset += slice_offset_[at];
    }
    om::Buffer& record = plan_.buffers[b];
    record.kind = plan_.buffers[root].kind;
    record.index = plan_.buffers[root].index;
    record.alias = root;
    record.offset = -1;
    if (!offset.IsConst(0)) {
      const om::SizeRef size = Size(offset);
      plan_.buffers[b].alias_offset = size;
    }
  }
}

}  // namespace ge
