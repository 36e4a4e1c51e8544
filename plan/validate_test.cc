// The validator: sound plans pass, every planted fault is found.
#include "plan/validate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "om/file.h"

namespace ge {
namespace {

using ::testing::HasSubstr;

om::Plan Parse(const std::string& text) {
  auto plan = om::ParsePlan(text);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return plan.ok() ? std::move(plan).value() : om::Plan();
}

std::string Message(const std::string& text) { return ValidatePlan(Parse(text)).message(); }

// x -> a -> b -> y; a and b lie side by side.
std::string Chain(const std::string& a, const std::string& b) {
  return R"(plan {arena_bytes=128}
    buffer 0 {name="x" kind=input dtype=f32 index=0 dims=[4] bytes=16}
    buffer 1 {name="a" kind=arena dtype=f32 dims=[4] bytes=16 )" +
         a + R"(}
    buffer 2 {name="b" kind=arena dtype=f32 dims=[4] bytes=16 )" +
         b + R"(}
    buffer 3 {name="y" kind=output dtype=f32 index=0 dims=[4] bytes=16}
    kernel 0 {name="k"}
    task 0 {kind=launch name="first" kernel=0 args=[0, 1] outs=[1] grid=1}
    task 1 {kind=launch name="second" kernel=0 args=[1, 2] outs=[2] grid=1}
    task 2 {kind=launch name="third" kernel=0 args=[2, 3] outs=[3] grid=1}
    input {name="x" dtype=f32 dims=[4] buffer=0}
    output {name="y" dtype=f32 dims=[4] buffer=3})";
}

TEST(Validate, StraightLine) {
  EXPECT_EQ(Message(Chain("offset=0 first=0 last=1", "offset=64 first=1 last=2")), "");
  EXPECT_THAT(Message(Chain("offset=0 first=0 last=1", "offset=0 first=1 last=2")),
              HasSubstr("share bytes"));
  EXPECT_THAT(Message(Chain("offset=0 first=0 last=0", "offset=64 first=1 last=2")),
              HasSubstr("is alive at tasks 0 to 1"));
  EXPECT_THAT(Message(Chain("offset=0 first=1 last=1", "offset=64 first=1 last=2")),
              HasSubstr("is alive"));
  EXPECT_THAT(Message(Chain("offset=128 first=0 last=1", "offset=64 first=1 last=2")),
              HasSubstr("leaves the arena"));
}

TEST(Validate, UseBeforeWrite) {
  om::Plan plan = Parse(Chain("offset=0 first=0 last=2", "offset=64 first=0 last=2"));
  std::swap(plan.tasks[0], plan.tasks[1]);
  EXPECT_THAT(ValidatePlan(plan).message(), HasSubstr("reads a before it is written"));
}

TEST(Validate, IndicesAndTargets) {
  const std::string good = Chain("offset=0 first=0 last=1", "offset=64 first=1 last=2");
  const auto broken = [&](auto change) {
    om::Plan plan = Parse(good);
    change(plan);
    return ValidatePlan(plan).message();
  };
  EXPECT_THAT(broken([](om::Plan& p) { p.tasks[0].args[0] = 17; }), HasSubstr("out of range"));
  EXPECT_THAT(broken([](om::Plan& p) { p.tasks[0].kernel = 1; }), HasSubstr("no kernel"));
  EXPECT_THAT(broken([](om::Plan& p) { p.tasks[0].grid = 99; }), HasSubstr("no grid"));
  EXPECT_THAT(broken([](om::Plan& p) { p.tasks[0].outs[0] = 0; }), HasSubstr("only read"));
  EXPECT_THAT(broken([](om::Plan& p) { p.tasks[0].outs[0] = 3; }), HasSubstr("no argument"));
  EXPECT_THAT(broken([](om::Plan& p) { p.buffers[2].alias = 9; }), HasSubstr("bad alias"));
  EXPECT_THAT(broken([](om::Plan& p) {
                p.tasks[1].kind = om::TaskKind::kJump;
                p.tasks[1].target = 4;
              }),
              HasSubstr("jumps out"));
  EXPECT_THAT(broken([](om::Plan& p) { p.outputs[0].buffer = -3; }), HasSubstr("has no buffer"));
}

// w holds p and q; p is made by task 0, q by task 1, r lies over p.
std::string Parts(const std::string& tasks) {
  return R"(plan {arena_bytes=192}
    buffer 0 {name="x" kind=input dtype=f32 index=0 dims=[16] bytes=64}
    buffer 1 {name="w" kind=arena dtype=f32 dims=[32] bytes=128 offset=0 first=0 last=9}
    buffer 2 {name="p" kind=arena dtype=f32 dims=[16] bytes=64 alias=1}
    buffer 3 {name="q" kind=arena dtype=f32 dims=[16] bytes=64 alias=1 alias_offset=64}
    buffer 4 {name="r" kind=arena dtype=f32 dims=[16] bytes=64 alias=1}
    buffer 5 {name="y" kind=output dtype=f32 index=0 dims=[32] bytes=128}
    buffer 6 {name="s" kind=arena dtype=f32 dims=[16] bytes=64 offset=128 first=0 last=9}
    kernel 0 {name="k"}
    )" + tasks +
         R"(
    input {name="x" dtype=f32 dims=[16] buffer=0}
    output {name="y" dtype=f32 dims=[32] buffer=5})";
}

