// Plans of small graphs: their tasks, and what they compute in the runtime with interpreted
// kernels. Kernels are written here: pointwise operators on dense tensors of one shape.
#include "plan/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "ir/opdef.h"
#include "om/file.h"
#include "plan/test_load.h"
#include "plan/validate.h"
#include "rt/runtime.h"
#include "tile/builder.h"

namespace ge {
namespace {

using ::testing::ElementsAre;
using Floats = std::vector<float>;
using Ints = std::vector<int64_t>;

Lowered LowerPointwise(const Graph& g, const Region& r) {
  const Node& n = g.node(r.nodes[0]);
  const Value& out = g.value(n.outputs[0]);
  Lowered lowered;
  lowered.kernels.emplace_back();
  LoweredKernel& k = lowered.kernels[0];
  k.kernel.name = n.name;
  tile::Builder b(k.kernel, g.arena());
  const Expr count = out.type.Elements();
  std::vector<int> in;
  for (ValueId v : n.inputs) {
    in.push_back(b.Arg(g.value(v).name, g.value(v).type.dtype, count, false));
    k.args.push_back({KernelArg::Kind::kValue, v});
  }
  const int to = b.Arg(out.name, out.type.dtype, count, true);
  k.args.push_back({KernelArg::Kind::kValue, n.outputs[0]});
  b.For("i", count, tile::LoopKind::kParallel, [&](Expr i) {
    const tile::Val x = b.Load(in[0], i);
    const std::string& op = n.op->name;
    tile::Val y = x;
    if (op == "Neg") y = -x;
    if (op == "Add") y = x + b.Load(in[1], i);
    if (op == "Mul") y = x * b.Load(in[1], i);
    if (op == "Less") y = b.Binary(tile::Op::kLt, x, b.Load(in[1], i));
    b.Store(to, i, y);
  });
  tile::CollectSizeSymbols(k.kernel);
  k.grid = k.kernel.Grid();
  return lowered;
}

struct Model {
  std::unique_ptr<Graph> graph;
  RegionMap regions;
  LoweredMap lowered;
  Planned planned;
};

void FormRegions(const Graph& g, Model& m) {
  std::vector<Region>& regions = m.regions[&g];
  std::vector<Lowered>& lowered = m.lowered[&g];
  for (NodeId id : g.order) {
    const Node& n = g.node(id);
    Region r;
    r.name = n.name;
    r.engine = n.op->control         ? Engine::kControl
               : !n.op->host.empty() ? Engine::kHost
                                     : Engine::kVector;
    r.nodes = {id};
    r.inputs = n.inputs;
    r.outputs = n.outputs;
    const bool known = g.value(n.outputs[0]).elems.has_value() || n.op->name == "Reshape";
    lowered.push_back(r.engine == Engine::kVector && !known ? LowerPointwise(g, r) : Lowered());
    regions.push_back(std::move(r));
    for (const auto& sub : n.subgraphs) FormRegions(*sub, m);
  }
}

std::unique_ptr<Model> Plan(const std::string& text, const Policy& policy = Policy()) {
  auto m = std::make_unique<Model>();
  auto graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  if (!graph.ok()) return nullptr;
  m->graph = std::move(graph).value();
  FormRegions(*m->graph, *m);
  auto planned = BuildPlan(*m->graph, m->regions, m->lowered, policy);
  EXPECT_TRUE(planned.ok()) << planned.status().message();
  if (!planned.ok()) return nullptr;
  m->planned = std::move(planned).value();
  EXPECT_EQ(ValidatePlan(m->planned.plan).message(), "") << om::ToString(m->planned.plan);
  return m;
}

int Count(const Model& m, om::TaskKind kind, const std::string& host = "") {
  int n = 0;
  for (const om::Task& t : m.planned.plan.tasks) n += t.kind == kind && t.host == host;
  return n;
}

std::unique_ptr<rt::Run> Load(const Model& m) {
  const auto fill = [&](std::byte* out) {
    for (const WeightSource& w : m.planned.weights) {
      const Constant& c = *w.graph->ConstantOf(w.value);
      std::memcpy(out + w.offset, c.bytes.data(), c.bytes.size());
    }
    return Status();
  };
  auto model = LoadInterpreted(m.planned, fill, 1);
  EXPECT_TRUE(model.ok()) << model.status().message();
  if (!model.ok()) return nullptr;
  auto run = rt::Run::Create(*model);
  EXPECT_TRUE(run.ok()) << run.status().message();
  return run.ok() ? std::move(run).value() : nullptr;
}

template <class T>
rt::Tensor On(std::vector<T>& v, DType type, Ints dims) {
  return {static_cast<uint8_t>(type), std::move(dims), v.data(),
          static_cast<int64_t>(v.size() * sizeof(T))};
}
rt::Tensor On(Floats& v) { return On(v, DType::kF32, {static_cast<int64_t>(v.size())}); }

Floats Result(const rt::Tensor& t) {
  const auto* p = static_cast<const float*>(t.data);
  return Floats(p, p + t.bytes / 4);
}

TEST(Planner, ChainsWorkInPlace) {
  auto m = Plan(R"(graph "g" (%x: f32[4]) -> (%y) {
    %a: f32[4] = Neg(%x)
    %b: f32[4] = Add(%a, %x)
    %c: f32[4] = Neg(%b)
    %y: f32[4] = Mul(%c, %c)
  })");
  ASSERT_TRUE(m);
  EXPECT_EQ(m->planned.plan.arena_bytes, 0) << om::ToString(m->planned.plan);  // all in y's memory
  auto run = Load(*m);
  Floats x = {1, 2, 3, 4};
  rt::Tensor in[] = {On(x)}, out[] = {rt::Tensor()};
  ASSERT_EQ(run->Execute(in, out).message(), "");
  EXPECT_THAT(Result(out[0]), ElementsAre(0, 0, 0, 0));
}

TEST(Planner, OutputsThatNoTaskMakes) {
  auto m = Plan(R"(symbol n
  graph "g" (%x: f32[n]) -> (%x, %c, %a, %a, %s) {
    %c = const f32[2] {5.0, 6.0}
    %a: f32[n] = Neg(%x)
    %s = Shape(%x)
  })");
  ASSERT_TRUE(m);
  EXPECT_EQ(m->planned.weight_bytes, 64);
  auto run = Load(*m);
  for (int size : {3, 5}) {
    Floats x(size, 2);
    rt::Tensor in[] = {On(x)};
    rt::Tensor out[5];
    ASSERT_EQ(run->Execute(in, out).message(), "");
    EXPECT_EQ(Result(out[0]), x);
    EXPECT_THAT(Result(out[1]), ElementsAre(5, 6));
    EXPECT_EQ(Result(out[2]), Floats(size, -2));
    EXPECT_EQ(Result(out[3]), Floats(size, -2));
    EXPECT_EQ(*static_cast<int64_t*>(out[4].data), size);
  }
}

TEST(Planner, ReshapesAreAliases) {
  auto m = Plan(R"(symbol n
  graph "g" (%x: f32[n,4]) -> (%y) {
    %shape = const i64[1] {-1}
    %a: f32[n,4] = Neg(%x)
    %y = Reshape(%a, %shape)
  })");
  ASSERT_TRUE(m);
  EXPECT_EQ(m->planned.plan.tasks.size(), 1u);
  auto run = Load(*m);
  Floats x = {1, 2, 3, 4};
  rt::Tensor in[] = {On(x, DType::kF32, {1, 4})}, out[] = {rt::Tensor()};
  ASSERT_EQ(run->Execute(in, out).message(), "");
  EXPECT_THAT(out[0].dims, ElementsAre(4));
  EXPECT_THAT(Result(out[0]), ElementsAre(-1, -2, -3, -4));
}

TEST(Planner, IfMakesResultsInPlace) {
  auto m = Plan(R"(graph "g" (%c: bool[], %x: f32[4]) -> (%z) {
    %y: f32[4] = If(%c, %x) {captures=1}
      graph "then" (%x: f32[4]) -> (%a) { %n: f32[4] = Neg(%x)  %a: f32[4] = Add(%n, %n) }
      graph "else" (%x: f32[4]) -> (%x) { }
    %z: f32[4] = Add(%y, %x)
  })");
  ASSERT_TRUE(m);
  EXPECT_EQ(Count(*m, om::TaskKind::kJumpUnless), 1);
  EXPECT_EQ(Count(*m, om::TaskKind::kJump), 1);
  EXPECT_EQ(Count(*m, om::TaskKind::kHost, "Copy"), 1) << "the else branch gives back its input";
  auto run = Load(*m);
  Floats x = {1, 2, 3, 4};
  for (uint8_t condition : {1, 0, 1}) {
    std::vector<uint8_t> c = {condition};
    rt::Tensor in[] = {On(c, DType::kBool, {}), On(x)}, out[] = {rt::Tensor()};
    ASSERT_EQ(run->Execute(in, out).message(), "");
    if (condition) {
      EXPECT_THAT(Result(out[0]), ElementsAre(-1, -2, -3, -4));
    } else {
      EXPECT_THAT(Result(out[0]), ElementsAre(2, 4, 6, 8));
    }
  }
}

