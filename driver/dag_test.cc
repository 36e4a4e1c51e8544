// Random graphs of pointwise nodes, concatenations, splits and slices: planned with aliases and
// lanes and run on two workers, they give the bits of the plain plan on one. Every plan passes the
// validator. GE_DAGS says how many (default 300).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <random>

#include "base/check.h"
#include "driver/compile.h"
#include "driver/external_weights.h"
#include "driver/node_order.h"
#include "driver/recompute.h"
#include "driver/strips.h"
#include "fuse/fuse.h"
#include "ir/text.h"
#include "lower/lower.h"
#include "om/size.h"
#include "plan/planner.h"
#include "plan/spill.h"
#include "plan/test_load.h"
#include "plan/validate.h"
#include "rt/runtime.h"

namespace ge {
namespace {

struct Dag {
  std::string text;
  int outputs = 0;
};

// Values are f32[1, c, 8]; numbers stay small integers.
Dag RandomDag(std::mt19937& random) {
  struct V {
    std::string name;
    int c;
  };
  std::vector<V> values = {{"x", 8}, {"y", 4}};
  std::string body;
  std::vector<bool> used(2, false);
  const auto pick = [&] {
    // Recent ones more often: chains as well as forks.
    const size_t n = values.size(), back = random() % 3 ? std::min<size_t>(n, 4) : n;
    const size_t i = n - 1 - random() % back;
    used[i] = true;
    return values[i];
  };
  const auto add = [&](int c) {
    values.push_back({fmt::format("v{}", values.size()), c});
    used.push_back(false);
    return values.back().name;
  };
  const int count = 4 + static_cast<int>(random() % 24);
  for (int i = 0; i < count; ++i) {
    const V a = pick();
    const int kind = static_cast<int>(random() % 8);
    if (kind == 0 && a.c % 2 == 0 && a.c > 1) {
      const std::string p = add(a.c / 2), q = add(a.c / 2);
      body += fmt::format("  %{}, %{} = Split(%{}) {{axis=1, num_outputs=2}}\n", p, q, a.name);
    } else if (kind <= 2 && a.c < 64) {
      std::vector<std::string> parts = {"%" + a.name};
      int c = a.c;
      for (size_t k = 1 + random() % 2; k-- > 0;) {
        const V b = pick();
        parts.push_back("%" + b.name);
        c += b.c;
      }
      body += fmt::format("  %{} = Concat({}) {{axis=1}}\n", add(c), fmt::join(parts, ", "));
    } else if (kind == 3) {
      const V b = pick();
      if (b.c == a.c)
        body += fmt::format("  %{} = Min(%{}, %{})\n", add(a.c), a.name, b.name);
      else
        body += fmt::format("  %{} = Abs(%{})\n", add(a.c), a.name);
    } else if (kind == 4 && a.c > 2) {
      const int from = static_cast<int>(random() % static_cast<unsigned>(a.c - 1));
      const size_t id = values.size();
      body += fmt::format(
          "  %s{} = const i64[1] {{{}}}\n  %e{} = const i64[1] {{{}}}\n"
          "  %a{} = const i64[1] {{1}}\n",
          id, from, id, a.c, id);
      body += fmt::format("  %{} = Slice(%{}, %s{}, %e{}, %a{})\n", add(a.c - from), a.name, id, id,
                          id);
    } else if (kind == 5) {
      body += fmt::format("  %{} = Max(%{}, %x0)\n", add(a.c), a.name);
    } else {
      body += fmt::format("  %{} = Neg(%{})\n", add(a.c), a.name);
    }
  }
  Dag dag;
  std::string outputs;
  for (size_t i = 2; i < values.size(); ++i) {
    if (used[i] && random() % 8) continue;
    outputs += (dag.outputs++ ? ", %" : "%") + values[i].name;
  }
  dag.text = fmt::format(
      "graph \"dag\" (%x: f32[1,8,8], %y: f32[1,4,8]) -> ({}) {{\n"
      "  %x0 = const f32[] {{1}}\n{}}}\n",
      outputs, body);
  return dag;
}

struct Ran {
  std::vector<std::string> outputs;
  int lanes = 0, tasks = 0;
  std::string plan;
  int64_t arena = 0, bound = 0, unaliased = 0;
  int again = 0, strips = 0, spilled = 0, orders = 0;
};

// With policy.memory_limit, values are computed again or in strips as long as that helps, then
// spilled; of these only what is not disabled.
Result<Ran> RunDag(const std::string& text, const Policy& policy, int threads) {
  GE_ASSIGN(std::unique_ptr<Graph> g, ParseGraph(text));
  GE_ASSIGN(const SocSpec soc, FindSoc("x86-64-v3", nullptr));
  Optimise(*g, soc, policy);
  RegionMap regions;
  LoweredMap lowered;
  Planned planned;
  const auto plan = [&]() -> Status {
    planned = Planned();
    regions = FormRegions(*g, soc, policy);
    lowered.clear();
    for (const Region& r : regions.at(g.get())) {
      const bool code = r.engine == Engine::kVector || r.engine == Engine::kCube;
      lowered[g.get()].push_back(code ? LowerRegion(*g, r, soc, policy) : Lowered{});
    }
    GE_ASSIGN(planned, BuildPlan(*g, regions, lowered, policy));
    return {};
  };
  GE_TRY(plan());
  Ran ran;
  const auto may = [&](const char* what) { return !policy.disabled.contains(what); };
  if (policy.memory_limit > 0 && may("order")) {
    const auto orders = LeanOrders(*g, regions.at(g.get()), lowered.at(g.get()));
    if (!orders.empty()) {
      ++ran.orders;
      g->order = orders.back();
      GE_TRY(Verify(*g));
      GE_TRY(plan());
    }
  }
  while (policy.memory_limit > 0 && planned.plan.arena_bytes > policy.memory_limit &&
         ran.again + ran.strips < 20) {
    if (may("recompute") && RecomputeOne(*g, regions, lowered, planned, may("spill")))
      ++ran.again;
    else if (may("strips") && SplitIntoStrips(*g, regions, lowered, planned, policy))
      ++ran.strips;
    else
      break;
    GE_TRY(Verify(*g));
    GE_TRY(plan());
  }
  if (policy.memory_limit > 0 && may("spill")) SpillValues(planned, policy.memory_limit, policy);
  GE_TRY(ValidatePlan(planned.plan).In(om::ToString(planned.plan)));
  EXPECT_GE(planned.plan.arena_bytes, planned.arena_lower_bound);
  ran.plan = om::ToString(planned.plan);
  ran.arena = planned.plan.arena_bytes, ran.bound = planned.arena_lower_bound;
  ran.unaliased = planned.arena_unaliased;
  for (const om::Task& t : planned.plan.tasks) {
    ++ran.tasks;
    ran.lanes = std::max(ran.lanes, t.lane + 1);
    ran.spilled += t.kind == om::TaskKind::kSpill;
  }
  const auto fill = [&](std::byte* to) -> Status {
    for (const WeightSource& w : planned.weights) FillWeight(w, to + w.offset);
    return {};
  };
  GE_ASSIGN(auto model, LoadInterpreted(planned, fill, threads));
  GE_ASSIGN(auto run, rt::Run::Create(model));
  std::vector<std::vector<float>> data;
  std::vector<rt::Tensor> inputs;
  for (const om::IoTensor& io : planned.plan.inputs) {
    rt::Tensor t{.dtype = io.dtype};
    int64_t count = 1;
    for (const om::SizeRef d : io.dims) {
      t.dims.push_back(om::EvalSize(planned.plan, d, {}));
      count *= t.dims.back();
    }
    const int a = inputs.empty() ? 7 : 5, b = inputs.empty() ? 13 : 11;
    const int64_t middle = b / 2;
    auto& values = data.emplace_back();
    for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(i * a % b - middle));
    t.data = values.data();
    t.bytes = 4 * count;
    inputs.push_back(std::move(t));
  }
  for (int round = 0; round < 3; ++round) {
    std::vector<rt::Tensor> outputs(planned.plan.outputs.size());
    GE_TRY(run->Execute(inputs, outputs));
    std::vector<std::string> bytes;
    for (const rt::Tensor& t : outputs)
      bytes.emplace_back(static_cast<const char*>(t.data), static_cast<size_t>(t.bytes));
    if (round > 0 && bytes != ran.outputs) return Error(Code::kInternal, "two runs differ");
    ran.outputs = std::move(bytes);
  }
  return ran;
}

// Each layer appends channels to all that were there, as dense blocks of convolutions do.
TEST(Aliases, DenseBlockLiesInOneBuffer) {
  std::string text =
      "graph \"dense\" (%x: f32[1,8,8], %y: f32[1,4,8]) -> (%out) {\n"
      "  %z = const i64[1] {0}\n  %f = const i64[1] {4}\n  %o = const i64[1] {1}\n"
      "  %v0 = Neg(%x)\n";
  constexpr int kLayers = 12;
  for (int i = 0; i < kLayers; ++i)
    text += fmt::format(
        "  %s{0} = Slice(%v{0}, %z, %f, %o)\n  %h{0} = Abs(%s{0})\n"
        "  %v{1} = Concat(%v{0}, %h{0}) {{axis=1}}\n",
        i, i + 1);
  text += fmt::format("  %out = Neg(%v{})\n}}\n", kLayers);
  const auto ran = RunDag(text, Policy(), 2);
  ASSERT_TRUE(ran.ok()) << ran.status().message();
  EXPECT_EQ(ran->arena, ran->bound);
  EXPECT_EQ(ran->arena, (8 + 4 * kLayers) * 8 * 4) << ran->plan;
  EXPECT_LE(static_cast<double>(ran->arena), 0.8 * static_cast<double>(ran->unaliased));
}

TEST(RandomDags, AliasesAndLanesKeepEveryBit) {
  const char* wanted = std::getenv("GE_DAGS");
  const int count = wanted ? std::atoi(wanted) : 300;
  int with_lanes = 0, fewer_tasks = 0;
  for (int i = 0; i < count; ++i) {
    std::mt19937 random(static_cast<unsigned>(i));
    const Dag dag = RandomDag(random);
    CrashScope scope("random graph", [&] { return dag.text; });
    Policy plain;
    plain.opt_level = 0;
    plain.alias_parts = false;
    plain.max_streams = 1;
    plain.reuse_memory = i % 2 == 0;
    Policy clever;
    clever.opt_level = static_cast<int>(random() % 3);
    clever.max_region_nodes = 1 + static_cast<int>(random() % 4);
    clever.max_streams = 2 + static_cast<int>(random() % 3);
    clever.stream_gain = 0;
    const auto a = RunDag(dag.text, plain, 1);
    ASSERT_TRUE(a.ok()) << i << ": " << a.status().message() << "\n" << dag.text;
    const auto b = RunDag(dag.text, clever, 2);
    ASSERT_TRUE(b.ok()) << i << ": " << b.status().message() << "\n" << dag.text;
    ASSERT_TRUE(a->outputs == b->outputs) << i << "\n" << dag.text << b->plan;
    with_lanes += b->lanes > 1;
    fewer_tasks += b->tasks < a->tasks;
  }
  EXPECT_GT(with_lanes, count / 4);
  EXPECT_GT(fewer_tasks, count / 4);
}

TEST(RandomDags, ComputingAgainKeepsEveryBit) {
  int again = 0, less = 0;
  for (int i = 0; i < 2 * 600; ++i) {
    std::mt19937 random(static_cast<unsigned>(i));
    const Dag dag = RandomDag(random);
    CrashScope scope("random graph", [&] { return dag.text; });
    Policy policy;
    policy.max_region_nodes = 1 + i % 3;
    policy.max_streams = 1;
    const auto a = RunDag(dag.text, policy, 1);
    ASSERT_TRUE(a.ok()) << i << ": " << a.status().message() << "\n" << dag.text;
    policy.disabled = {"order", "spill"};
    policy.memory_limit = std::max<int64_t>(1, a->arena * 3 / 4);
    const auto b = RunDag(dag.text, policy, 1);
    ASSERT_TRUE(b.ok()) << i << ": " << b.status().message() << "\n" << dag.text;
    ASSERT_TRUE(a->outputs == b->outputs) << i << "\n" << dag.text << b->plan;
    again += b->again > 0;
    less += b->arena < a->arena;
  }
  EXPECT_GT(again, 10);
  EXPECT_GT(less, 5);
}

TEST(RandomDags, SpillingKeepsEveryBit) {
  const char* wanted = std::getenv("GE_DAGS");
  const int count = wanted ? std::atoi(wanted) : 300;
  int spilled = 0, reached = 0, orders = 0;
  for (int i = 0; i < count; ++i) {
    std::mt19937 random(static_cast<unsigned>(i));
    const Dag dag = RandomDag(random);
    CrashScope scope("random graph", [&] { return dag.text; });
    Policy policy;
    policy.opt_level = 2 * (i % 2);
    policy.arena_work = 10'000;
    policy.max_region_nodes = 1 + i % 3;
    policy.max_streams = 1;
    const auto a = RunDag(dag.text, policy, 1);
    ASSERT_TRUE(a.ok()) << i << ": " << a.status().message() << "\n" << dag.text;
    if (i % 4 != 0) policy.disabled = {"recompute"};
    if (i % 3 == 0) policy.disabled.insert("order");
    policy.memory_limit = std::max<int64_t>(1, a->arena * (2 + i % 4) / 6);
    const auto b = RunDag(dag.text, policy, 1 + i % 2);
    ASSERT_TRUE(b.ok()) << i << ": " << b.status().message() << "\n" << dag.text;
    ASSERT_TRUE(a->outputs == b->outputs) << i << "\n" << dag.text << b->plan;
    orders += b->orders;
    spilled += b->spilled > 0;
    reached += a->arena > policy.memory_limit && b->arena <= policy.memory_limit;
  }
  EXPECT_GT(orders, count / 4);
  EXPECT_GT(spilled, count / 6);
  EXPECT_GT(reached, count / 30);
}

// Chains of convolutions, pools and pointwise nodes with residuals; some weights are computed.
// Values are f32[1, c, h, w].
std::string RandomConvs(std::mt19937& random) {
  struct V {
    std::string name;
    int c, h, w;
  };
  std::string body = "  %top = ReduceMax(%x) {keepdims=0}\n";
  V now = {"x", 1 + static_cast<int>(random() % 20), 17 + static_cast<int>(random() % 24),
           5 + static_cast<int>(random() % 8)};
  const std::string input = fmt::format("f32[1,{},{},{}]", now.c, now.h, now.w);
  std::vector<V> all = {now};
  const int count = 3 + static_cast<int>(random() % 5);
  for (int i = 0; i < count; ++i) {
    V next = now;
    next.name = fmt::format("v{}", i);
    const int kind = static_cast<int>(random() % 8);
    const int stride = 1 + static_cast<int>(random() % 2);
    const auto shrink = [&](int reach, int pads) {
      next.h = (now.h + pads - reach) / stride + 1;
      next.w = (now.w + pads - reach) / stride + 1;
    };
    if (kind <= 3 && now.h > 8 && now.w > 4) {
      const bool depthwise = kind == 3;
      const int k = 1 + 2 * static_cast<int>(random() % 2), lo = static_cast<int>(random() % 2),
                hi = static_cast<int>(random() % 2);
      next.c = depthwise ? now.c : 8 + static_cast<int>(random() % 24);
      shrink(k, lo + hi);
      std::vector<int> weights(static_cast<size_t>(next.c * (depthwise ? 1 : now.c) * k * k));
      for (int& w : weights) w = random() % 8 ? 0 : static_cast<int>(random() % 3) - 1;
      body += fmt::format(
          "  %w{0} = const f32[{1},{2},{3},{3}] {{{4}}}\n  %m{0} = Mul(%w{0}, %top)\n"
          "  %{5} = Conv(%{6}, %{11}{0}) {{group={7}, kernel_shape=[{3},{3}], "
          "pads=[{8},{8},{9},{9}], strides=[{10},{10}]}}\n",
          i, next.c, depthwise ? 1 : now.c, k, fmt::join(weights, ", "), next.name, now.name,
          depthwise ? now.c : 1, lo, hi, stride, random() % 4 ? "w" : "m");
    } else if (kind == 4 && now.h > 8 && now.w > 4) {
      shrink(2, 1);
      body += fmt::format(
          "  %{0} = MaxPool(%{1}) {{kernel_shape=[2,2], pads=[0,0,1,1], strides=[{2},{2}]}}\n",
          next.name, now.name, stride);
    } else if (kind == 5) {
      const auto other = std::find_if(all.begin(), all.end(), [&](const V& v) {
        return v.name != now.name && v.c == now.c && v.h == now.h && v.w == now.w;
      });
      body += other == all.end()
                  ? fmt::format("  %{} = Relu(%{})\n", next.name, now.name)
                  : fmt::format("  %{} = Add(%{}, %{})\n", next.name, now.name, other->name);
    } else if (kind == 6) {
      std::vector<int> scales(static_cast<size_t>(now.c));
      for (int& s : scales) s = static_cast<int>(random() % 3) - 1;
      body += fmt::format("  %s{0} = const f32[{1},1,1] {{{2}}}\n  %{3} = Mul(%{4}, %s{0})\n", i,
                          now.c, fmt::join(scales, ", "), next.name, now.name);
    } else {
      body += fmt::format("  %{} = Abs(%{})\n", next.name, now.name);
    }
    now = next;
    all.push_back(now);
  }
  return fmt::format("graph \"convs\" (%x: {}) -> (%{}) {{\n{}}}\n", input, now.name, body);
}

TEST(RandomDags, StripsKeepEveryBit) {
  int strips = 0, less = 0;
  for (int i = 0; i < 150; ++i) {
    std::mt19937 random(static_cast<unsigned>(i));
    const std::string text = RandomConvs(random);
    CrashScope scope("random graph", [&] { return text; });
    Policy policy;
    policy.conv_tolerance = 0;
    const auto a = RunDag(text, policy, 1);
    ASSERT_TRUE(a.ok()) << i << ": " << a.status().message() << "\n" << text;
    policy.memory_limit = 1;
    policy.disabled = {"order", "spill"};
    const auto b = RunDag(text, policy, 2);
    ASSERT_TRUE(b.ok()) << i << ": " << b.status().message() << "\n" << text;
    ASSERT_TRUE(a->outputs == b->outputs) << i << "\n" << text << b->plan;
    strips += b->strips > 0;
    less += b->arena < a->arena;
  }
  EXPECT_GT(strips, 50);
  EXPECT_GT(less, 40);
}

// Convolutions of one shape after another, depthwise and 1x1, that may write over their inputs.
std::string SameSizedConvs(std::mt19937& random, bool over) {
  const int n = 1 + static_cast<int>(random() % 2), c = 64 + 8 * static_cast<int>(random() % 4),
            h = 3 + static_cast<int>(random() % 6), w = 3 + static_cast<int>(random() % 12);
  std::string body, now = "x", kept = "x";
  for (int i = 0; i < 6; ++i) {
    const bool depthwise = random() % 2;
    const int k = depthwise ? 3 + 2 * static_cast<int>(random() % 2) : 1;
    const int top = static_cast<int>(random() % static_cast<unsigned>(k)),
              left = static_cast<int>(random() % static_cast<unsigned>(k));
    std::vector<int> weights(static_cast<size_t>(c * (depthwise ? k * k : c)));
    for (int& v : weights) v = random() % 16 ? 0 : static_cast<int>(random() % 3) - 1;
    std::string next = fmt::format("v{}", i);
    body += fmt::format(
        "  %w{0} = const f32[{1},{2},{3},{3}] {{{4}}}\n  %{5} = Conv(%{6}, %w{0}) {{group={7}, "
        "kernel_shape=[{3},{3}], pads=[{8},{9},{10},{11}]{12}}}\n",
        i, c, depthwise ? 1 : c, k, fmt::join(weights, ", "), next, now, depthwise ? c : 1, top,
        left, k - 1 - top, k - 1 - left, over ? ", write_over=1" : "");
    if (random() % 3 == 0) {
      body += fmt::format("  %r{} = Add(%{}, %{})\n", i, next, kept);
      next = fmt::format("r{}", i);
    }
    now = next;
    if (random() % 2) kept = now;
  }
  return fmt::format("graph \"same\" (%x: f32[{},{},{},{}]) -> (%y) {{\n{}  %y = Neg(%{})\n}}\n", n,
                     c, h, w, body, now);
}

TEST(RandomDags, ConvsOverTheirInputsKeepEveryBit) {
  int less = 0;
  for (unsigned i = 0; i < 60; ++i) {
    std::mt19937 random(i), again(i);
    const std::string plain = SameSizedConvs(random, false), text = SameSizedConvs(again, true);
    const auto a = RunDag(plain, {}, 1), b = RunDag(text, {}, 2);
    ASSERT_TRUE(a.ok()) << i << ": " << a.status().message() << "\n" << plain;
    ASSERT_TRUE(b.ok()) << i << ": " << b.status().message() << "\n" << text;
    ASSERT_TRUE(a->outputs == b->outputs) << i << "\n" << text << b->plan;
    less += b->arena < a->arena;
  }
  EXPECT_GT(less, 30);
}

// Borders are written, never read: they do not keep a node from working in place.
TEST(Aliases, BordersInPlace) {
  const std::string type = "f32[1,16,3,3]{nc1hwc0:16} halo[2:1:1, 3:1:1]";
  const std::string text = fmt::format(
      "graph \"borders\" (%x: f32[1,16,3,3]) -> (%y) {{\n"
      "  %a: {0} = Neg(%x)\n  %b: {0} = Abs(%a)\n  %c: {0} = Add(%b, %x)\n  %y = Neg(%c)\n}}\n",
      type);
  Policy policy;
  policy.max_region_nodes = 1;
  const auto ran = RunDag(text, policy, 2);
  ASSERT_TRUE(ran.ok()) << ran.status().message();
  EXPECT_EQ(ran->arena, 16 * 5 * 5 * 4) << ran->plan;
  policy.reuse_memory = false;
  const auto apart = RunDag(text, policy, 1);
  ASSERT_TRUE(apart.ok()) << apart.status().message();
  EXPECT_TRUE(ran->outputs == apart->outputs);
}

// A strip whose borders are filled by a second kernel was written twice, not read.
TEST(RandomDags, StripsWithBordersAreNotComputedAgain) {
  const std::string text = fmt::format(
      "graph \"borders\" (%x: f32[1,16,40,40]) -> (%y) {{\n"
      "  %w0 = const f32[16,16,3,3] {{{}}}\n  %w1 = const f32[16,16,1,1] {{{}}}\n"
      "  %a = Conv(%x, %w0) {{kernel_shape=[3,3], pads=[3,2,0,4], dilations=[2,2]}}\n"
      "  %y = Conv(%a, %w1) {{kernel_shape=[1,1], pads=[8,8,8,8], strides=[2,2]}}\n}}\n",
      fmt::join(std::vector<int>(2304, 1), ", "), fmt::join(std::vector<int>(256, 1), ", "));
  Policy policy;
  policy.conv_tolerance = 0;
  const auto a = RunDag(text, policy, 1);
  ASSERT_TRUE(a.ok()) << a.status().message();
  policy.memory_limit = 1;
  policy.disabled = {"order", "spill"};
  const auto b = RunDag(text, policy, 2);
  ASSERT_TRUE(b.ok()) << b.status().message();
  EXPECT_TRUE(a->outputs == b->outputs) << b->plan;
  EXPECT_GT(b->strips, 0);
}

// The number of strips may be fixed for a node; 1: its rows are made as a whole.
TEST(RandomDags, StripsOfAFixedNumber) {
  const std::string text = fmt::format(
      "graph \"fixed\" (%x: f32[1,16,40,40]) -> (%y) {{\n"
      "  %w0 = const f32[16,16,3,3] {{{}}}\n  %w1 = const f32[16,16,1,1] {{{}}}\n"
      "  %a = Conv(%x, %w0) {{pads=[1,1,1,1]}}\n  %y = Conv(%a, %w1)\n}}\n",
      fmt::join(std::vector<int>(2304, 1), ", "), fmt::join(std::vector<int>(256, 1), ", "));
  const auto graph = ParseGraph(text);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  Policy policy;
  policy.conv_tolerance = 0;
  const auto plain = RunDag(text, policy, 1);
  ASSERT_TRUE(plain.ok()) << plain.status().message();
  policy.memory_limit = 1;
  for (int64_t number : {1, 2, 7}) {
    for (NodeId n : (*graph)->order) policy.tiles[(*graph)->node(n).name].strips = number;
    const auto strips = RunDag(text, policy, 2);
    ASSERT_TRUE(strips.ok()) << strips.status().message();
    EXPECT_EQ(strips->strips, number > 1);
    EXPECT_TRUE(strips->outputs == plain->outputs) << strips->plan;
    EXPECT_EQ(strips->plan.find(".strip6_") != std::string::npos, number == 7) << strips->plan;
  }
}

// A strip may lie in the padding as a whole.
TEST(RandomDags, StripsWithinPadding) {
  for (const char* pads : {"40,1,0,1", "0,1,40,1", "3,0,3,0", "2,1,2,1"}) {
    const std::string weights = fmt::format(
        "  %w0 = const f32[8,2,1,1] {{{}}}\n  %w1 = const f32[8,8,3,3] {{{}}}\n",
        fmt::join(std::vector<int>(16, 1), ", "), fmt::join(std::vector<int>(576, 1), ", "));
    const std::string text = fmt::format(
        "graph \"padding\" (%x: f32[1,2,24,8]) -> (%y) {{\n{}"
        "  %a = Conv(%x, %w0) {{kernel_shape=[1,1]}}\n"
        "  %b = Conv(%a, %w1) {{kernel_shape=[3,3], pads=[{}]}}\n"
        "  %y = Conv(%b, %w1) {{kernel_shape=[3,3], pads=[1,1,1,1], strides=[2,2]}}\n}}\n",
        weights, pads);
    Policy policy;
    policy.conv_tolerance = 0;
    const auto a = RunDag(text, policy, 1);
    ASSERT_TRUE(a.ok()) << a.status().message() << "\n" << text;
    policy.memory_limit = 1;
    policy.disabled = {"order", "spill"};
    const auto b = RunDag(text, policy, 2);
    ASSERT_TRUE(b.ok()) << b.status().message() << "\n" << text;
    EXPECT_TRUE(a->outputs == b->outputs) << text << b->plan;
    EXPECT_TRUE(b->strips > 0 || std::string_view(pads) != "2,1,2,1");
  }
}

}  // namespace
}  // namespace ge
