// ge bench: time, load time and memory of a model.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <latch>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/file_map.h"
#include "base/thread_pool.h"
#include "om/file.h"
#include "soc/soc.h"
#include "tools/json_member.h"
#include "tools/numbers.h"
#include "tools/peak.h"
#include "tools/session.h"
#include "tools/verbs.h"

namespace ge {
namespace {

struct BenchOptions {
  std::string model, json;
  InputOptions inputs;
  std::vector<std::string> shapes;
  int threads = 0, warmup = 5, rounds = 50, per_kernel = 0, instances = 1;
  double seconds = 5;
};

constexpr int kProfiles = 7;

using Clock = std::chrono::steady_clock;
double Ms(Clock::time_point a, Clock::time_point b) {
  return std::chrono::duration<double, std::milli>(b - a).count();
}

// Not getrusage's: a process inherits that from whoever started it.
double PeakRssMb() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("VmHWM:")) return std::strtod(line.c_str() + 6, nullptr) / 1024;
  return 0;
}

// Operations and bytes of each task as the compiler counted them; empty records where it did not.
Result<nlohmann::json> TaskCounts(const std::string& model) {
  GE_ASSIGN(FileMap file, FileMap::Open(model));
  GE_ASSIGN(om::OmView view, om::ReadOm(file.bytes(), false));
  auto description = nlohmann::json::parse(view.description, nullptr, /*allow_exceptions=*/false);
  const auto tasks = description.find("tasks");
  return tasks == description.end() ? nlohmann::json() : *tasks;
}

// What all threads could do at best, measured on one of them now.
struct Limits {
  double gflops = 0, gb_per_s = 0;
  std::vector<std::pair<double, double>> caches;  // bytes, GB/s
};

Limits MeasureLimits(int threads) {
  const SocSpec soc = HostSoc();
  Limits limits{MeasureFmaPeak() * threads, MeasureReadRate(kMemoryBytes) * threads, {}};
  limits.caches.emplace_back(static_cast<double>(soc.l2_bytes * threads),
                             MeasureReadRate(soc.l2_bytes / 2) * threads);
  if (soc.l3_bytes > 0)
    limits.caches.emplace_back(static_cast<double>(soc.l3_bytes),
                               MeasureReadRate(soc.l3_bytes / 4) * threads);
  return limits;
}

// ns of a task that does this much at the FMA peak, or reads as much: each byte from the nearest
// cache that has room for it.
double RoofNs(const nlohmann::json& task, const Limits& limits) {
  const double bytes = MemberOr(task, "bytes", 0.0);
  double read = 0, ns = 0;
  for (const auto& [size, rate] : limits.caches) {
    const double upto = std::max(read, std::min(bytes, size));
    ns += (upto - read) / rate;
    read = upto;
  }
  ns += (bytes - read) / limits.gb_per_s;
  return std::max(MemberOr(task, "flops", 0.0) / limits.gflops, ns);
}

// Slowest first. Estimates and counts are for the hint sizes of a dynamic model.
void PrintProfile(const om::Plan& plan, const std::vector<int64_t>& ns, int count,
                  const nlohmann::json& counts, const Limits& limits) {
  std::vector<size_t> order(ns.size());
  for (size_t i = 0; i < ns.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return ns[a] > ns[b]; });
  std::printf("limits: %.0f GFLOP/s f32, %.1f GB/s from L2, %.1f GB/s from memory%s\n",
              limits.gflops, limits.caches[0].second, limits.gb_per_s,
              plan.symbols.empty() ? "" : "; estimates are for typical sizes");
  std::printf("%10s %20s %7s  task\n", "measured", "estimate, one worker", "of roof");
  for (size_t i = 0; i < order.size() && i < static_cast<size_t>(count); ++i) {
    const om::Task& t = plan.tasks[order[i]];
    const auto measured = static_cast<double>(ns[order[i]]);
    std::string roof = "-", schedule;
    const nlohmann::json& count_here = ElementOrNull(counts, order[i]);
    if (count_here.contains("flops")) {
      if (plan.symbols.empty() && measured > 0)
        roof = fmt::format("{:.0f} %", 100 * RoofNs(count_here, limits) / measured);
      schedule = MemberOr(count_here, "schedule", std::string());
    }
    std::printf("%8.1fus %18.1fus %7s  %s  %s\n", measured / 1e3, static_cast<double>(t.cost) / 1e3,
                roof.c_str(), t.name.c_str(), schedule.c_str());
  }
}