TEST(Planner, NestedIfs) {
  auto m = Plan(R"(graph "g" (%c: bool[], %d: bool[], %x: f32[2]) -> (%y) {
    %y: f32[2] = If(%c, %d, %x) {captures=2}
      graph "then" (%d: bool[], %x: f32[2]) -> (%r) {
        %r: f32[2] = If(%d, %x) {captures=1}
          graph "then" (%x: f32[2]) -> (%a) { %a: f32[2] = Neg(%x) }
          graph "else" (%x: f32[2]) -> (%a) { %a: f32[2] = Add(%x, %x) }
      }
      graph "else" (%d: bool[], %x: f32[2]) -> (%a) { %a: f32[2] = Mul(%x, %x) }
  })");
  ASSERT_TRUE(m);
  auto run = Load(*m);
  Floats x = {3, 5};
  for (int k = 0; k < 4; ++k) {
    std::vector<uint8_t> c = {static_cast<uint8_t>(k / 2)}, d = {static_cast<uint8_t>(k % 2)};
    rt::Tensor in[] = {On(c, DType::kBool, {}), On(d, DType::kBool, {}), On(x)},
               out[] = {rt::Tensor()};
    ASSERT_EQ(run->Execute(in, out).message(), "");
    const Floats want = k < 2 ? Floats{9, 25} : k == 2 ? Floats{6, 10} : Floats{-3, -5};
    EXPECT_EQ(Result(out[0]), want) << k;
  }
}