std::string Launch(int index, const std::string& args, const std::string& outs,
                   const std::string& more = "") {
  return "task " + std::to_string(index) + " {kind=launch name=\"t" + std::to_string(index) +
         "\" kernel=0 args=[" + args + "] outs=[" + outs + "] grid=1 " + more + "}\n";
}

TEST(Validate, WholesAreWrittenInParts) {
  const std::string read = Launch(2, "1, 5", "5");
  EXPECT_EQ(Message(Parts(Launch(0, "0, 2", "2") + Launch(1, "0, 3", "3") + read)), "");
  EXPECT_THAT(Message(Parts(Launch(0, "0, 2", "2") + Launch(1, "0, 4", "4") + read)),
              HasSubstr("reads bytes of w that nothing has written"));
}

TEST(Validate, OverwrittenBytesAreNotRead) {
  const std::string start = Launch(0, "0, 2", "2") + Launch(1, "0, 3", "3");
  EXPECT_EQ(Message(Parts(start + Launch(2, "2, 4", "4") + Launch(3, "4, 3, 5", "5"))), "");
  EXPECT_THAT(Message(Parts(start + Launch(2, "2, 4", "4") + Launch(3, "2, 3, 5", "5"))),
              HasSubstr("reads p, which r has overwritten"));
}

TEST(Validate, Lanes) {
  const auto plan = [](const std::string& second, const std::string& third) {
    return Message(Parts(Launch(0, "0, 2", "2", "lane=0") + Launch(1, "0, 3", "3", second) +
                         Launch(2, "1, 5", "5", third)));
  };
  EXPECT_EQ(plan("lane=1", "lane=1 waits=[0]"), "");
  EXPECT_EQ(plan("lane=1", "lane=0 waits=[1]"), "");
  EXPECT_EQ(plan("lane=1", ""), "");
  EXPECT_THAT(plan("lane=1", "lane=1"), HasSubstr("may run at the same time as task 0"));
  EXPECT_THAT(plan("lane=1", "lane=2 waits=[1]"), HasSubstr("may run at the same time"));
  EXPECT_THAT(plan("lane=1 waits=[1]", ""), HasSubstr("waits for a task that is not before it"));
  // Memory that is reused must be free by what is waited for, not by the list.
  EXPECT_THAT(Message(Parts(Launch(0, "0, 2", "2", "lane=0") + Launch(1, "0, 3", "3", "lane=1") +
                            Launch(2, "0, 4", "4", "lane=1") + Launch(3, "1, 5", "5"))),
              HasSubstr("may run at the same time as task 0"));
}

// y is written by one branch or by both.
std::string If(const std::string& other) {
  return R"(plan {arena_bytes=0}
    buffer 0 {name="c" kind=input dtype=bool index=0 bytes=1}
    buffer 1 {name="y" kind=output dtype=f32 index=0 dims=[4] bytes=16}
    kernel 0 {name="k"}
    task 0 {kind=jump_unless name="if" args=[0] target=3}
    task 1 {kind=launch name="then" kernel=0 args=[1] outs=[1] grid=4}
    task 2 {kind=jump target=4}
    task 3 )" +
         other + R"(
    input {name="c" dtype=bool buffer=0}
    output {name="y" dtype=f32 dims=[4] buffer=1})";
}

