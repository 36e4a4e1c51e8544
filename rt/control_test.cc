// Control flow and late symbols: hand-written plans with hand-written kernels.
#include <gmock/gmock.h>

#include <numeric>

#include "rt/host_kernel.h"
#include "rt/test_model.h"

namespace ge::rt {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Floats = std::vector<float>;
using Ints = std::vector<int64_t>;

// y = c ? x * 2 : x + 100
const TestModel kIf = {
    R"(plan {name="if" arena_bytes=0}
    buffer 0 {name="c" kind=input dtype=bool index=0 bytes=1}
    buffer 1 {name="x" kind=input dtype=f32 index=1 dims=[4] bytes=16}
    buffer 2 {name="y" kind=output dtype=f32 index=0 dims=[4] bytes=16}
    task 0 {kind=jump_unless name="if" args=[0] target=3}
    task 1 {kind=launch name="then" kernel=0 args=[1, 2] grid=4}
    task 2 {kind=jump target=4}
    task 3 {kind=launch name="else" kernel=1 args=[1, 2] grid=4}
    input {name="c" dtype=bool buffer=0}
    input {name="x" dtype=f32 dims=[4] buffer=1}
    output {name="y" dtype=f32 dims=[4] buffer=2})",
    {"for (int64_t i = begin; i < end; ++i) ((float*)b[1])[i] = ((const float*)b[0])[i] * 2;",
     "for (int64_t i = begin; i < end; ++i) ((float*)b[1])[i] = ((const float*)b[0])[i] + 100;"}};

TEST(ControlTest, IfOnAnInput) {
  for (const int threads : {1, 2}) {
    auto run = NewRun(kIf.Load(threads));
    Floats x = {1, 2, 3, 4}, y(4);
    for (bool condition : {true, false, true}) {
      Tensor in[] = {OnBool(&condition), On(x)}, out[] = {On(y)};
      ASSERT_TRUE(run->Execute(in, out).ok());
      EXPECT_EQ(y[3], condition ? 8 : 104);
    }
  }
}

// h = x; for i in 0..trip: h = h + 1; scan[i] = h. The trip count is an input's value.
const char* const kLoopPlan = R"(
    symbol {name="trip" hi=1000}
    symbol {name="i" hi=1000}
    buffer 0 {name="trip" kind=input dtype=i64 index=0 bytes=8}
    buffer 1 {name="x" kind=input dtype=f32 index=1 dims=[2] bytes=8}
    buffer 2 {name="h" kind=arena dtype=f32 dims=[2] bytes=8 first=1 last=8}
    buffer 3 {name="scan" kind=KIND dtype=f32 index=0 dims=[$trip, 2] bytes=mul($trip, 8) first=0 last=8}
    buffer 4 {name="scan[i]" kind=pool dtype=f32 dims=[2] bytes=8 alias=3 alias_offset=mul($i, 8)}
    buffer 5 {name="more" kind=arena dtype=bool bytes=1 first=2 last=8}
    buffer 6 {name="last" kind=output dtype=f32 index=1 dims=[2] bytes=8}
    task 0 {kind=bind name="trip" args=[0] binds=[0]}
    task 1 {kind=host name="h" host="Copy" args=[1] outs=[2]}
    task 2 {kind=bind name="start" sizes=[0] binds=[1]}
    task 3 {kind=host name="more" host="Sizes" sizes=[lt($i, $trip)] outs=[5]}
    task 4 {kind=jump_unless name="loop" args=[5] target=8}
    task 5 {kind=launch name="step" kernel=0 args=[2, 4] sizes=[$i] grid=2}
    task 6 {kind=host name="next" host="BindSizes" sizes=[add($i, 1)] binds=[1]}
    task 7 {kind=jump target=3}
    task 8 {kind=host name="last" host="Copy" args=[2] outs=[6]}
    input {name="trip" dtype=i64 buffer=0}
    input {name="x" dtype=f32 dims=[2] buffer=1}
    output {name="scan" dtype=f32 dims=[$trip, 2] buffer=3}
    output {name="last" dtype=f32 dims=[2] buffer=6})";
const std::vector<std::string> kLoopKernels = {
    "for (int64_t i = begin; i < end; ++i) { float* h = b[0]; h[i] += 1; ((float*)b[1])[i] = h[i] "
    "+ 1000 * s[0]; }"};

std::string Replaced(std::string text, const std::string& what, const std::string& by) {
  return text.replace(text.find(what), what.size(), by);
}