// How the estimates of a model's tasks compare with times on one thread: the sum of both, and of
// the ratios measured / estimate the geometric mean and what lies between the tenth and the
// ninetieth of a hundred. Tasks too short to measure do not count.
nlohmann::json EstimateQuality(const om::Plan& plan, const std::vector<int64_t>& ns) {
  constexpr int64_t kShortest = 2000;  // ns
  std::vector<double> ratios;
  double measured = 0, estimated = 0, logs = 0;
  for (size_t i = 0; i < ns.size(); ++i) {
    const int64_t cost = plan.tasks[i].cost;
    if (ns[i] < kShortest || cost <= 0) continue;
    measured += static_cast<double>(ns[i]), estimated += static_cast<double>(cost);
    ratios.push_back(static_cast<double>(ns[i]) / static_cast<double>(cost));
    logs += std::log(ratios.back());
  }
  if (ratios.empty()) return nullptr;
  std::sort(ratios.begin(), ratios.end());
  const size_t count = ratios.size();
  return {{"tasks", count},
          {"measured_ms", measured / 1e6},
          {"estimated_ms", estimated / 1e6},
          {"ratio", std::exp(logs / static_cast<double>(count))},
          {"ratio_10", ratios[count / 10]},
          {"ratio_90", ratios[count - 1 - count / 10]}};
}

struct Instance {
  std::unique_ptr<rt::Run> run;
  std::vector<double> ms;
  Clock::time_point end;
  Status status;
};

void Live(const BenchOptions& o, const std::vector<rt::Tensor>& inputs, size_t outputs,
          std::latch& start, Instance* instance) {
  const auto execute = [&] {
    std::vector<rt::Tensor> out(outputs);
    return instance->run->Execute(inputs, out);
  };
  for (int i = 0; i <= o.warmup && instance->status.ok(); ++i) instance->status = execute();
  start.arrive_and_wait();
  const auto begin = Clock::now();
  instance->end = begin;
  while (instance->status.ok() && static_cast<int>(instance->ms.size()) < o.rounds &&
         Ms(begin, instance->end) < o.seconds * 1000) {
    const auto a = Clock::now();
    instance->status = execute();
    instance->end = Clock::now();
    instance->ms.push_back(Ms(a, instance->end));
  }
}

// Contexts of one model, each on a thread of its own, all at once: runs a second, and how long one
// takes among the others.
Result<nlohmann::json> Throughput(const BenchOptions& o,
                                  const std::shared_ptr<const rt::Model>& model,
                                  const std::vector<rt::Tensor>& inputs) {
  std::vector<Instance> instances(static_cast<size_t>(o.instances));
  for (Instance& instance : instances) {
    GE_ASSIGN(instance.run, rt::Run::Create(model));
  }
  std::latch start(o.instances + 1);
  std::vector<std::thread> threads;
  for (Instance& instance : instances)
    threads.emplace_back([&] { Live(o, inputs, model->plan().outputs.size(), start, &instance); });
  start.arrive_and_wait();
  const auto begin = Clock::now();
  for (std::thread& t : threads) t.join();
  std::vector<double> ms;
  auto end = begin;
  for (const Instance& instance : instances) {
    GE_TRY(instance.status);
    ms.insert(ms.end(), instance.ms.begin(), instance.ms.end());
    end = std::max(end, instance.end);
  }
  std::sort(ms.begin(), ms.end());
  const double rate = static_cast<double>(ms.size()) / std::max(Ms(begin, end) / 1000, 1e-9);
  std::printf("instances %d of %d threads: %.1f runs a second, median %.3f ms, p99 %.3f ms\n",
              o.instances, model->threads(), rate, ms[ms.size() / 2],
              ms[std::min(ms.size() - 1, ms.size() * 99 / 100)]);
  return nlohmann::json{
      {"count", o.instances}, {"runs_per_second", rate}, {"median_ms", ms[ms.size() / 2]}};
}

// Milliseconds of each execution, sorted.
Result<std::vector<double>> Timed(const BenchOptions& o, const std::function<Status()>& execute) {
  for (int i = 0; i < o.warmup; ++i) GE_TRY(execute());
  std::vector<double> ms;
  const auto begin = Clock::now();
  while (ms.empty() ||
         (static_cast<int>(ms.size()) < o.rounds && Ms(begin, Clock::now()) < o.seconds * 1000)) {
    const auto a = Clock::now();
    GE_TRY(execute());
    ms.push_back(Ms(a, Clock::now()));
  }
  std::sort(ms.begin(), ms.end());
  return ms;
}

// Prints where the time goes, task by task; the machine's limits and what the estimates are worth
// go into `result`.
Status PerTask(const BenchOptions& o, const rt::Model& model, rt::Run& run,
               const std::function<Status()>& execute, nlohmann::json* result) {
  // The least of several runs: a task is short, and an interruption long.
  run.EnableProfile(true);
  std::vector<int64_t> ns;
  for (int i = 0; i < kProfiles; ++i) {
    GE_TRY(execute());
    const std::vector<int64_t>& now = run.profile();
    if (ns.empty()) ns = now;
    for (size_t t = 0; t < ns.size(); ++t) ns[t] = std::min(ns[t], now[t]);
  }
  GE_ASSIGN(const nlohmann::json counts, TaskCounts(o.model));
  const Limits limits = MeasureLimits(model.threads());
  PrintProfile(model.plan(), ns, o.per_kernel, counts, limits);
  (*result)["limit_gflops"] = limits.gflops;
  (*result)["limit_gb_per_s"] = limits.gb_per_s;
  (*result)["limit_cache_gb_per_s"] = limits.caches[0].second;
  if (!model.plan().symbols.empty() || model.threads() != 1) return {};
  const nlohmann::json quality = EstimateQuality(model.plan(), ns);
  if (quality.is_null()) return {};
  std::printf(
      "estimates: %.3f ms for %.3f measured; measured / estimate of %d tasks: geometric mean "
      "%.2f, 80 %% within %.2f to %.2f\n",
      quality["estimated_ms"].get<double>(), quality["measured_ms"].get<double>(),
      quality["tasks"].get<int>(), quality["ratio"].get<double>(),
      quality["ratio_10"].get<double>(), quality["ratio_90"].get<double>());
  (*result)["estimates"] = quality;
  return {};
}

