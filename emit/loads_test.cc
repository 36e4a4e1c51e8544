// Emitted loads and stores of special forms against the interpreter: copies whose source lies the
// other way, axes of which only the run knows whether they are broadcast.
#include "emit/case_test.h"
#include "tile/builder.h"

namespace ge::emit {
namespace {

using tile::Builder;
using tile::LoopKind;

// Rows of a matrix plus a row, or one number, that are repeated: which is known at run time.
TEST(EmitLoads, BroadcastKnownAtRunTime) {
  ExprArena arena;
  std::vector<Case> cases;
  for (int64_t width : {1, 21}) {
    for (int64_t rows : {1, 3}) {
      Case c;
      c.name = "broadcast " + std::to_string(rows) + " x " + std::to_string(width);
      const Expr r = arena.Symbol("rows"), w = arena.Symbol("width");
      c.sizes = {rows, width};
      Builder b(c.kernel, arena);
      const int x = b.Arg("x", DType::kF32, 3 * 21, false);
      const int m = b.Arg("m", DType::kF32, r * w, false);
      const int y = b.Arg("y", DType::kF32, 3 * 21, true);
      b.For("i", 3, LoopKind::kSerial, [&](Expr i) {
        b.For("j", 21, LoopKind::kVector, [&](Expr j) {
          const Expr row = Select(Eq(r, 1), 0, i), column = Select(Eq(w, 1), 0, j);
          b.Store(y, i * 21 + j, b.Load(x, i * 21 + j) + b.Load(m, row * w + column));
        });
      });
      c.buffers = {TestBuffer::Of(Randoms(63, 1)), TestBuffer::Of(Randoms(rows * width, 2)),
                   TestBuffer::Of(std::vector<float>(63))};
      cases.push_back(std::move(c));
    }
  }
  RunCases(cases);
}

// Elements of a line of the kernel's own that data choose: rising slowly, fast, falling, anyhow.
TEST(EmitLoads, ChosenFromALine) {
  constexpr int64_t kLine = 75, kChosen = 57;
  ExprArena arena;
  std::vector<Case> cases;
  for (int way = 0; way < 6; ++way) {
    std::vector<int32_t> chosen;
    for (int64_t i = 0; i < kChosen; ++i) {
      const int64_t ways[] = {i / 2,         i * 4 / 3,     std::min(i * 3, kLine - 1),
                              kLine - 1 - i, i * i % kLine, i < 20 ? 74 - i % 2 : 0};
      chosen.push_back(static_cast<int32_t>(ways[way] % kLine));
    }
    Case c;
    c.name = "chosen " + std::to_string(way);
    Builder b(c.kernel, arena);
    const int x = b.Arg("x", DType::kF32, kLine, false);
    const int at = b.Arg("at", DType::kI32, kChosen, false);
    const int y = b.Arg("y", DType::kF32, kChosen, true);
    const int line = b.Alloc("line", DType::kF32, kLine);
    b.For("i", kLine, LoopKind::kVector, [&](Expr i) { b.Store(line, i, b.Load(x, i) + b.F(1)); });
    b.For("i", kChosen, LoopKind::kVector, [&](Expr i) {
      const Expr from = b.LetIndex(b.Cast(b.Load(at, i), DType::kI64), 0, kLine - 1, kLine);
      b.Store(y, i, b.Load(line, from));
    });
    c.buffers = {TestBuffer::Of(Randoms(kLine, 1)), TestBuffer::Of(chosen),
                 TestBuffer::Of(std::vector<float>(kChosen))};
    cases.push_back(std::move(c));
  }
  RunCases(cases);
}

// Columns that become rows, of any number, the last ones read several times.
TEST(EmitLoads, TurnedWithALastRowRepeated) {
  ExprArena arena;
  std::vector<Case> cases;
  for (int64_t rows : {3, 8, 16, 19, 48, 50}) {
    for (bool symbolic : {false, true}) {
      Case c;
      c.name = "turned " + std::to_string(rows) + (symbolic ? " symbolic" : "");
      const Expr n = symbolic ? arena.Symbol("rows") : Expr(rows);
      if (symbolic) c.sizes = {rows};
      Builder b(c.kernel, arena);
      const int x = b.Arg("x", DType::kF32, n * 32, false);
      const int y = b.Arg("y", DType::kF32, (n + 1) * 32, true);
      b.For("i", 32, LoopKind::kSerial, [&](Expr i) {
        b.For("j", n, LoopKind::kVector, [&](Expr j) {
          const Expr row = Min(j + 2, n - 1);
          b.Store(y, i * (n + 1) + j, b.Load(x, row * 32 + i) * b.Load(x, j) + b.Load(x, i));
        });
      });
      c.buffers = {TestBuffer::Of(Randoms(rows * 32, 1)),
                   TestBuffer::Of(std::vector<float>(static_cast<size_t>((rows + 1) * 32)))};
      cases.push_back(std::move(c));
    }
  }
  RunCases(cases);
}

}  // namespace
}  // namespace ge::emit
