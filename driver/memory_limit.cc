// A smaller arena for some time: wide values in strips where that costs little, and whatever it
// takes to keep a user's limit.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "driver/compilation.h"
#include "driver/recompute.h"
#include "driver/strips.h"
#include "om/lanes.h"
#include "om/size.h"
#include "plan/spill.h"

namespace ge {

double PredictedNs(const Planned& planned) {
  double ns = 0;
  for (const om::Task& t : planned.plan.tasks) ns += static_cast<double>(t.cost);
  return ns;
}

namespace {

// On so many workers, with the streams that the plan uses.
double StreamsNs(const om::Plan& plan, int workers) {
  double ns = 0;
  for (size_t t = 0; t < plan.tasks.size();) {
    const size_t end = om::LanesEnd(plan, t);
    const om::Task& task = plan.tasks[t];
    ns += static_cast<double>(end > t ? om::LanesNs(plan, t, end, workers)
                                      : om::SharedNs(task, om::KnownGrid(plan, task), workers));
    t = std::max(end, t + 1);
  }
  return ns;
}

struct Moved {
  int values = 0;
  int64_t written = 0, read = 0;
};

Moved CountMoved(const om::Plan& plan) {
  Moved m;
  for (const om::Task& t : plan.tasks) {
    if (t.kind != om::TaskKind::kSpill && t.kind != om::TaskKind::kFetch) continue;
    const bool spill = t.kind == om::TaskKind::kSpill;
    m.values += spill;
    (spill ? m.written : m.read) +=
        om::EvalSize(plan, plan.buffers[static_cast<size_t>(t.outs[0])].bytes, {});
  }
  return m;
}

// The plan with values spilled; tasks that run at once no longer keep theirs side by side.
Status PlanWithSpills(Compilation& c) {
  Policy& policy = c.request.policy;
  const int streams = policy.max_streams;
  policy.max_streams = 1;
  Status status = PlanAgain(c);
  policy.max_streams = streams;
  if (status.ok()) SpillValues(c.planned, policy.memory_limit, policy);
  return status;
}

// What was done to keep the user's limit.
struct Steps {
  std::set<std::string> without;  // steps that were not taken
  int again = 0, strips = 0;
  bool winograd = false;  // convolutions keep its form
  int64_t least = 0;      // bytes of arena
  bool keeps = false;     // the limit
  double ns = 0;          // predicted
};

// If spilling alone keeps the limit, and costs less than to leave out Winograd's form, whose
// temporaries are wide. Otherwise the plan is the one without that form.
Status TrySpillingAlone(Compilation& c, Steps* steps) {
  std::set<std::string>& disabled = c.request.policy.disabled;
  const bool may = !disabled.contains("winograd") && !disabled.contains("spill");
  double spilled_ns = -1;
  if (may) {
    GE_TRY(PlanWithSpills(c));
    if (c.planned.plan.arena_bytes <= c.request.policy.memory_limit)
      spilled_ns = PredictedNs(c.planned);
  }
  disabled.insert("winograd");
  GE_TRY(PlanAgain(c));
  if (spilled_ns < 0 || spilled_ns >= PredictedNs(c.planned)) return {};
  disabled.erase("winograd");
  steps->winograd = true;
  return PlanWithSpills(c);
}

// Until the arena is within the limit: values that are cheap to make are computed again; wide
// values are computed in strips; at last values go to backing store.
Status TakeSteps(Compilation& c, Steps* steps) {
  const Policy& policy = c.request.policy;
  constexpr int kMostSteps = 200;
  const auto may = [&](const char* what) { return !policy.disabled.contains(what); };
  const auto over = [&] { return c.planned.plan.arena_bytes > policy.memory_limit; };
  // A step may make it larger, for the next ones to make it smaller.
  const auto see = [&] { steps->least = std::min(steps->least, c.planned.plan.arena_bytes); };
  see();
  while (over() && steps->again + steps->strips < kMostSteps) {
    std::function<void()> back;
    if (may("recompute") && RecomputeOne(*c.graph, c.regions, c.lowered, c.planned,
                                         /*cheap=*/may("spill"), &back))
      ++steps->again;
    else if (may("strips") &&
             SplitIntoStrips(*c.graph, c.regions, c.lowered, c.planned, policy, &back))
      ++steps->strips;
    else
      break;
    c.undo.push_back(std::move(back));
    GE_TRY(PlanAgain(c));
    see();
  }
  if (over() && may("spill")) GE_TRY(PlanWithSpills(c));
  see();
  return {};
}

// Keeps the limit as far as it can without some of the steps.
Status Attempt(Compilation& c, Steps* steps) {
  std::set<std::string>& disabled = c.request.policy.disabled;
  const std::set<std::string> given = disabled;
  disabled.insert(steps->without.begin(), steps->without.end());
  Status status = TrySpillingAlone(c, steps);
  if (status.ok()) status = TakeSteps(c, steps);
  disabled = given;
  if (!steps->winograd) disabled.insert("winograd");
  steps->keeps = c.planned.plan.arena_bytes <= c.request.policy.memory_limit;
  steps->ns = PredictedNs(c.planned);
  return status;
}

// The graph as it was before the first step, or before any strips, and its plan.
Status StartAgain(Compilation& c, const std::set<std::string>& without, size_t before) {
  const size_t from = without.contains("strips") ? 0 : before;
  for (; c.undo.size() > from; c.undo.pop_back()) c.undo.back()();
  GE_TRY(PlanAgain(c));
  return c.undo.size() < before && !without.contains("strips") ? UseStrips(c) : Status();
}

// What one step does may stand in the way of another: where all together miss the limit, each is
// left out in turn, then both. Of those ways that keep it, the one that is predicted to take the
// least time stays; if there is none, the one with the least arena.
Status AttemptAll(Compilation& c, Steps* steps) {
  const std::set<std::string> given = c.request.policy.disabled;
  const size_t before = c.undo.size();
  const int64_t least = steps->least;
  const auto better = [&](const Steps& a, const Steps& b) {
    return a.keeps != b.keeps ? a.keeps : a.keeps ? a.ns < b.ns : a.least < b.least;
  };
  GE_TRY(Attempt(c, steps));
  if (steps->keeps) return {};
  Steps best = *steps, now = *steps;
  for (const std::set<std::string>& without :
       {std::set<std::string>{"recompute"}, {"strips"}, {"recompute", "strips"}}) {
    const bool open = std::none_of(without.begin(), without.end(),
                                   [&](const std::string& step) { return given.contains(step); });
    if (!open) continue;
    c.request.policy.disabled = given;
    now = {.without = without, .least = least};
    GE_TRY(StartAgain(c, without, before));
    GE_TRY(Attempt(c, &now));
    c.Log(fmt::format("memory_limit without {}: arena {} bytes, predicted {:.1f} us",
                      fmt::join(without, " and "), c.planned.plan.arena_bytes, now.ns / 1e3));
    if (better(now, best)) best = now;
  }
  *steps = now;
  if (best.without == now.without) return {};
  c.request.policy.disabled = given;
  *steps = {.without = best.without, .least = least};
  GE_TRY(StartAgain(c, best.without, before));
  return Attempt(c, steps);
}

}  // namespace

// Another order of the tasks, where it makes the arena clearly smaller and, streams included, costs
// nothing; under a limit wherever it makes it smaller. An order that the user chose stays.
Status UseLeanOrder(Compilation& c) {
  constexpr int64_t kWorth = 6 << 20;  // small ones lie in the caches as they are
  const Policy& policy = c.request.policy;
  const int64_t before = c.planned.plan.arena_bytes;
  const bool limited = policy.memory_limit > 0;
  const double smaller = limited ? 1 : 0.96, slower = limited ? 1.05 : 1.005;
  if (policy.opt_level < 2 || policy.disabled.contains("order") ||
      c.request.node_order != NodeOrder::kModel || !c.planned.plan.symbols.empty() ||
      before <= (limited ? policy.memory_limit : kWorth))
    return {};
  std::vector<NodeId> best = c.graph->order;
  double least = static_cast<double>(before);
  const double ns = StreamsNs(c.planned.plan, policy.max_streams);
  const auto orders =
      LeanOrders(*c.graph, c.regions.at(c.graph.get()), c.lowered.at(c.graph.get()));
  for (const std::vector<NodeId>& order : orders) {
    c.graph->order = order;
    if (!PlanAgain(c).ok()) continue;  // the order that is known to work stays
    const auto now = static_cast<double>(c.planned.plan.arena_bytes);
    const double time = StreamsNs(c.planned.plan, policy.max_streams) / ns;
    c.Log(fmt::format("order: arena {} bytes, predicted time {:+.1f} %", now, 100 * (time - 1)));
    if (now < smaller * least && time <= slower) best = order, least = now;
  }
  if (orders.empty()) return {};
  c.graph->order = best;
  return PlanAgain(c);
}

// Wide values at the fullest moment are computed in strips where that makes the arena clearly
// smaller and costs little: some steps are tried, and those kept that lead to the least arena. What
// the arena would be without aliases stays that of the plan before.
Status UseStrips(Compilation& c) {
  constexpr size_t kMostSteps = 6;
  constexpr int64_t kWorth = 6 << 20;  // small ones lie in the caches as they are
  constexpr double kSmaller = 0.96, kSlower = 1.05;
  const Policy& policy = c.request.policy;
  if (policy.opt_level < 2 || policy.disabled.contains("strips")) return {};
  const int64_t unaliased = c.planned.arena_unaliased, values = c.planned.arena_values;
  const double ns = PredictedNs(c.planned);
  size_t kept = 0;
  int64_t least = c.planned.plan.arena_bytes;
  while (c.planned.plan.arena_bytes > kWorth && c.undo.size() < kMostSteps) {
    std::function<void()> back;
    if (!SplitIntoStrips(*c.graph, c.regions, c.lowered, c.planned, policy, &back)) break;
    c.undo.push_back(std::move(back));
    GE_TRY(PlanAgain(c));
    const int64_t now = c.planned.plan.arena_bytes;
    const double slower = PredictedNs(c.planned) / ns;
    c.Log(fmt::format("strips, step {}: arena {} bytes, predicted time {:+.1f} %", c.undo.size(),
                      now, 100 * (slower - 1)));
    if (slower > kSlower) break;
    if (static_cast<double>(now) < kSmaller * static_cast<double>(least)) {
      kept = c.undo.size();
      least = now;
    }
  }
  const bool some = c.undo.size() > kept;
  for (; c.undo.size() > kept; c.undo.pop_back()) c.undo.back()();
  if (some) GE_TRY(PlanAgain(c));
  c.planned.arena_unaliased = unaliased, c.planned.arena_values = values;
  return {};
}

Status KeepLimit(Compilation& c) {
  const int64_t limit = c.request.policy.memory_limit, before = c.planned.plan.arena_bytes;
  if (limit <= 0 || (before >= 0 && before <= limit)) return {};
  if (before < 0) return Invalid("memory_limit: the sizes of this model are not known beforehand");
  const double ns_before = PredictedNs(c.planned);
  Steps steps{.least = before};
  GE_TRY(AttemptAll(c, &steps));
  const int64_t after = c.planned.plan.arena_bytes;
  const Moved moved = CountMoved(c.planned.plan);
  const double ns = PredictedNs(c.planned) - ns_before;
  c.report.notes.push_back(fmt::format(
      "memory_limit: {} values are computed again, {} in strips, {} are spilled ({} bytes written, "
      "{} read in each run), convolutions {} Winograd's form; the arena falls from {} to {} bytes, "
      "the predicted time rises by {:.1f} us ({:.1f} %)",
      steps.again, steps.strips, moved.values, moved.written, moved.read,
      steps.winograd ? "may keep" : "without", before, after, ns / 1e3,
      100 * ns / std::max(ns_before, 1.0)));
  if (after <= limit) return {};
  return Invalid(
      fmt::format("memory_limit: the arena needs {} bytes even with {} values computed "
                  "again, {} in strips and {} spilled; {} are allowed",
                  steps.least, steps.again, steps.strips, moved.values, limit));
}

}  // namespace ge
