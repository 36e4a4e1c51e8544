// Vectors whose elements do not lie side by side: every second to fourth element of memory, squares
// of W vectors turned, and the one value to which the lanes of a vector combine.
//
// Strided loads touch nothing behind the last element that they return: the last of their vectors
// ends there.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "emit/prelude.h"

namespace ge::emit {

namespace {

// __builtin_shufflevector(a, b, f(0), f(1), ...)
std::string Shuffle(int w, const std::string& a, const std::string& b,
                    const std::function<int(int)>& f) {
  std::string text = "__builtin_shufflevector(" + a + ", " + b;
  for (int l = 0; l < w; ++l) text += ", " + std::to_string(f(l));
  return text + ")";
}

// Element l is that at l * step behind p. `tail`: only the first n.
std::string StridedLoad(int w, int bytes, int step, bool tail) {
  const std::string type = "vu" + std::to_string(8 * bytes);
  const int last = tail ? w * (step - 1) : (w - 1) * (step - 1);
  auto start = [&](int j) { return j + 1 < step ? w * j : last; };
  auto vector = [&](int j) {
    const std::string at = fmt::format("(const char*)p + {}", start(j) * bytes);
    if (!tail) return fmt::format("v_ld{}({})", bytes, at);
    return fmt::format("v_ld{}n({}, ge_max(0, ge_min(W, (n - 1) * {} + 1 - {})))", bytes, at, step,
                       start(j));
  };
  std::string text =
      fmt::format("FN {0} v_ld{1}{2}s{3}(const void* p{4}) {{\n  {0} r = {5};\n", type, bytes,
                  tail ? "n" : "", step, tail ? ", si64 n" : "", vector(0));
  for (int j = 1; j < step; ++j) {
    auto lane = [&](int l) {
      const int at = l * step;
      if (at >= start(j) && (at >= w * j || j + 1 == step))
        return w + std::min(at - start(j), w - 1);
      return j == 1 ? std::min(at, w - 1) : l;
    };
    text += fmt::format("  r = {};\n", Shuffle(w, "r", vector(j), lane));
  }
  return text + "  return r;\n}\n";
}

// q[r][l] becomes q[l][r]: squares of 1, 2, 4, ... change places with those across the diagonal.
std::string Turn(int w) {
  std::string text = "FN void v_turn(vu32* q) {\n  vu32 t;\n  vu32 ";
  for (int r = 0; r < w; ++r) text += fmt::format("{0}a{1} = q[{1}]", r ? ", " : "", r);
  text += ";\n";
  for (int d = 1; d < w; d *= 2) {
    for (int r = 0; r < w; ++r) {
      if (r & d) continue;
      const std::string a = fmt::format("a{}", r), b = fmt::format("a{}", r + d);
      text += fmt::format("  t = {};\n",
                          Shuffle(w, a, b, [&](int l) { return l & d ? w + l - d : l; }));
      text += fmt::format("  {} = {};\n  {} = t;\n", b,
                          Shuffle(w, a, b, [&](int l) { return l & d ? w + l : l + d; }), a);
    }
  }
  text += "  ";
  for (int r = 0; r < w; ++r) text += fmt::format("q[{0}] = a{0}; ", r);
  return text + "\n}\n";
}

// v_upper(x, h) has in lane l < h what x has in lane l + h.
std::string Upper(int w) {
  std::string text = "#define v_upper(x, h) (";
  for (int h = w / 2; h >= 1; h /= 2) {
    const std::string part = Shuffle(w, "x", "x", [&](int l) { return (l + h) % w; });
    text += h == 1 ? part + ")\n" : fmt::format("(h) == {} ? {} : ", h, part);
  }
  return text;
}

}  // namespace

std::string PreludeLanes(const SocSpec& soc) {
  const int w = soc.F32Lanes();
  std::string text = Turn(w) + Upper(w);
  for (int bytes : {1, 2, 4})
    for (int step = 2; step <= kMostStep; ++step) {
      text += StridedLoad(w, bytes, step, false);
      if (soc.masks) text += StridedLoad(w, bytes, step, true);
    }
  return text;
}

}  // namespace ge::emit