TEST(Validate, EveryPathWrites) {
  EXPECT_EQ(Message(If(R"({kind=launch name="else" kernel=0 args=[1] outs=[1] grid=4})")), "");
  EXPECT_THAT(Message(If(R"({kind=jump target=4})")),
              HasSubstr("output y is not written on every path"));
}

// h is carried around a loop; t is made and used in it.
std::string Loop(const std::string& h, const std::string& t) {
  return R"(plan {arena_bytes=256}
    symbol {name="i" hi=100}
    buffer 0 {name="x" kind=input dtype=f32 index=0 dims=[4] bytes=16}
    buffer 1 {name="h" kind=arena dtype=f32 dims=[4] bytes=16 )" +
         h + R"(}
    buffer 2 {name="t" kind=arena dtype=f32 dims=[4] bytes=16 )" +
         t + R"(}
    buffer 3 {name="more" kind=arena dtype=bool bytes=1 offset=128 first=0 last=8}
    buffer 4 {name="y" kind=output dtype=f32 index=0 dims=[4] bytes=16}
    kernel 0 {name="k"}
    task 0 {kind=bind name="i" sizes=[0] binds=[0]}
    task 1 {kind=host name="h" host="Copy" args=[0] outs=[1]}
    task 2 {kind=host name="more" host="Sizes" sizes=[lt($i, 5)] outs=[3]}
    task 3 {kind=jump_unless name="loop" args=[3] target=8}
    task 4 {kind=launch name="body" kernel=0 args=[1, 2] outs=[2] grid=1}
    task 5 {kind=host name="next" host="Copy" args=[2] outs=[1]}
    task 6 {kind=bind name="i" sizes=[add($i, 1)] binds=[0]}
    task 7 {kind=jump target=2}
    task 8 {kind=host name="y" host="Copy" args=[1] outs=[4]}
    input {name="x" dtype=f32 dims=[4] buffer=0}
    output {name="y" dtype=f32 dims=[4] buffer=4})";
}

TEST(Validate, LoopsExtendLives) {
  EXPECT_EQ(Message(Loop("offset=0 first=1 last=8", "offset=64 first=4 last=5")), "");
  EXPECT_THAT(Message(Loop("offset=0 first=1 last=4", "offset=64 first=4 last=5")),
              HasSubstr("(h) is alive at tasks 1 to 8"));
  EXPECT_THAT(Message(Loop("offset=0 first=1 last=8", "offset=0 first=4 last=5")),
              HasSubstr("share bytes"));
  om::Plan plan = Parse(Loop("offset=0 first=1 last=8", "offset=64 first=4 last=5"));
  plan.tasks[0].kind = om::TaskKind::kJump;  // i is not bound before the loop
  plan.tasks[0].target = 1;
  plan.tasks[0].binds.clear();
  plan.tasks[0].sizes.clear();
  EXPECT_THAT(ValidatePlan(plan).message(), HasSubstr("uses size i before it is bound"));
}

TEST(Validate, AliasesShare) {
  om::Plan plan = Parse(Chain("offset=0 first=0 last=2", "offset=64 first=1 last=2"));
  plan.buffers[2].alias = 1;
  EXPECT_EQ(ValidatePlan(plan).message(), "");
  plan.buffers[1].bytes = plan.tasks[0].grid;  // one byte
  EXPECT_THAT(ValidatePlan(plan).message(), HasSubstr("leaves its root"));
}