// acc = acc + w each round; the scan output holds every acc.
constexpr char kLoop[] = R"(graph "g" (%n: i64[], %x: f32[2], %w: f32[2]) -> (%last, %all) {
  %go = const bool[] {1}
  %last, %all = Loop(%n, %go, %x, %w) {captures=1}
    graph "body" (%i: i64[], %cond: bool[], %acc: f32[2], %w: f32[2]) -> (%cond, %next, %next) {
      %next: f32[2] = Add(%acc, %w)
    }
})";

TEST(Planner, LoopWithScanOutput) {
  auto m = Plan(kLoop);
  ASSERT_TRUE(m);
  auto run = Load(*m);
  Floats x = {1, 2}, w = {10, 20};
  for (int64_t rounds : {3, 0, 5, 1}) {
    Ints n = {rounds};
    rt::Tensor in[] = {On(n, DType::kI64, {}), On(x), On(w)}, out[] = {rt::Tensor(), rt::Tensor()};
    ASSERT_EQ(run->Execute(in, out).message(), "");
    EXPECT_THAT(Result(out[0]), ElementsAre(1 + 10 * rounds, 2 + 20 * rounds));
    EXPECT_THAT(out[1].dims, ElementsAre(rounds, 2));
    const Floats all = Result(out[1]);
    for (int64_t i = 0; i < rounds; ++i) EXPECT_EQ(all[2 * i + 1], 22 + 20 * i);
  }
}