Status WriteJson(const std::string& path, const nlohmann::json& result) {
  return WriteFile(path, result.dump(2) + "\n");
}

Status Bench(BenchOptions& o) {
  for (const std::string& s : o.shapes) {
    GE_ASSIGN(auto shape, ParseShapeOption(s));
    o.inputs.shapes[shape.first] = shape.second;
  }
  if (o.instances > 1 && o.threads == 0) o.threads = std::max(1, AvailableCpus() / o.instances);
  const auto t0 = Clock::now();
  GE_ASSIGN(auto model, LoadModel(o.model, o.threads));
  const auto t1 = Clock::now();
  GE_ASSIGN(std::vector<Array> arrays, BindInputs(*model, o.inputs));
  GE_ASSIGN(auto run, rt::Run::Create(model));
  std::vector<rt::Tensor> inputs = Tensors(arrays);
  std::vector<rt::Tensor> outputs(model->plan().outputs.size());
  const auto t2 = Clock::now();
  GE_TRY(Executed(run->Execute(inputs, outputs), *model, o.inputs));
  const auto t3 = Clock::now();
  const auto execute = [&] {
    for (rt::Tensor& t : outputs) t = rt::Tensor{};
    return run->Execute(inputs, outputs);
  };
  GE_ASSIGN(const std::vector<double> ms, Timed(o, execute));
  nlohmann::json result = {{"model", o.model},
                           {"threads", model->threads()},
                           {"rounds", ms.size()},
                           {"median_ms", ms[ms.size() / 2]},
                           {"min_ms", ms.front()},
                           {"p99_ms", ms[std::min(ms.size() - 1, ms.size() * 99 / 100)]},
                           {"load_ms", Ms(t0, t1)},
                           {"first_run_ms", Ms(t2, t3)},
                           {"peak_rss_mb", PeakRssMb()},  // before the buffers of MeasureLimits
                           {"arena_mb", run->stats().arena_bytes / 1e6},
                           {"weights_mb", model->weight_bytes() / 1e6}};
  if (o.per_kernel > 0) GE_TRY(PerTask(o, *model, *run, execute, &result));
  const auto number = [&](const char* name) { return result[name].get<double>(); };
  std::printf(
      "threads %d  rounds %zu  median %.3f ms  min %.3f ms  p99 %.3f ms  load %.2f ms  first run "
      "%.2f ms  peak %.1f MB\n",
      model->threads(), ms.size(), number("median_ms"), number("min_ms"), number("p99_ms"),
      number("load_ms"), number("first_run_ms"), number("peak_rss_mb"));
  if (o.instances > 1) {
    GE_ASSIGN(result["instances"], Throughput(o, model, inputs));
  }
  return o.json.empty() ? Status() : WriteJson(o.json, result);
}

}  // namespace

void AddBenchVerb(CLI::App& app, int& exit_code) {
  auto* verb = app.add_subcommand("bench", "measure a model; inputs that are not given are random");
  auto o = std::make_shared<BenchOptions>();
  verb->add_option("model", o->model, ".om file")->required();
  verb->add_option("--threads", o->threads, "workers (0 = CPUs available)")
      ->check(Between(0, kMostThreads));
  verb->add_option("--instances", o->instances,
                   "contexts at once, each with its own workers (CPUs / instances by default)")
      ->check(Between(1, kMostThreads));
  verb->add_option("--warmup", o->warmup, "executions before measuring")->check(AtLeast(0));
  verb->add_option("--rounds", o->rounds, "executions at most")->check(AtLeast(1));
  verb->add_option("--seconds", o->seconds, "time at most")->check(AboveZero());
  verb->add_option("--input", o->inputs.files, "as for ge run")->expected(1, 1 << 16);
  verb->add_option("--shape", o->shapes, "NAME:dims of a dynamic input that is random")
      ->expected(1, 1 << 16);
  verb->add_option("--per-kernel", o->per_kernel,
                   "print the N slowest tasks: time, estimate, fraction of the roofline")
      ->check(AtLeast(0));
  verb->add_option("--json", o->json, "write the figures to this file");
  verb->callback([o, &exit_code] { exit_code = ExitCode(Bench(*o), o->model); });
}

}  // namespace ge