TEST(ControlTest, LoopWithScanOutput) {
  // The scan output in the caller's or the Run's memory, or in a pool buffer that is copied out.
  for (const char* kind : {"output", "pool"}) {
    const TestModel model = {Replaced(kLoopPlan, "KIND", kind), kLoopKernels};
    auto run = NewRun(model.Load(2));
    Floats x = {10, 20}, last(2);
    for (const int64_t trip : {3, 0, 200, 1}) {
      Ints count = {trip};
      Tensor in[] = {On(count, {}), On(x)}, out[] = {Tensor(), On(last)};
      ASSERT_EQ(run->Execute(in, out).message(), "");
      EXPECT_THAT(out[0].dims, ElementsAre(trip, 2));
      const Floats scan = Values<float>(out[0]);
      for (int64_t i = 0; i < trip; ++i) {
        ASSERT_EQ(scan[static_cast<size_t>(2 * i)], 11 + i + 1000 * i);
        ASSERT_EQ(scan[static_cast<size_t>(2 * i + 1)], 21 + i + 1000 * i);
      }
      EXPECT_THAT(last, ElementsAre(10 + trip, 20 + trip));
    }
    // The caller's memory: large enough, then too small.
    Ints count = {3};
    Floats scan(6, -1);
    scan.reserve(7);
    Tensor in[] = {On(count, {}), On(x)}, out[] = {On(scan), On(last)};
    ASSERT_EQ(run->Execute(in, out).message(), "");
    EXPECT_THAT(scan, ElementsAre(11, 21, 1012, 1022, 2013, 2023));
    count[0] = 4;
    scan.push_back(-5);
    EXPECT_THAT(run->Execute(in, out).message(),
                HasSubstr("output \"scan\": 24 bytes given, 32 needed"));
    EXPECT_EQ(scan[6], -5);
    count[0] = 2000;
    EXPECT_THAT(run->Execute(in, out).message(),
                HasSubstr("task trip: a size is 2000; allowed: 0 to 1000 (trip)"));
    count[0] = 2;
    ASSERT_EQ(run->Execute(in, out).message(), "");
    EXPECT_THAT(out[0].dims, ElementsAre(2, 2));
  }
}

// The indices of nonzero elements, and how many; refuses negative ones.
Status TestNonZero(HostCall& call) {
  const auto* x = static_cast<const float*>(call.inputs[0].data);
  auto* out = static_cast<int64_t*>(call.outputs[0].data);
  Ints found;
  for (int64_t i = 0; i < call.inputs[0].dims[0]; ++i) {
    if (x[i] < 0) return Invalid("a negative value");
    if (x[i] != 0) found.push_back(i);
  }
  const auto count = static_cast<int64_t>(found.size());
  if (call.outputs[0].allocate != nullptr) {
    out = static_cast<int64_t*>(call.outputs[0].allocate(call.outputs[0].context, count * 8));
  }
  std::copy(found.begin(), found.end(), out);
  call.sizes.push_back(count);
  return {};
}
const bool kRegistered = RegisterHost("TestNonZero", TestNonZero);

// y = x[NonZero(x)]; the indices in a buffer of their bound, or in one that the host kernel sizes.
std::string GatherPlan(const std::string& indices) {
  return R"(
    symbol {name="N" lo=1 hi=4096 input=0 dim=0}
    symbol {name="K" hi=4096}
    check {condition=ne($K, 5) message="five is right out"}
    buffer 0 {name="x" kind=input dtype=f32 index=0 dims=[$N] bytes=mul($N, 4)}
    buffer 1 {name="indices" dtype=i64 dims=[$K] )" +
         indices + R"( first=0 last=1}
    buffer 2 {name="y" kind=output dtype=f32 index=0 dims=[$K] bytes=mul($K, 4)}
    task 0 {kind=host name="nonzero" host="TestNonZero" args=[0] outs=[1] binds=[1]}
    task 1 {kind=launch name="gather" kernel=0 args=[0, 1, 2] grid=$K}
    input {name="x" dtype=f32 dims=[$N] buffer=0}
    output {name="y" dtype=f32 dims=[$K] buffer=2})";
}