// One launch does all rounds; without optimisation each is a round of tasks. The results are equal.
TEST(Planner, SmallCountedLoopsAreOneKernel) {
  // Carries two values that change places, reads the counter, and nests.
  const std::string text = R"(graph "g" (%n: i64[], %x: i64[], %y: i64[]) -> (%p, %q, %all) {
    %go = const bool[] {1}
    %p, %q, %all = Loop(%n, %go, %x, %y)
      graph "body" (%i: i64[], %cond: bool[], %a: i64[], %b: i64[]) -> (%cond, %b, %sum, %sum) {
        %three = const i64[] {3}
        %last = Loop(%three, %cond, %a, %i) {captures=1}
          graph "inner" (%j: i64[], %c: bool[], %s: i64[], %o: i64[]) -> (%c, %next) {
            %add: i64[] = Add(%s, %o)
            %next: i64[] = Add(%add, %j)
          }
        %sum: i64[] = Mul(%last, %b)
      }
  })";
  auto native = Plan(text);
  Policy plain;
  plain.opt_level = 0;
  auto jumps = Plan(text, plain);
  ASSERT_TRUE(native && jumps);
  EXPECT_EQ(Count(*native, om::TaskKind::kLaunch), 1);
  EXPECT_EQ(Count(*native, om::TaskKind::kJump), 0);
  EXPECT_GT(Count(*jumps, om::TaskKind::kJump), 1);
  auto run = Load(*native), other = Load(*jumps);
  Ints x = {1}, y = {3};
  for (int64_t rounds : {4, 0, 1, 7}) {
    Ints n = {rounds};
    rt::Tensor in[] = {On(n, DType::kI64, {}), On(x, DType::kI64, {}), On(y, DType::kI64, {})};
    rt::Tensor out[3], want[3];
    ASSERT_EQ(run->Execute(in, out).message(), "");
    ASSERT_EQ(other->Execute(in, want).message(), "");
    for (int o = 0; o < 3; ++o) {
      ASSERT_EQ(out[o].dims, want[o].dims);
      const size_t bytes = 8 * (o < 2 ? 1 : static_cast<size_t>(rounds));
      EXPECT_EQ(std::memcmp(out[o].data, want[o].data, bytes), 0) << rounds << " rounds";
    }
  }
}

TEST(Planner, LoopThatEndsByItsCondition) {
  auto m = Plan(R"(graph "g" (%x: f32[1], %limit: f32[1]) -> (%last) {
    %go = const bool[] {1}
    %last = Loop(_, %go, %x, %limit) {captures=1}
      graph "body" (%i: i64[], %cond: bool[], %a: f32[1], %limit: f32[1]) -> (%more, %next) {
        %next: f32[1] = Add(%a, %a)
        %less: bool[1] = Less(%next, %limit)
        %scalar = const i64[0] {}
        %more = Reshape(%less, %scalar)
      }
  })");
  ASSERT_TRUE(m);
  auto run = Load(*m);
  Floats x = {1}, limit = {1000};
  rt::Tensor in[] = {On(x), On(limit)}, out[] = {rt::Tensor()};
  ASSERT_EQ(run->Execute(in, out).message(), "");
  EXPECT_THAT(Result(out[0]), ElementsAre(1024));
}

