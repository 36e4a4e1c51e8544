// For tests of BrGemm: kernels against the interpreter, without spills and undefined symbols; and
// the kernel that the tests of grouped operands (pairs of bf16, fours of bytes) share.
#pragma once

#include <cstring>
#include <random>

#include "emit/gates.h"
#include "emit/run_code_test.h"
#include "rt/cpu.h"
#include "tile/builder.h"

namespace ge::emit {

constexpr const char* kEmulatedTiles = "sapphirerapids-emulated";

// Can this machine run what is compiled for the chip?
inline bool RunsHere(const char* soc) {
  return rt::CheckCpu(FindSoc(soc, nullptr).value().features).ok();
}

// TestTargets, the host itself and emulated tiles, with each compiler that is installed.
inline std::vector<Target> TestTargetsAndHost() {
  std::vector<Target> targets = TestTargets();
  for (const char* cc : {"clang-19", "gcc"}) {
    if (!FindCompiler(cc).ok()) continue;
    targets.push_back({"host", cc});
    if (RunsHere(kEmulatedTiles)) targets.push_back({kEmulatedTiles, cc});
  }
  return targets;
}

// Runs each kernel as code and in the interpreter on buffers that fill(buffer) makes;
// same(kernel, got, want) compares the last one. Then the gates: nothing undefined, no spill, and
// micro-kernels are seen if there are dots.
template <class Fill, class Same>
void ExpectLikeInterpreter(const std::vector<tile::Kernel>& kernels, const Target& target,
                           Fill fill, const Same& same, bool dots = true) {
  std::vector<const tile::Kernel*> pointers;
  for (const tile::Kernel& kernel : kernels) {
    ASSERT_TRUE(Verify(kernel).ok()) << Verify(kernel).message();
    pointers.push_back(&kernel);
  }
  const CodeObject code = MustCompile(pointers, target);
  const LoadedCode loaded(code.bytes);
  for (size_t i = 0; i < kernels.size(); ++i) {
    std::vector<TestBuffer> buffers;
    for (const tile::Buffer& buffer : kernels[i].buffers) buffers.push_back(fill(buffer));
    tile::Interpreter interpreter(kernels[i]);
    const auto want = CallKernel(tile::GeInterpretKernel, buffers, {}, 1, 0, &interpreter).back();
    const auto got = CallKernel(loaded.kernel(code.index[i]), buffers, {}, 1, 0).back();
    SCOPED_TRACE(target.soc + " " + target.compiler + " kernel " + std::to_string(i));
    ASSERT_NO_FATAL_FAILURE(same(i, got, want));
  }
  const auto undefined = UndefinedSymbols(code.bytes);
  if (!undefined.ok()) GTEST_SKIP() << undefined.status().message();
  EXPECT_TRUE(undefined->empty()) << undefined->front();
  const auto spills = FindSpills(code.bytes);
  ASSERT_TRUE(spills.ok()) << spills.status().message();
  if (target.soc == kEmulatedTiles) return;  // its products are calls
  EXPECT_EQ(spills->loops > 0, dots)
      << target.soc << " " << target.compiler << ": " << spills->loops << " micro-kernels seen";
  EXPECT_TRUE(spills->spills.empty())
      << target.soc << " " << target.compiler << ": " << spills->spills.size() << " spills, first "
      << spills->spills.front();
}

// Fills bf16 buffers with numbers between -1 and 1.
inline auto RandomPairs() {
  return [random = std::mt19937(1), uniform = std::uniform_real_distribution<float>(-1, 1)](
             const tile::Buffer& buffer) mutable {
    std::vector<uint16_t> data(
        static_cast<size_t>(BytesFor(buffer.dtype, buffer.elements.value())) / 2);
    for (uint16_t& x : data) {
      const float value = uniform(random);
      uint32_t bits = 0;
      std::memcpy(&bits, &value, 4);
      x = static_cast<uint16_t>(bits >> 16);
    }
    return TestBuffer::Of(data);
  };
}

// A tile of m rows and nv vectors of columns, the last `missing_columns` of them not stored; so
// many such below each other.
struct GroupedTile {
  int m, nv;
  int64_t k, missing_columns, blocks = 1;
  int line = 0;  // so many rows, then A's next lie 8 elements farther; 0: all lie evenly
};

// Y = sum of 3 batches of A B with B in groups of `group` depths; rows of A are `gap` longer than
// the batches need.
inline void BuildGrouped(tile::Kernel& kernel, ExprArena& arena, const GroupedTile& s, int lanes,
                         DType a_type, DType b_type, DType y_type, int group, int64_t gap,
                         bool signed_a = false) {
  tile::Builder b(kernel, arena);
  const int n = s.nv * lanes;
  const int64_t row = 3 * s.k + gap, valid = n - s.missing_columns;
  const int64_t jumps = s.line > 0 ? (s.m - 1) / s.line * 8 : 0;
  const int a = b.Arg("a", a_type, s.blocks * s.m * row + jumps, false);
  const int w = b.Arg("w", b_type, 3 * s.k * n, false);
  const int y = b.Arg("y", y_type, s.blocks * s.m * valid, true);
  tile::BrGemm g;
  const Expr batch = arena.Fresh("batch", {.lo = 0, .hi = 2, .extent = 3});
  g.m = s.m, g.n = n, g.n_valid = valid, g.k = s.k, g.k_group = group, g.batch = {{batch, 3}};
  g.a_buffer = a, g.a = batch * s.k, g.a_row = row, g.a_k = 1;
  g.b_buffer = w, g.b = batch * (s.k * n), g.b_k = n * group;
  g.prefetch = n * 3;
  g.signed_a = signed_a;
  auto block = [&](Expr t) {
    g.a = t * (s.m * row) + batch * s.k;
    if (s.line > 0) {
      g.row = arena.Fresh("row", {.lo = 0, .hi = s.m - 1, .extent = s.m});
      g.a = g.a + FloorDiv(g.row, s.line) * 8;
    }
    b.Gemm(g, [&](Expr r, Expr c, tile::Val acc) { b.Store(y, (t * s.m + r) * valid + c, acc); });
  };
  if (s.blocks == 1) return block(0);
  b.For("t", s.blocks, tile::LoopKind::kSerial, block);
}

}  // namespace ge::emit