// a is used by task 0, spilled, fetched as c and read by task 4; b takes its bytes in between.
std::string Spilled(const std::string& a, const std::string& reader, const std::string& place,
                    const std::string& again) {
  return R"(plan {arena_bytes=64}
    buffer 0 {name="x" kind=input dtype=f32 index=0 dims=[4] bytes=16}
    buffer 1 {name="a" kind=arena dtype=f32 dims=[4] bytes=16 offset=0 first=0 )" +
         a + R"(}
    buffer 2 {name="b" kind=arena dtype=f32 dims=[4] bytes=16 offset=0 first=2 last=2}
    buffer 3 {name="s" kind=store dtype=f32 dims=[4] bytes=16 offset=0 first=1 last=3}
    buffer 4 {name="c" kind=arena dtype=f32 dims=[4] bytes=16 offset=0 first=3 last=4}
    buffer 5 {name="y" kind=output dtype=f32 index=0 dims=[4] bytes=16}
    buffer 6 {name="s2" kind=store dtype=f32 dims=[4] bytes=16 offset=4096 first=1 last=3}
    kernel 0 {name="k"}
    task 0 {kind=launch name="first" kernel=0 args=[0, 1] outs=[1] grid=1}
    task 1 {kind=spill name="a" args=[1] outs=[)" +
         place + R"(]}
    task 2 {kind=launch name="between" kernel=0 args=[)" +
         reader + R"(, 2] outs=[2] grid=1}
    task 3 {kind=fetch name="a" args=[)" +
         again + R"(] outs=[4]}
    task 4 {kind=launch name="last" kernel=0 args=[4, 5] outs=[5] grid=1}
    input {name="x" dtype=f32 dims=[4] buffer=0}
    output {name="y" dtype=f32 dims=[4] buffer=5})";
}

TEST(Validate, SpilledValuesAreNotUsed) {
  EXPECT_EQ(Message(Spilled("last=1", "0", "3", "3")), "");
  EXPECT_THAT(Message(Spilled("last=1", "1", "3", "3")), HasSubstr("(a) is alive at tasks 0 to 2"));
  EXPECT_THAT(Message(Spilled("last=2", "1", "3", "3")), HasSubstr("share bytes"));
  EXPECT_THAT(Message(Spilled("last=1", "4", "3", "3")), HasSubstr("reads c before it is written"));
  EXPECT_THAT(Message(Spilled("last=1", "0", "3", "6")),
              HasSubstr("reads s2 before it is written"));
  EXPECT_THAT(Message(Spilled("last=1", "3", "3", "3")), HasSubstr("uses backing store"));
  EXPECT_THAT(Message(Spilled("last=1", "0", "2", "3")), HasSubstr("moves no value"));
  const auto broken = [](auto change) {
    om::Plan plan = Parse(Spilled("last=1", "0", "3", "3"));
    change(plan);
    return ValidatePlan(plan).message();
  };
  EXPECT_THAT(broken([](om::Plan& p) { p.buffers[4].bytes = p.tasks[0].grid; }),
              HasSubstr("to a place of another size"));
  EXPECT_THAT(broken([](om::Plan& p) { p.buffers[3].last = 2; }), HasSubstr("(s) is alive"));
  EXPECT_THAT(broken([](om::Plan& p) { p.tasks[2] = p.tasks[1]; }),
              HasSubstr("spills to a place that is taken"));
  EXPECT_THAT(broken([](om::Plan& p) {
                p.tasks[2] = p.tasks[1];
                p.tasks[2].outs = {6};
                p.buffers[6].offset = 8;
                p.buffers[1].last = 2;
                p.buffers[2].first = p.buffers[2].last = -1;
              }),
              HasSubstr("(s) and 6 (s2) share bytes"));
}

TEST(Validate, LongPlansAreFast) {
  om::Plan plan = Parse(Chain("offset=0 first=0 last=1", "offset=64 first=1 last=2"));
  const om::Task middle = plan.tasks[1];
  const om::Buffer a = plan.buffers[1];
  plan.tasks.pop_back();
  plan.tasks.pop_back();
  plan.buffers[2].kind = om::BufferKind::kPool;
  int32_t from = 1;
  for (int32_t i = 0; i < 20000; ++i) {
    om::Buffer b = a;
    b.offset = i % 2 ? 0 : 64;
    b.first = i + 1;
    b.last = i + 2;
    plan.buffers.push_back(b);
    om::Task t = middle;
    const auto to = static_cast<int32_t>(plan.buffers.size()) - 1;
    t.args = {from, to};
    t.outs = {to};
    plan.tasks.push_back(t);
    from = to;
  }
  plan.outputs[0].buffer = from;
  plan.buffers[from].last = static_cast<int32_t>(plan.tasks.size()) - 1;
  EXPECT_EQ(ValidatePlan(plan).message(), "");
}

}  // namespace
}  // namespace ge
