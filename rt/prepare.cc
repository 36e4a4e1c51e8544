// Prepare: everything about a plan that is computed once when it is loaded.
#include <algorithm>
#include <map>

#include "rt/host_kernel.h"
#include "rt/state.h"

namespace ge::rt {
namespace {

using om::TaskKind;
using Pairs = std::vector<std::pair<int32_t, int32_t>>;

std::vector<int32_t> LateSymbols(const om::Plan& plan, om::SizeRef size) {
  std::vector<int32_t> late;
  for (const om::SizeCode& c : om::CodeOf(plan, size)) {
    const auto symbol = static_cast<int32_t>(c.value);
    if (c.op == om::SizeOp::kSymbol && plan.symbols[static_cast<size_t>(symbol)].input == -1)
      late.push_back(symbol);
  }
  std::sort(late.begin(), late.end());
  late.erase(std::unique(late.begin(), late.end()), late.end());
  return late;
}

bool IsConstant(const om::Plan& plan, om::SizeRef size) {
  const auto code = om::CodeOf(plan, size);
  return std::none_of(code.begin(), code.end(),
                      [](const om::SizeCode& c) { return c.op == om::SizeOp::kSymbol; });
}

void PrepareSteps(Model::State* m) {
  Pairs arg_slots, size_slots;
  for (const om::Task& task : m->plan().tasks) {
    Step step{task.kind};
    step.target = task.target;
    const void* self = nullptr;
    if (task.kind == TaskKind::kLaunch) {
      const auto& kernel = m->kernels[static_cast<size_t>(task.kernel)];
      step.fn = kernel.fn;
      self = kernel.self.get();
      step.grid = task.grid;
      step.scratch = task.scratch;
      // A cost is for typical sizes: it says nothing where the grid depends on sizes.
      step.alone =
          task.cost > 0 && task.cost < om::kWorthSharing && IsConstant(m->plan(), task.grid);
      step.args = static_cast<uint32_t>(arg_slots.size());
      step.arg_count = static_cast<uint32_t>(task.args.size());
      step.sizes = static_cast<uint32_t>(size_slots.size());
      step.size_count = static_cast<uint32_t>(task.sizes.size());
      for (const int32_t b : task.args)
        arg_slots.emplace_back(b, static_cast<int32_t>(arg_slots.size()));
      for (const int32_t s : task.sizes)
        size_slots.emplace_back(s, static_cast<int32_t>(size_slots.size()));
    }
    m->steps.push_back(step);
    m->selves.push_back(self);
  }
  m->arg_total = arg_slots.size();
  m->size_total = size_slots.size();
  m->arg_slots = Lists(m->plan().buffers.size(), arg_slots);
  m->size_slots = Lists(m->plan().sizes.size(), size_slots);
}

// Sections of lanes that these workers get through sooner than one task after the other.
void PrepareLanes(Model::State* m) {
  const om::Plan& plan = m->plan();
  const int workers = m->pool->size();
  for (size_t first = 0; first < plan.tasks.size(); ++first) {
    const size_t end = om::LanesEnd(plan, first);
    if (end == first) continue;
    LaneSection section{static_cast<int32_t>(first), static_cast<int32_t>(end), {}};
    std::vector<int32_t> last(om::kMostLanes, -1);
    int64_t shared = 0;
    for (size_t t = first; t < end; ++t) {
      const om::Task& task = plan.tasks[t];
      shared += om::SharedNs(task, om::KnownGrid(plan, task), workers);
      int32_t& before = last[static_cast<size_t>(task.lane)];
      if (before < 0)
        section.heads.push_back(static_cast<int32_t>(t));
      else
        m->steps[static_cast<size_t>(before)].next_in_lane = static_cast<int32_t>(t);
      before = static_cast<int32_t>(t);
    }
    if (workers > 1 && om::LanesNs(plan, first, end, workers) <= shared) {
      m->steps[first].section = static_cast<int32_t>(m->sections.size());
      m->sections.push_back(std::move(section));
    }
    first = end - 1;
  }
}

Status PrepareHosts(Model::State* m) {
  m->hosts.resize(m->plan().tasks.size());
  for (size_t t = 0; t < m->hosts.size(); ++t) {
    const om::Task& task = m->plan().tasks[t];
    if (task.kind != TaskKind::kHost) continue;
    m->hosts[t].fn = FindHost(task.host);
    if (m->hosts[t].fn == nullptr) {
      return Unsupported("task " + task.name + ": this runtime has no host kernel " + task.host);
    }
    m->hosts[t].attrs = std::make_unique<HostAttrs>(task.attrs);
  }
  return {};
}

void PrepareBuffers(Model::State* m, const std::vector<std::vector<int32_t>>& late_of_size) {
  const auto& buffers = m->plan().buffers;
  Pairs aliases, buffers_of;
  m->life.resize(buffers.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    const om::Buffer& b = buffers[i];
    const auto index = static_cast<int32_t>(i);
    if (b.alias >= 0) aliases.emplace_back(b.alias, index);
    m->life[i] = {b.first, b.last};
    for (const om::SizeRef size : {b.bytes, b.alias_offset}) {
      if (size < 0) continue;
      for (const int32_t symbol : late_of_size[static_cast<size_t>(size)])
        buffers_of.emplace_back(symbol, index);
    }
  }
  for (const auto& [root, alias] : aliases) {
    auto& life = m->life[static_cast<size_t>(root)];
    const om::Buffer& b = buffers[static_cast<size_t>(alias)];
    if (b.first >= 0) life.first = life.first < 0 ? b.first : std::min(life.first, b.first);
    life.second = std::max(life.second, b.last);
  }
  m->aliases = Lists(buffers.size(), aliases);
  m->buffers_of = Lists(m->plan().symbols.size(), buffers_of);
}

// A check is due at a task that binds one of its symbols, if all others are bound before that task:
// in a loop, values of the last round must not be mixed with those of this one. A symbol that grows
// with the rounds of a loop is checked when the loop has ended.
void PrepareChecks(Model::State* m, const std::vector<std::vector<int32_t>>& late_of_size) {
  const om::Plan& plan = m->plan();
  std::vector<std::vector<int32_t>> binders(plan.symbols.size());
  for (size_t t = 0; t < plan.tasks.size(); ++t) {
    if (plan.tasks[t].kind == om::TaskKind::kBind && HostAttrs(plan.tasks[t].attrs).Has("grows"))
      continue;
    for (const int32_t s : plan.tasks[t].binds)
      binders[static_cast<size_t>(s)].push_back(static_cast<int32_t>(t));
  }
  Pairs due;
  for (size_t c = 0; c < plan.checks.size(); ++c) {
    const auto& late = late_of_size[static_cast<size_t>(plan.checks[c].condition)];
    const auto check = static_cast<int32_t>(c);
    if (late.empty()) m->early_checks.push_back(check);
    for (const int32_t symbol : late) {
      for (const int32_t task : binders[static_cast<size_t>(symbol)]) {
        const bool last = std::all_of(late.begin(), late.end(), [&](int32_t other) {
          const auto& at = binders[static_cast<size_t>(other)];
          return other == symbol || (!at.empty() && at.front() <= task);
        });
        if (last) due.emplace_back(task, check);
      }
    }
  }
  std::sort(due.begin(), due.end());
  due.erase(std::unique(due.begin(), due.end()), due.end());
  m->checks_at = Lists(plan.tasks.size(), due);
}

}  // namespace

Lists::Lists(size_t keys, const Pairs& pairs) : begin_(keys + 1, 0), values_(pairs.size()) {
  for (const auto& pair : pairs) ++begin_[static_cast<size_t>(pair.first) + 1];
  for (size_t k = 0; k < keys; ++k) begin_[k + 1] += begin_[k];
  std::vector<uint32_t> at(begin_.begin(), begin_.end());
  for (const auto& [key, value] : pairs) values_[at[static_cast<size_t>(key)]++] = value;
}

Status Prepare(Model::State* m) {
  const om::Plan& plan = m->plan();
  std::vector<std::vector<int32_t>> late_of_size(plan.sizes.size());
  Pairs sizes_of;
  m->is_late.assign(std::max<size_t>(plan.sizes.size(), 1), 0);
  for (size_t s = 0; s < plan.sizes.size(); ++s) {
    const auto size = static_cast<om::SizeRef>(s);
    late_of_size[s] = LateSymbols(plan, size);
    m->is_late[s] = !late_of_size[s].empty();
    if (m->is_late[s]) m->late_sizes.push_back(size);
    for (const int32_t symbol : late_of_size[s]) sizes_of.emplace_back(symbol, size);
  }
  m->sizes_of = Lists(plan.symbols.size(), sizes_of);
  PrepareSteps(m);
  PrepareLanes(m);
  GE_TRY(PrepareHosts(m));
  PrepareBuffers(m, late_of_size);
  PrepareChecks(m, late_of_size);
  if (plan.symbols.empty()) {
    GE_ASSIGN(const Shape shape, MakeShape(*m, {}));
    m->work_bytes = shape.arena_bytes + shape.scratch_bytes * m->pool->size();
  }
  return {};
}

}  // namespace ge::rt
