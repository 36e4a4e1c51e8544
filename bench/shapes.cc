// Many shapes through one dynamic model: what a new shape costs before its first task runs, whether
// memory stays flat once the cache of shapes is full, and whether a Run that has seen them all
// gives the bits of a fresh one.
//   bench_shapes MODEL.om [--shapes N] [--runs M]
// Symbols that inputs bind take values from small to large, in a mixed order.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "bench/inputs.h"

namespace ge::rt {
namespace {

// Values of the symbols for the i-th shape; every combination is another one.
std::vector<int64_t> SymbolsOf(const om::Plan& plan, int64_t i) {
  std::vector<int64_t> values(plan.symbols.size(), om::kNoSize);
  bool first = true;
  const auto bound = [](const om::Symbol& s) { return s.input >= 0; };
  const int64_t each =
      std::count_if(plan.symbols.begin(), plan.symbols.end(), bound) > 1 ? 250 : 1000;
  for (size_t s = plan.symbols.size(); s-- > 0;) {
    const om::Symbol& symbol = plan.symbols[s];
    if (symbol.input < 0) continue;
    const int64_t step = std::max<int64_t>(symbol.multiple_of, 1);
    const int64_t lo = (std::max<int64_t>(symbol.lo, 1) + step - 1) / step * step;
    const int64_t hi = std::min<int64_t>(symbol.hi, lo + (each - 1) * step),
                  count = (hi - lo) / step + 1;
    // The last symbol changes fastest, in a mixed order.
    values[s] = lo + (first ? i * 97 % count : i / each % count) * step;
    if (first) first = false;
  }
  return values;
}

Status Measure(const std::string& path, int shapes, int runs) {
  LoadOptions options;
  options.threads = 1;
  GE_ASSIGN(auto model, Model::Load(path, options));
  const om::Plan& plan = model->plan();
  Run::State state(model);
  GE_TRY(state.Start(nullptr));
  std::vector<double> us;
  double full_mb = 0, most_mb = 0;
  for (int i = 0; i < shapes; ++i) {
    state.wanted_symbols = SymbolsOf(plan, i);
    const auto start = std::chrono::steady_clock::now();
    bool changed = false;
    GE_TRY(state.UseShape(&changed));
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    us.push_back(took.count());
    // The largest shapes have come by after the first quarter.
    if (i == shapes / 2) full_mb = ResidentMb();
    if (i > shapes / 2) most_mb = std::max(most_mb, ResidentMb());
  }
  std::sort(us.begin(), us.end());
  std::printf(
      "%s: %d shapes, a new shape costs %.1f us (median), %.1f us (99th of 100); "
      "%zu kept; memory %.2f MB when full, %.2f MB at most afterwards\n",
      plan.model_name.c_str(), shapes, us[us.size() / 2], us[us.size() * 99 / 100],
      state.shapes.size(), full_mb, most_mb);
  GE_ASSIGN(auto old, Run::Create(model));
  int wrong = 0;
  for (int i = 0; i < runs; ++i) {
    std::vector<Tensor> inputs;
    std::vector<int64_t> symbols = SymbolsOf(plan, i * (shapes / std::max(runs, 1)));
    const auto data = InputBytes(plan, symbols, &inputs);
    GE_ASSIGN(auto fresh, Run::Create(model));
    GE_ASSIGN(const auto a, Results(*old, inputs, plan.outputs.size()));
    GE_ASSIGN(const auto b, Results(*fresh, inputs, plan.outputs.size()));
    wrong += a != b;
  }
  std::printf("%d shapes run, %d differ from a fresh run\n", runs, wrong);
  const bool flat = most_mb <= full_mb * 1.02 + 1;
  if (!flat) return Error(Code::kInternal, "memory grows");
  return wrong == 0 ? Status() : Error(Code::kInternal, "results depend on earlier shapes");
}

}  // namespace
}  // namespace ge::rt

int main(int argc, char** argv) {
  int shapes = 1000, runs = 20;
  std::string path;
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    if (arg == "--shapes" && i + 1 < argc)
      shapes = std::atoi(argv[++i]);
    else if (arg == "--runs" && i + 1 < argc)
      runs = std::atoi(argv[++i]);
    else
      path = arg;
  }
  if (path.empty() || path.starts_with('-')) {
    const bool asked = argc == 2 && std::string_view(argv[1]) == "--help";
    std::fprintf(asked ? stdout : stderr, "usage: bench_shapes MODEL.om [--shapes N] [--runs M]\n");
    return asked ? 0 : 1;
  }
  const ge::Status status = ge::rt::Measure(path, shapes, runs);
  if (!status.ok()) std::fprintf(stderr, "%s: %s\n", path.c_str(), status.message().c_str());
  return status.ok() ? 0 : 1;
}
