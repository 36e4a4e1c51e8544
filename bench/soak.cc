// Many at once: several models, each loaded with one thread and with two, each with some contexts,
// all running at the same time on one pool for a while. Every result must have the bits of a run
// alone; contexts and models are made anew in between; memory must be flat once every context was
// made anew. Where that takes longer than a sixth of the time, memory is printed, not judged.
//   soak [--seconds N] [--contexts N] MODEL.om ...
// Prints the runs a second of all together: instances of one thread are the throughput mode.
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "bench/inputs.h"

namespace ge::rt {
namespace {

constexpr int kShapes = 4, kContextRuns = 50, kModelRuns = 400;

using Bytes = std::vector<std::vector<std::byte>>;

// Inputs of one shape and what they give.
struct Example {
  std::vector<Tensor> inputs;
  Bytes data, want;
};

std::vector<int64_t> SymbolsOf(const om::Plan& plan, int shape) {
  std::vector<int64_t> values;
  for (const om::Symbol& s : plan.symbols) {
    const int64_t step = std::max<int64_t>(s.multiple_of, 1);
    const int64_t lo = (std::max<int64_t>(s.lo, 1) + step - 1) / step * step;
    values.push_back(s.input < 0 ? om::kNoSize : std::min(s.hi, lo + shape * step * 3));
  }
  return values;
}

Result<std::shared_ptr<const Model>> Load(const std::string& path, int threads) {
  LoadOptions options;
  options.threads = threads;
  return Model::Load(path, options);
}

Result<std::vector<Example>> Examples(const std::string& path) {
  GE_ASSIGN(auto model, Load(path, 1));
  std::vector<Example> all(kShapes);
  for (int i = 0; i < kShapes; ++i) {
    Example& e = all[static_cast<size_t>(i)];
    e.data = InputBytes(model->plan(), SymbolsOf(model->plan(), i), &e.inputs,
                        static_cast<unsigned>(i) + 1);
    GE_ASSIGN(auto run, Run::Create(model));
    GE_ASSIGN(e.want, Results(*run, e.inputs, model->plan().outputs.size()));
  }
  return all;
}

// What all contexts are told and tell.
struct Clock {
  std::atomic<bool> stop{false};
  std::atomic<int> renewed{0};  // contexts that were made anew
  double anew_s = 0;            // the longest that a context lives; a model four times that
};

// One context's life: runs until told to stop. Gives the number of runs.
Result<int64_t> Live(const std::string& path, int threads, const std::vector<Example>& examples,
                     unsigned seed, Clock& clock) {
  using Time = std::chrono::steady_clock;
  const auto life = std::chrono::duration<double>(clock.anew_s);
  std::mt19937 random(seed);
  std::shared_ptr<const Model> model;
  std::unique_ptr<Run> run;
  Time::time_point of_model, of_run;
  int64_t runs = 0, contexts = 0;
  for (; !clock.stop.load(std::memory_order_relaxed); ++runs) {
    const Time::time_point now = Time::now();
    const bool anew = runs % kModelRuns == 0 || now - of_model > 4 * life;
    if (anew) {
      GE_ASSIGN(model, Load(path, threads));
      of_model = now;
    }
    if (anew || runs % kContextRuns == 0 || now - of_run > life) {
      GE_ASSIGN(run, Run::Create(model));
      of_run = now;
      if (++contexts == 2) ++clock.renewed;
    }
    const Example& e = examples[random() % examples.size()];
    GE_ASSIGN(const Bytes got, Results(*run, e.inputs, model->plan().outputs.size()));
    if (got != e.want)
      return Error(Code::kInternal, path + ": a result differs from that of a run alone");
  }
  return runs;
}

struct Options {
  double seconds = 180;
  int contexts = 2;
  std::vector<std::string> models;
};

Status Soak(const Options& o) {
  std::vector<std::vector<Example>> examples;
  for (const std::string& path : o.models) {
    GE_ASSIGN(auto of_model, Examples(path));
    examples.push_back(std::move(of_model));
  }
  Clock clock;
  clock.anew_s = o.seconds / 24;
  std::atomic<int64_t> runs{0};
  const size_t count = o.models.size() * 2 * static_cast<size_t>(o.contexts);
  std::vector<Status> ends(count);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      const size_t m = i % o.models.size();
      const int workers = 1 + static_cast<int>(i / o.models.size() % 2);
      auto lived = Live(o.models[m], workers, examples[m], static_cast<unsigned>(i), clock);
      if (lived.ok())
        runs += *lived;
      else
        ends[i] = lived.status();
    });
  }
  double memory[3];  // when warm, in the middle, at the end: the most of some looks
  bool warm = false;
  for (double& mb : memory) {
    constexpr int kLooks = 20;
    mb = 0;
    for (int k = 0; k < kLooks; ++k) {
      if (&mb == memory && k == kLooks / 2) warm = clock.renewed == static_cast<int>(count);
      std::this_thread::sleep_for(std::chrono::duration<double>(o.seconds / 3 / kLooks));
      if (k >= kLooks / 2) mb = std::max(mb, ResidentMb());
    }
  }
  clock.stop = true;
  for (std::thread& t : threads) t.join();
  for (const Status& end : ends) GE_TRY(end);
  std::printf(
      "%zu models, %zu contexts: %lld runs in %.0f s (%.0f a second), all right; memory %.1f MB, "
      "%.1f MB, %.1f MB%s\n",
      o.models.size(), count, static_cast<long long>(runs.load()), o.seconds,
      static_cast<double>(runs.load()) / o.seconds, memory[0], memory[1], memory[2],
      warm ? "" : " (not judged: too short for these models)");
  if (warm && memory[2] > memory[0] * 1.05 + 4) return Error(Code::kInternal, "memory grows");
  return {};
}

}  // namespace
}  // namespace ge::rt

int main(int argc, char** argv) {
  mallopt(M_MMAP_THRESHOLD, 128 << 10);  // fixed: results that are compared are given back at once
  ge::rt::Options o;
  bool known = true;
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    if (arg == "--seconds" && i + 1 < argc)
      o.seconds = std::atof(argv[++i]);
    else if (arg == "--contexts" && i + 1 < argc)
      o.contexts = std::atoi(argv[++i]);
    else
      o.models.emplace_back(arg), known &= !arg.starts_with('-');
  }
  if (!known || o.models.empty() || o.seconds <= 0 || o.contexts < 1) {
    const bool asked = argc == 2 && std::string_view(argv[1]) == "--help";
    std::fprintf(asked ? stdout : stderr,
                 "usage: soak [--seconds N] [--contexts N] MODEL.om ...\n");
    return asked ? 0 : 1;
  }
  const ge::Status status = ge::rt::Soak(o);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
