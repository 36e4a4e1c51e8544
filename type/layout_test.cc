// Layouts: offsets are a bijection into the dense buffer, Logical undoes Physical, text reads back.
#include "type/layout.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "type/tensor_type.h"

namespace ge {
namespace {

// Visits every index of the box [lo, hi).
void ForEach(const std::vector<int64_t>& lo, const std::vector<int64_t>& hi,
             const std::function<void(const std::vector<Expr>&)>& body) {
  for (size_t i = 0; i < lo.size(); ++i) {
    if (lo[i] >= hi[i]) return;
  }
  std::vector<int64_t> at = lo;
  for (;;) {
    body(std::vector<Expr>(at.begin(), at.end()));
    size_t d = at.size();
    while (d > 0 && ++at[d - 1] == hi[d - 1]) {
      at[d - 1] = lo[d - 1];
      --d;
    }
    if (d == 0) return;
  }
}

void ExpectBijection(const Layout& layout, const std::vector<Expr>& dims,
                     const std::vector<Halo>& halo) {
  const View v = DenseView(layout, dims, halo);
  std::vector<int64_t> lo(dims.size(), 0), hi;
  for (Expr d : dims) hi.push_back(d.value());
  for (const Halo& h : halo) {
    lo[h.axis] -= h.lo;
    hi[h.axis] += h.hi;
  }
  std::set<int64_t> seen;
  ForEach(lo, hi, [&](const std::vector<Expr>& index) {
    const Expr offset = v.Offset(index);
    ASSERT_TRUE(offset.IsConst());
    ASSERT_GE(offset.value(), 0);
    ASSERT_LT(offset.value(), v.Elements().value());
    ASSERT_TRUE(seen.insert(offset.value()).second) << ToString(layout);
    ASSERT_EQ(v.Logical(v.Physical(index)), index);
  });
  if (!v.HasPadLanes()) {
    EXPECT_EQ(static_cast<int64_t>(seen.size()), v.Elements().value());
  }
}

TEST(Layout, OffsetsAreABijection) {
  std::mt19937 random(3);
  for (int i = 0; i < 60; ++i) {
    const int rank = 3 + static_cast<int>(random() % 3);
    std::vector<Expr> dims;
    for (int k = 0; k < rank; ++k) dims.emplace_back(1 + static_cast<int64_t>(random() % 5));
    std::vector<Halo> halo;
    if (random() % 2) halo.push_back({2, 1, 2});
    ExpectBijection(Nd(), dims, halo);
    ExpectBijection(ChannelsLast(rank), dims, halo);
    ExpectBijection(Nc1hwc0(rank, 2), dims, halo);
    ExpectBijection(Nc1hwc0(rank, 4), dims, halo);
  }
  ExpectBijection(*ParseLayout("[1:12 0:1 1:4 1:1]"), {3, 29}, {});
}

TEST(Layout, SymbolicOffsetsSimplify) {
  ExprArena arena;
  const Expr h = arena.Symbol("H"), w = arena.Symbol("W");
  const View v = DenseView(Nc1hwc0(4, 16), {1, 64, h, w}, {{2, 1, 1}, {3, 1, 1}});
  const Expr c1 = arena.Symbol("c1", {.extent = 4}), c0 = arena.Symbol("c0", {.extent = 16});
  const Expr y = arena.Symbol("y", {.extent = h}), x = arena.Symbol("x", {.extent = w});
  const Expr want = ((c1 * (h + 2) + y + 1) * (w + 2) + x + 1) * 16 + c0;
  EXPECT_EQ(v.Offset({0, c1 * 16 + c0, y, x}), want);
  EXPECT_EQ(v.Elements(), (h + 2) * (w + 2) * 64);
  EXPECT_FALSE(v.HasPadLanes());
  EXPECT_TRUE(v.HasHalo());
  const View nd = DenseView(Nd(), {h, w});
  EXPECT_EQ(nd.Offset({y, x}), y * w + x);
}

TEST(Layout, TextReadsBack) {
  for (const Layout& l : {Nd(), ChannelsLast(3), ChannelsLast(4), ChannelsLast(5), Nc1hwc0(3, 8),
                          Nc1hwc0(4, 16), Nc1hwc0(5, 16), Layout{{{1, 1}, {0, 1}}}}) {
    auto back = ParseLayout(ToString(l));
    ASSERT_TRUE(back.ok()) << ToString(l);
    EXPECT_EQ(*back, l);
  }
  EXPECT_EQ(ToString(Nc1hwc0(4, 16)), "nc1hwc0:16");
  for (const char* bad : {"", "[]", "[0:2]", "[0:1 0:1]", "[0:3 0:2 0:1]", "nc1hwc0", "nc1hwc0:0",
                          "[-1:1]", "[0:1", "what"}) {
    EXPECT_FALSE(ParseLayout(bad).ok()) << bad;
  }
}

TEST(TensorType, TextReadsBack) {
  ExprArena arena;
  for (const char* text : {"f32[]", "i64[3]", "f32[2,seq,768]", "f32[1,64,56,56]{nc1hwc0:16}",
                           "bf16[batch,floordiv(w + 1, 2)]", "string[\"a b\"]"}) {
    auto t = ParseTensorType(text, arena);
    ASSERT_TRUE(t.ok()) << text << t.status().message();
    EXPECT_EQ(ToString(*t), text);
  }
  for (const char* bad :
       {"f32", "f33[1]", "f32[1,]", "f32[2]{nhwc}", "f32[1] x", "f32[2,3]{[0:1]}"}) {
    EXPECT_FALSE(ParseTensorType(bad, arena).ok()) << bad;
  }
}

TEST(DType, NamesReadBack) {
  for (int i = 0; i <= 26; ++i) {
    const DType t = static_cast<DType>(i);
    EXPECT_EQ(ParseDType(Name(t)), t);
  }
  EXPECT_EQ(BytesFor(DType::kI4, 3), 2);
  EXPECT_EQ(BytesFor(DType::kU2, 5), 2);
  EXPECT_EQ(BytesFor(DType::kC128, 2), 32);
  EXPECT_EQ(BitWidth(static_cast<DType>(200)), 0);
}

}  // namespace
}  // namespace ge
