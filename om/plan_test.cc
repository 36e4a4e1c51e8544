// Plans: text and binary forms read back, sizes evaluate, and CheckPlan refuses each kind of fault.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "om/file.h"
#include "om/size.h"

namespace ge::om {
namespace {

using ::testing::HasSubstr;

constexpr const char* kText = R"(
plan {name="m" chip="host" slots=1}
symbol 0 {name="N" lo=1 hi=512 multiple_of=2 input=0 dim=0}
symbol 1 {name="K" hi=0}
check 0 {condition=le($N, 100) message="N is at most \"100\""}
buffer 0 {name="x" kind=input dtype=f32 index=0 dims=[$N, 64] bytes=mul($N, 256)}
buffer 1 {name="w" kind=const dtype=f32 dims=[64] bytes=256 offset=64}
buffer 2 {name="t" kind=arena dtype=f32 dims=[$N, 64] bytes=mul($N, 256) first=0 last=2}
buffer 3 {name="v" kind=arena dtype=f32 bytes=256 alias=2 alias_offset=mul(add($N, -1), 256)}
buffer 4 {name="y" kind=output dtype=f32 index=0 dims=[max($N, $K), 64] bytes=mul($N, 256)}
buffer 5 {name="s" kind=slot dtype=string index=0}
buffer 6 {name="n" kind=arena dtype=i64 bytes=8 first=0 last=4}
kernel 0 {name="scale" hash="00ff" text="kernel\n"}
task 0 {kind=launch name="scale" kernel=0 args=[0, 1, 2] sizes=[$N] grid=div($N, 2) scratch=64 cost=900}
task 1 {kind=host name="h" host="Copy" args=[2, -1] outs=[4] attrs="a=i:1\n" binds=[1]}
task 2 {kind=jump_unless name="j" args=[6] target=4}
task 3 {kind=bind name="b" args=[6] binds=[1]}
task 4 {kind=jump name="k" target=5}
input 0 {name="x" dtype=f32 dims=[$N, 64] buffer=0}
output 0 {name="y" dtype=f32 dims=[max($N, $K), 64] buffer=4}
)";

Plan Parsed(const std::string& text = kText) {
  auto plan = ParsePlan(text);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return plan.ok() ? *plan : Plan();
}

TEST(PlanTextTest, ReadsBack) {
  const Plan plan = Parsed();
  EXPECT_EQ(plan.tasks.size(), 5u);
  EXPECT_EQ(plan.symbols[1].hi, 0);
  EXPECT_EQ(plan.checks[0].message, "N is at most \"100\"");
  const std::string text = ToString(plan);
  EXPECT_EQ(ToString(Parsed(text)), text);
  EXPECT_THAT(text, HasSubstr("alias_offset=mul(add($N, -1), 256)"));
  EXPECT_TRUE(CheckPlan(plan, 320, -1).ok()) << CheckPlan(plan, 320, -1).message();
}

TEST(PlanTextTest, SaysWhereItFails) {
  EXPECT_THAT(ParsePlan("task {kind=fly}").status().message(), HasSubstr("unknown kind"));
  EXPECT_THAT(ParsePlan("task {wings=2}").status().message(), HasSubstr("unknown field wings"));
  EXPECT_THAT(ParsePlan("bird {}").status().message(), HasSubstr("unknown record bird"));
  EXPECT_THAT(ParsePlan("task {grid=$N}").status().message(), HasSubstr("unknown symbol"));
  EXPECT_THAT(ParsePlan("symbol {input=5000000000}").status().message(), HasSubstr("out of range"));
  std::string deep = "task {grid=";
  for (int i = 0; i < 100000; ++i) deep += "not(";
  EXPECT_FALSE(ParsePlan(deep).ok());
}

TEST(PlanBinaryTest, ReadsBackAndRefusesTruncation) {
  const Plan plan = Parsed();
  const std::string bytes = EncodePlan(plan);
  const auto span = std::as_bytes(std::span(bytes));
  auto back = DecodePlan(span);
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(ToString(*back), ToString(plan));
  EXPECT_EQ(EncodePlan(*back), bytes);
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(DecodePlan(span.first(length)).ok()) << length;
  }
  const std::string longer = bytes + "x";
  EXPECT_FALSE(DecodePlan(std::as_bytes(std::span(longer))).ok());
}

// Flipped plans may decode; then the checks and the printer must stand them.
TEST(PlanBinaryTest, FlippedBitsAreHarmless) {
  const std::string bytes = EncodePlan(Parsed());
  int decoded = 0;
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    auto plan = DecodePlan(std::as_bytes(std::span(flipped)));
    if (!plan.ok()) continue;
    ++decoded;
    EXPECT_FALSE(ToString(*plan).empty());
    if (CheckPlan(*plan, 320, -1).ok()) {
      const std::vector<int64_t> symbols(plan->symbols.size(), 3);
      for (size_t s = 0; s < plan->sizes.size(); ++s)
        EvalSize(*plan, static_cast<SizeRef>(s), symbols);
    }
  }
  EXPECT_GT(decoded, 0);
}

