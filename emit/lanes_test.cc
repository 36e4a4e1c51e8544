// Vectors whose elements do not lie side by side, against the interpreter: strided loads of every
// storage type, indices in pieces, turned squares; whole vectors, tails and less than a vector.
#include <fmt/format.h>

#include <deque>
#include <functional>

#include "base/fp_state.h"
#include "emit/run_code_test.h"
#include "tile/builder.h"

namespace ge::emit {
namespace {

using tile::Builder;
using tile::Kernel;
using tile::LoopKind;
using tile::Val;

// Runs each kernel on `in` (bytes 0, 1, 2, ... of a pattern) by interpreter and generated code.
class LanesTest : public ::testing::Test {
 protected:
  // out[i] for the i of a vector loop of `count`, from `elements` of `type`.
  void Add(const std::string& name, DType type, int64_t elements, int64_t written,
           const std::function<void(Builder&, int in, int out)>& body) {
    Kernel& kernel = kernels_.emplace_back();
    Builder b(kernel, arena_);
    int in = b.Arg("x", type, elements, false), out = b.Arg("y", type, written, true);
    body(b, in, out);
    names_.push_back(name);
    std::vector<uint8_t> bytes(static_cast<size_t>(BytesFor(type, elements)));
    for (size_t i = 0; i < bytes.size(); ++i)  // no NaN in any type
      bytes[i] = type == DType::kBool ? i % 3 == 0 : static_cast<uint8_t>((i * 37 + i / 7) % 96);
    std::vector<uint8_t> zeros(static_cast<size_t>(BytesFor(type, written)));
    buffers_.push_back({TestBuffer::Of(bytes), TestBuffer::Of(zeros)});
  }

  void Run() {
    FpState state;
    std::vector<const Kernel*> pointers;
    for (Kernel& k : kernels_) pointers.push_back(&k);
    for (const Target& target : TestTargets()) {
      CodeObject code = MustCompile(pointers, target);
      LoadedCode loaded(code.bytes);
      for (size_t i = 0; i < kernels_.size(); ++i) {
        tile::Interpreter interpreter(kernels_[i]);
        auto want = CallKernel(tile::GeInterpretKernel, buffers_[i], {}, 1, 0, &interpreter).back();
        auto got = CallKernel(loaded.kernel(code.index[i]), buffers_[i], {}, 1, 1 << 16).back();
        EXPECT_EQ(want.bytes, got.bytes)
            << names_[i] << " " << target.soc << " " << target.compiler;
      }
    }
  }

  ExprArena arena_;
  std::deque<Kernel> kernels_;
  std::vector<std::string> names_;
  std::vector<std::vector<TestBuffer>> buffers_;
};

TEST_F(LanesTest, StridedLoads) {
  for (DType t : {DType::kU8, DType::kI8, DType::kU16, DType::kI16, DType::kI32, DType::kU32,
                  DType::kI64, DType::kF32, DType::kF64, DType::kBool, DType::kF16, DType::kBF16})
    for (int64_t step : {2, 3, 4, 5})
      for (int64_t count : {5, 16, 39})  // the last element is the buffer's last
        Add(fmt::format("{} by {}, {}", Name(t), step, count), t, (count - 1) * step + 1, count,
            [&](Builder& b, int in, int out) {
              b.For("i", count, LoopKind::kVector,
                    [&](Expr i) { b.Store(out, i, b.Load(in, i * step)); });
            });
  Run();
}

TEST_F(LanesTest, Pieces) {
  const std::vector<std::function<Expr(Expr)>> indices = {
      [](Expr i) { return Mod(i, 28); },              // tiles
      [](Expr i) { return Min(Max(i - 3, 0), 40); },  // edges
      [](Expr i) { return Max(2 - i, i - 2); },       // a mirror
      [](Expr i) { return Mod(i, 5) * 11 + FloorDiv(i, 5); },
      [](Expr i) { return Select(Lt(i, 20), i + 7, 26 - Min(i, 26)); },
      [](Expr i) { return Mod(i * 7 + 3, 64); }};
  for (size_t k = 0; k < indices.size(); ++k)
    for (DType t : {DType::kF32, DType::kI64, DType::kU8, DType::kI4})
      for (int64_t count : {7, 48, 55})
        Add(fmt::format("index {}, {}, {}", k, Name(t), count), t, 64, count,
            [&](Builder& b, int in, int out) {
              b.For("i", count, LoopKind::kVector,
                    [&](Expr i) { b.Store(out, i, b.Load(in, indices[k](i))); });
            });
  for (size_t k = 0; k < indices.size(); ++k)  // the index as a value
    Add(fmt::format("index {} as a value", k), DType::kI64, 1, 55, [&](Builder& b, int, int out) {
      b.For("i", 55, LoopKind::kVector, [&](Expr i) { b.Store(out, i, b.Index(indices[k](i))); });
    });
  Run();
}

TEST_F(LanesTest, Turned) {
  for (DType t : {DType::kF32, DType::kI32, DType::kU8, DType::kF16, DType::kBool, DType::kI64})
    for (auto [rows, columns] : std::vector<std::pair<int64_t, int64_t>>{
             {16, 16}, {32, 48}, {19, 33}, {8, 9}, {50, 3}, {3, 50}})
      Add(fmt::format("{} x {} of {}", rows, columns, Name(t)), t, rows * columns, rows * columns,
          [&, rows = rows, columns = columns](Builder& b, int in, int out) {
            b.For("r", rows, LoopKind::kSerial, [&](Expr r) {
              b.For("c", columns, LoopKind::kVector, [&](Expr c) {
                Val v = b.Load(in, c * rows + r);
                if (t == DType::kF32) v = v * 0.5 + b.Load(in, r * columns + c);
                b.Store(out, r * columns + c, v);
              });
            });
          });
  Run();
}

}  // namespace
}  // namespace ge::emit