TEST(Planner, CarriedValuesMayChangePlaces) {
  auto m = Plan(R"(graph "g" (%n: i64[], %x: f32[2], %y: f32[2]) -> (%p, %q) {
    %go = const bool[] {1}
    %p, %q = Loop(%n, %go, %x, %y)
      graph "body" (%i: i64[], %cond: bool[], %a: f32[2], %b: f32[2]) -> (%cond, %b, %a) { }
  })");
  ASSERT_TRUE(m);
  auto run = Load(*m);
  Floats x = {1, 2}, y = {3, 4};
  for (int64_t rounds : {0, 1, 2, 3}) {
    Ints n = {rounds};
    rt::Tensor in[] = {On(n, DType::kI64, {}), On(x), On(y)}, out[] = {rt::Tensor(), rt::Tensor()};
    ASSERT_EQ(run->Execute(in, out).message(), "");
    EXPECT_EQ(Result(out[0]), rounds % 2 ? y : x);
    EXPECT_EQ(Result(out[1]), rounds % 2 ? x : y);
  }
}

TEST(Planner, ScanForwardsAndBackwards) {
  auto m = Plan(R"(symbol n
  graph "g" (%s: f32[2], %x: f32[n,2]) -> (%last, %all) {
    %last, %all = Scan(%s, %x) {num_scan_inputs=1, scan_input_directions=[1]}
      graph "body" (%acc: f32[2], %row: f32[2]) -> (%next, %next) {
        %next: f32[2] = Add(%acc, %row)
      }
  })");
  ASSERT_TRUE(m);
  auto run = Load(*m);
  Floats s = {0, 0}, x = {1, 2, 3, 4, 5, 6};
  rt::Tensor in[] = {On(s), On(x, DType::kF32, {3, 2})}, out[] = {rt::Tensor(), rt::Tensor()};
  ASSERT_EQ(run->Execute(in, out).message(), "");
  EXPECT_THAT(Result(out[0]), ElementsAre(9, 12));
  EXPECT_THAT(Result(out[1]), ElementsAre(5, 6, 8, 10, 9, 12));
}

// What the inner loop fills slice by slice is alive in all of the outer one.
TEST(Planner, ScansNest) {
  auto m = Plan(R"(graph "g" (%x: f32[2,3,1]) -> (%last, %all) {
    %zero = const f32[1] {0}
    %last, %all = Scan(%zero, %x) {num_scan_inputs=1}
      graph "rows" (%acc: f32[1], %row: f32[3,1]) -> (%sum, %sums) {
        %sum, %sums = Scan(%acc, %row) {num_scan_inputs=1}
          graph "row" (%a: f32[1], %b: f32[1]) -> (%next, %next) {
            %next: f32[1] = Add(%a, %b)
          }
      }
  })");
  ASSERT_TRUE(m);
  auto run = Load(*m);
  Floats x = {1, 2, 3, 4, 5, 6};
  rt::Tensor in[] = {On(x, DType::kF32, {2, 3, 1})}, out[] = {rt::Tensor(), rt::Tensor()};
  ASSERT_EQ(run->Execute(in, out).message(), "");
  EXPECT_THAT(Result(out[0]), ElementsAre(21));
  EXPECT_THAT(Result(out[1]), ElementsAre(1, 3, 6, 10, 15, 21));
}

TEST(Planner, UnusedNodesAreNotRun) {
  auto m = Plan(R"(graph "g" (%x: f32[4]) -> (%y) {
    %a: f32[4] = Neg(%x)
    %b: f32[4] = Add(%a, %a)
    %y: f32[4] = Neg(%x)
  })");
  ASSERT_TRUE(m);
  EXPECT_EQ(m->planned.plan.tasks.size(), 1u);
}

TEST(Planner, LongChainsAreFast) {
  std::string text = "graph \"g\" (%x0: f32[16]) -> (%x20000) {\n";
  for (int i = 0; i < 20000; ++i) {
    text += "%x" + std::to_string(i + 1) + ": f32[16] = Neg(%x" + std::to_string(i) + ")\n";
  }
  auto m = Plan(text + "}");
  ASSERT_TRUE(m);
  EXPECT_EQ(m->planned.plan.tasks.size(), 20000u);
}

}  // namespace
}  // namespace ge
