// For tests of emit/: kernels with their buffers, by the interpreter and by generated code of every
// compiler and chip at hand.
#pragma once

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/fp_state.h"
#include "emit/run_code_test.h"

namespace ge::emit {

struct Case {
  std::string name;
  tile::Kernel kernel;
  std::vector<TestBuffer> buffers;
  std::vector<int64_t> sizes;
  double tolerance = 0;     // relative; 0 = bit for bit
  DType out = DType::kF32;  // of the last buffer
};

template <class T>
void ExpectClose(const std::vector<T>& want, const std::vector<T>& got, double tolerance,
                 const std::string& name) {
  ASSERT_EQ(want.size(), got.size());
  int shown = 0;
  for (size_t i = 0; i < want.size() && shown < 5; ++i) {
    double w = static_cast<double>(want[i]), g = static_cast<double>(got[i]);
    bool same = std::memcmp(&want[i], &got[i], sizeof(T)) == 0 || (w != w && g != g) || w == g;
    if (w == 0 && g == 0 && std::signbit(w) != std::signbit(g)) same = tolerance > 0;
    if (same || (std::isfinite(w) && std::fabs(w - g) <= tolerance * (std::fabs(w) + 1e-30)))
      continue;
    ++shown;
    ADD_FAILURE() << name << " element " << i << ": want " << w << " got " << g;
  }
}

inline void Compare(const Case& c, const TestBuffer& want, const TestBuffer& got,
                    const std::string& name) {
  switch (c.out) {
    case DType::kF32: return ExpectClose(want.As<float>(), got.As<float>(), c.tolerance, name);
    case DType::kF64: return ExpectClose(want.As<double>(), got.As<double>(), c.tolerance, name);
    case DType::kI32: return ExpectClose(want.As<int32_t>(), got.As<int32_t>(), 0, name);
    case DType::kI64: return ExpectClose(want.As<int64_t>(), got.As<int64_t>(), 0, name);
    default: return ExpectClose(want.As<uint8_t>(), got.As<uint8_t>(), 0, name);
  }
}

inline void RunCases(std::vector<Case>& cases) {
  FpState state;
  std::vector<const tile::Kernel*> kernels;
  std::vector<std::vector<TestBuffer>> wanted;
  for (Case& c : cases) {
    CollectSizeSymbols(c.kernel);
    Status verified = Verify(c.kernel);
    ASSERT_TRUE(verified.ok()) << c.name << ": " << verified.message();
    kernels.push_back(&c.kernel);
    tile::Interpreter interpreter(c.kernel);
    wanted.push_back(CallKernel(tile::GeInterpretKernel, c.buffers, c.sizes,
                                interpreter.Grid(c.sizes.data()), 0, &interpreter));
  }
  for (const Target& target : TestTargets()) {
    CodeObject code = MustCompile(kernels, target);
    LoadedCode loaded(code.bytes);
    for (size_t i = 0; i < cases.size(); ++i) {
      const Case& c = cases[i];
      tile::Interpreter interpreter(c.kernel);
      int64_t scratch = 1 << 20;
      auto got = CallKernel(loaded.kernel(code.index[i]), c.buffers, c.sizes,
                            interpreter.Grid(c.sizes.data()), scratch, nullptr, 3);
      Compare(c, wanted[i].back(), got.back(), c.name + " " + target.soc + " " + target.compiler);
    }
  }
}

inline std::vector<float> Randoms(int64_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> d(-2, 2);
  std::vector<float> v(static_cast<size_t>(n));
  for (float& f : v) f = d(random);
  return v;
}

}  // namespace ge::emit