TEST(PlanBinaryTest, FalseCountsTakeNoMemory) {
  // A size list that claims 2^40 entries.
  const std::string bytes("\0\0\1\0\x80\x80\x80\x80\x80\x80\x01", 11);
  EXPECT_FALSE(DecodePlan(std::as_bytes(std::span(bytes))).ok());
}

int64_t Value(const std::string& size, std::vector<int64_t> symbols = {}) {
  std::string text;
  for (size_t i = 0; i < symbols.size(); ++i)
    text += "symbol {name=\"s" + std::to_string(i) + "\"}";
  const Plan plan = Parsed(text + "task {kind=launch grid=" + size + "}");
  return EvalSize(plan, plan.tasks[0].grid, symbols);
}

TEST(SizeTest, Evaluates) {
  EXPECT_EQ(Value("div(-7, 2)"), -4);
  EXPECT_EQ(Value("mod(-7, 2)"), 1);
  EXPECT_EQ(Value("mod(7, -2)"), -1);
  EXPECT_EQ(Value("min(max(3, 5), 4)"), 4);
  EXPECT_EQ(Value("select(lt(1, 2), 10, 20)"), 10);
  EXPECT_EQ(Value("add(mul($s0, 3), $s1)", {5, 2}), 17);
  EXPECT_EQ(Value("and(le(2, 2), not(eq(1, 2)))"), 1);
  EXPECT_EQ(Value("or(ne(1, 1), 0)"), 0);
}

TEST(SizeTest, WhatHasNoValue) {
  EXPECT_EQ(Value("div(1, 0)"), kNoSize);
  EXPECT_EQ(Value("mod(1, 0)"), kNoSize);
  EXPECT_EQ(Value("mul(4611686018427387904, 2)"), kNoSize);
  EXPECT_EQ(Value("add(9223372036854775807, 1)"), kNoSize);
  EXPECT_EQ(Value("add($s0, 1)", {kNoSize}), kNoSize);
  EXPECT_EQ(Value("select(1, 7, div(1, 0))"), 7);
  EXPECT_EQ(Value("and(0, div(1, 0))"), 0);
  EXPECT_EQ(Value("or(1, div(1, 0))"), 1);
}

// Each fault, made from the good plan, and a part of the message.
struct FaultCase {
  const char* message;
  void (*make)(Plan&);
};

// a is an arena buffer of the plan, moved to a place in the backing store and back.
void AddStore(Plan& p, SizeRef bytes, int64_t offset, int32_t value, int32_t place) {
  Buffer store{};
  store.name = "a.spilled";
  store.kind = BufferKind::kStore;
  store.dtype = 1;
  store.bytes = bytes;
  store.offset = offset;
  p.buffers.push_back(store);
  Task task{};
  task.kind = TaskKind::kSpill;
  task.args = {value};
  task.outs = {place};
  p.tasks.push_back(task);
}

class CheckPlanTest : public ::testing::TestWithParam<FaultCase> {};