TEST(ControlTest, NonZeroIntoGather) {
  for (const char* indices : {"kind=arena bytes=mul($N, 8)", "kind=pool bytes=mul($K, 8)"}) {
    const TestModel model = {
        GatherPlan(indices),
        {"for (int64_t i = begin; i < end; ++i) "
         "((float*)b[2])[i] = ((const float*)b[0])[((const int64_t*)b[1])[i]];"}};
    for (const int threads : {1, 2}) {
      auto run = NewRun(model.Load(threads));
      Floats x = {0, 3, 0, 4, 5};
      Tensor in[] = {On(x)}, out[] = {Tensor()};
      EXPECT_THAT(*run->OutputDims(in), ElementsAre(ElementsAre(-1)));
      ASSERT_EQ(run->Execute(in, out).message(), "");
      EXPECT_THAT(out[0].dims, ElementsAre(3));
      EXPECT_THAT(Values<float>(out[0]), ElementsAre(3, 4, 5));
      // The lent memory comes back as it is, and may be lent again.
      x = {0, 0, 0, 0, 0};
      ASSERT_EQ(run->Execute(in, out).message(), "");
      EXPECT_THAT(out[0].dims, ElementsAre(0));
      Floats large(3000);
      std::iota(large.begin(), large.end(), 0.0f);
      Tensor large_in[] = {On(large)};
      ASSERT_EQ(run->Execute(large_in, out).message(), "");
      EXPECT_EQ(Values<float>(out[0]), Floats(large.begin() + 1, large.end()));
      x = {1, 1, 1, 1, 1};
      EXPECT_EQ(run->Execute(in, out).message(), "task nonzero: five is right out");
      x = {1, -1, 1, 1, 1};
      EXPECT_EQ(run->Execute(in, out).message(), "task nonzero: a negative value");
      x = {1, 0, 0, 0, 9};
      ASSERT_EQ(run->Execute(in, out).message(), "");
      EXPECT_THAT(Values<float>(out[0]), ElementsAre(1, 9));
    }
  }
}

TEST(ControlTest, AJumpOverABindLeavesSizesUnknown) {
  const TestModel model = {
      R"(symbol {name="K" hi=10}
      buffer 0 {name="c" kind=input dtype=bool index=0 bytes=1}
      buffer 1 {name="y" kind=output dtype=f32 index=0 dims=[$K] bytes=mul($K, 4)}
      task 0 {kind=jump_unless args=[0] target=2}
      task 1 {kind=bind name="b" sizes=[3] binds=[0]}
      task 2 {kind=launch name="fill" kernel=0 args=[1] grid=$K}
      input {name="c" dtype=bool buffer=0}
      output {name="y" dtype=f32 dims=[$K] buffer=1})",
      {"for (int64_t i = begin; i < end; ++i) ((float*)b[0])[i] = i;"}};
  auto run = NewRun(model.Load());
  for (int round = 0; round < 2; ++round) {
    bool yes = true, no = false;
    Tensor out[] = {Tensor()}, take[] = {OnBool(&yes)}, skip[] = {OnBool(&no)};
    ASSERT_EQ(run->Execute(take, out).message(), "");
    EXPECT_THAT(Values<float>(out[0]), ElementsAre(0, 1, 2));
    EXPECT_THAT(run->Execute(skip, out).message(), HasSubstr("task fill: the size of y"));
  }
}

// Slots: strings go in, are copied, and come out.
TEST(ControlTest, ObjectsInSlots) {
  const TestModel model = {R"(plan {slots=2}
      buffer 0 {name="s" kind=slot dtype=string index=0}
      buffer 1 {name="t" kind=slot dtype=string index=1}
      task 0 {kind=host name="copy" host="Copy" args=[0] outs=[1]}
      input {name="s" dtype=string buffer=0}
      output {name="t" dtype=string buffer=1})",
                           {}};
  auto run = NewRun(model.Load());
  Object in_object, out_object;
  in_object.kind = Object::Kind::kTensor;
  in_object.dims = {2};
  in_object.strings = {"a", "b"};
  Tensor in[] = {{8, {}, &in_object, 0}}, out[] = {Tensor()};
  ASSERT_EQ(run->Execute(in, out).message(), "");
  EXPECT_THAT(static_cast<Object*>(out[0].data)->strings, ElementsAre("a", "b"));
  EXPECT_THAT(out[0].dims, ElementsAre(2));
  out[0] = {8, {}, &out_object, 0};
  ASSERT_EQ(run->Execute(in, out).message(), "");
  EXPECT_THAT(out_object.strings, ElementsAre("a", "b"));
  in[0].data = nullptr;
  EXPECT_THAT(run->Execute(in, out).message(), HasSubstr("no object"));
}

}  // namespace
}  // namespace ge::rt
