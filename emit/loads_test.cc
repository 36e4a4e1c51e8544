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