TEST_P(CheckPlanTest, IsRefused) {
  Plan plan = Parsed();
  GetParam().make(plan);
  const Status status = CheckPlan(plan, 320, 1);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Faults, CheckPlanTest,
    ::testing::Values(
        FaultCase{"size 0: code out of range", [](Plan& p) { p.sizes[0].end = 1u << 30; }},
        FaultCase{"sizes share code", [](Plan& p) { p.sizes.back().begin = 0; }},
        FaultCase{"bad code", [](Plan& p) { p.size_code[0].op = SizeOp::kAdd; }},
        FaultCase{"bad code", [](Plan& p) { p.size_code[0] = {SizeOp::kSymbol, 9}; }},
        FaultCase{"symbol 0: empty range", [](Plan& p) { p.symbols[0].lo = 1000; }},
        FaultCase{"symbol 0: bad multiple", [](Plan& p) { p.symbols[0].multiple_of = 0; }},
        FaultCase{"symbol 0: bad input", [](Plan& p) { p.symbols[0].input = 7; }},
        FaultCase{"symbol 0: bad dim", [](Plan& p) { p.symbols[0].dim = 2; }},
        FaultCase{"another size", [](Plan& p) { p.symbols[0].dim = 1; }},
        FaultCase{"check 0: bad condition", [](Plan& p) { p.checks[0].condition = -1; }},
        FaultCase{"buffer 0: bad input number", [](Plan& p) { p.buffers[0].index = 1; }},
        FaultCase{"buffer 0: bad element type", [](Plan& p) { p.buffers[0].dtype = 99; }},
        FaultCase{"buffer 1: lies outside the weights", [](Plan& p) { p.buffers[1].offset = 128; }},
        FaultCase{"buffer 1: bad offset", [](Plan& p) { p.buffers[1].offset = 1; }},
        FaultCase{"buffer 1: bad size", [](Plan& p) { p.buffers[1].bytes = -1; }},
        FaultCase{"buffer 2: bad lifetime", [](Plan& p) { p.buffers[2].last = 99; }},
        FaultCase{"buffer 2: arena buffer whose size is bound late",
                  [](Plan& p) { p.symbols[0].input = -1; }},
        FaultCase{"buffer 2: is not placed", [](Plan& p) { p.arena_bytes = 1024; }},
        FaultCase{"buffer 3: bad alias", [](Plan& p) { p.buffers[3].alias = 3; }},
        FaultCase{"alias of an alias", [](Plan& p) { p.buffers[4].alias = 3; }},
        FaultCase{"alias of a slot", [](Plan& p) { p.buffers[3].alias = 5; }},
        FaultCase{"leaves the buffer it shares",
                  [](Plan& p) { p.buffers[3].alias = 6, p.buffers[3].alias_offset = -1; }},
        FaultCase{"buffer 4: bad output number", [](Plan& p) { p.buffers[4].index = -1; }},
        FaultCase{"buffer 5: bad slot number", [](Plan& p) { p.slots = 0; }},
        FaultCase{"task 0: bad kernel", [](Plan& p) { p.tasks[0].kernel = 1; }},
        FaultCase{"task 0: bad argument", [](Plan& p) { p.tasks[0].args[0] = 77; }},
        FaultCase{"a kernel cannot use a slot", [](Plan& p) { p.tasks[0].args[0] = 5; }},
        FaultCase{"task 0: bad grid", [](Plan& p) { p.tasks[0].grid = -1; }},
        FaultCase{"task 1: no host kernel", [](Plan& p) { p.tasks[1].host.clear(); }},
        FaultCase{"task 1: writes what is only read", [](Plan& p) { p.tasks[1].outs[0] = 1; }},
        FaultCase{"task 1: binds a bad symbol", [](Plan& p) { p.tasks[1].binds[0] = 0; }},
        FaultCase{"task 2: bad condition", [](Plan& p) { p.tasks[2].args[0] = 0; }},
        FaultCase{"task 2: bad target", [](Plan& p) { p.tasks[2].target = 6; }},
        FaultCase{"bad offset", [](Plan& p) { AddStore(p, p.buffers[6].bytes, -64, 6, 7); }},
        FaultCase{"unknown size", [](Plan& p) { AddStore(p, p.buffers[2].bytes, 0, 2, 7); }},
        FaultCase{"another size", [](Plan& p) { AddStore(p, p.buffers[1].bytes, 0, 6, 7); }},
        FaultCase{"moves no value", [](Plan& p) { AddStore(p, p.buffers[6].bytes, 0, 0, 7); }},
        FaultCase{"moves no value", [](Plan& p) { AddStore(p, p.buffers[6].bytes, 0, 6, 6); }},
        FaultCase{"bad argument", [](Plan& p) { AddStore(p, p.buffers[6].bytes, 0, 6, 8); }},
        FaultCase{"a kernel cannot use backing store",
                  [](Plan& p) {
                    AddStore(p, p.buffers[6].bytes, 0, 6, 7);
                    p.tasks[0].args[0] = 7;
                  }},
        FaultCase{"its buffer is backing store",
                  [](Plan& p) {
                    AddStore(p, p.buffers[6].bytes, 0, 6, 7);
                    p.outputs[0].buffer = 7;
                  }},
        FaultCase{"task 3: bad element", [](Plan& p) { p.tasks[3].element = 1; }},
        FaultCase{"task 3: binds not one symbol", [](Plan& p) { p.tasks[3].binds.clear(); }},
        FaultCase{"input 0: is not its buffer's input", [](Plan& p) { p.inputs[0].buffer = 2; }},
        FaultCase{"output 0: its buffer has another element type",
                  [](Plan& p) { p.outputs[0].dtype = 7; }}));

TEST(CheckPlanTest, AnUnusedBufferNeedsNoPlace) {
  Plan plan = Parsed();
  plan.buffers[6].first = plan.buffers[6].last = -1;
  EXPECT_TRUE(CheckPlan(plan, 320, -1).ok());
  plan.buffers[6].last = 0;
  EXPECT_FALSE(CheckPlan(plan, 320, -1).ok());
}

TEST(CheckPlanTest, KernelsNeedCodeOrText) {
  Plan plan = Parsed();
  EXPECT_TRUE(CheckPlan(plan, 320, 0).ok());
  plan.kernels[0].text.clear();
  EXPECT_TRUE(CheckPlan(plan, 320, 1).ok());
  EXPECT_THAT(CheckPlan(plan, 320, 0).message(), HasSubstr("kernel 0: has no code"));
}

}  // namespace
}  // namespace ge::om
