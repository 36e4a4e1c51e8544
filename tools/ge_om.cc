// ge om: looks into an .om file.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "base/file_map.h"
#include "emit/gates.h"
#include "om/file.h"
#include "om/live.h"
#include "om/size.h"
#include "rt/placement.h"
#include "tools/graph_export.h"
#include "tools/json_member.h"
#include "tools/session.h"
#include "tools/verbs.h"

namespace ge {
namespace {

struct OmOptions {
  std::string model;
  std::vector<std::string> shapes;
  bool plan = false, sections = false, sizes = false, verify = false, ir = false,
       description = false, spills = false, dot = false;
};

const char* SectionName(om::Section s) {
  switch (s) {
    case om::Section::kPlan: return "plan";
    case om::Section::kWeights: return "weights";
    case om::Section::kCode: return "code";
    case om::Section::kDescription: return "description";
    case om::Section::kIr: return "ir";
    case om::Section::kExternal: return "external";
  }
  return "unknown";
}

// What the runtime makes of it for one shape.
std::string PlacedText(const om::Plan& plan, const std::vector<int64_t>& symbols) {
  std::vector<rt::Placed> placed;
  for (const om::Buffer& b : plan.buffers) {
    const int64_t bytes = b.bytes < 0 ? om::kNoSize : om::EvalSize(plan, b.bytes, symbols);
    if (b.kind == om::BufferKind::kArena && b.alias < 0 && b.first >= 0 && bytes > 0)
      placed.push_back({b.first, b.last, bytes, b.offset});
  }
  return fmt::format("placed for each shape; for this one {} bytes, lower bound {} bytes",
                     rt::PlaceArena(&placed), om::ArenaLives(plan, symbols).Most());
}

std::string ArenaText(const om::OmView& v, const std::vector<int64_t>& symbols) {
  if (v.plan.arena_bytes < 0) {
    return symbols.empty() ? "placed for each shape" : PlacedText(v.plan, symbols);
  }
  std::string out = fmt::format("{} bytes, lower bound {} bytes", v.plan.arena_bytes,
                                om::ArenaLives(v.plan, {}).Most());
  const auto made = nlohmann::json::parse(v.description, nullptr, /*allow_exceptions=*/false);
  if (!made.is_object()) return out;
  const auto compare = [&](const char* key, const char* what) {
    const int64_t apart = MemberOr(made, key, int64_t{-1});
    if (apart <= 0) return;
    out += fmt::format(", {} bytes {} ({:.2f})", apart, what,
                       static_cast<double>(v.plan.arena_bytes) / static_cast<double>(apart));
  };
  compare("arena_unaliased", "without aliases");
  compare("arena_values", "without aliases and fusion");
  return out;
}

// The values that tasks of their own move out of the arena and back.
std::string SpilledText(const om::Plan& plan) {
  int values = 0;
  int64_t room = 0, moved = 0;
  for (const om::Buffer& b : plan.buffers) {
    if (b.kind != om::BufferKind::kStore) continue;
    ++values;
    room = std::max(room, b.offset + om::EvalSize(plan, b.bytes, {}));
  }
  for (const om::Task& t : plan.tasks)
    if (t.kind == om::TaskKind::kSpill || t.kind == om::TaskKind::kFetch)
      moved += om::EvalSize(plan, plan.buffers[static_cast<size_t>(t.outs[0])].bytes, {});
  return fmt::format("spilled values {}, backing store {} bytes, moved in each run {} bytes",
                     values, room, moved);
}

void PrintSizes(const om::OmView& v, const std::vector<int64_t>& symbols) {
  std::map<om::BufferKind, int> count;
  for (const om::Buffer& b : v.plan.buffers) ++count[b.kind];
  std::printf("model %s for %s\n", v.plan.model_name.c_str(), v.plan.chip.c_str());
  std::printf(
      "tasks %zu, kernels %zu, buffers %zu (arena %d, constants %d, pool %d), symbols %zu\n",
      v.plan.tasks.size(), v.plan.kernels.size(), v.plan.buffers.size(),
      count[om::BufferKind::kArena], count[om::BufferKind::kConst], count[om::BufferKind::kPool],
      v.plan.symbols.size());
  std::printf("weights %zu bytes, code %zu bytes, arena %s\n", v.weights.size(), v.code.size(),
              ArenaText(v, symbols).c_str());
  if (count[om::BufferKind::kStore] > 0) std::printf("%s\n", SpilledText(v.plan).c_str());
}

// The gate on the code of micro-kernels: what must not be there is an error.
Status ShowSpills(const om::OmView& v) {
  const std::string code(reinterpret_cast<const char*>(v.code.data()), v.code.size());
  GE_ASSIGN(const emit::MicroKernels found, emit::FindSpills(code));
  std::printf("%d loops of micro-kernels, %zu spills\n", found.loops, found.spills.size());
  if (found.spills.empty()) return {};
  return Error(Code::kInternal, fmt::format("a micro-kernel moves vectors through the stack:{}",
                                            found.spills.front()));
}

Status Show(OmOptions o) {
  GE_ASSIGN(FileMap file, FileMap::Open(o.model));
  GE_ASSIGN(om::OmView view, om::ReadOm(file.bytes(), o.verify));
  if (o.spills) return ShowSpills(view);
  if (o.dot) {
    std::printf("%s", DotText(view.plan).c_str());
    return {};
  }
  if (!o.plan && !o.sections && !o.ir && !o.description) o.sizes = o.sections = true;
  std::vector<int64_t> symbols;
  if (!o.shapes.empty()) {
    GE_ASSIGN(symbols, SymbolsFor(view.plan, o.shapes));
  }
  if (o.sizes) PrintSizes(view, symbols);
  if (o.sections)
    for (const auto& s : view.sections)
      std::printf("section %-12s offset %12lld  bytes %12lld  checksum %016llx\n",
                  SectionName(s.kind), static_cast<long long>(s.offset),
                  static_cast<long long>(s.bytes), static_cast<unsigned long long>(s.checksum));
  if (o.plan) std::printf("%s", om::ToString(view.plan).c_str());
  if (o.ir) std::printf("%.*s", static_cast<int>(view.ir_text.size()), view.ir_text.data());
  if (o.description)
    std::printf("%.*s\n", static_cast<int>(view.description.size()), view.description.data());
  if (o.verify) std::printf("all checksums match\n");
  return {};
}

}  // namespace

void AddOmVerb(CLI::App& app, int& exit_code) {
  auto* verb = app.add_subcommand("om", "look into an .om file");
  auto o = std::make_shared<OmOptions>();
  verb->add_option("model", o->model, ".om file")->required();
  verb->add_flag("--plan", o->plan, "the plan as text");
  verb->add_flag("--dot", o->dot, "the plan as a graph for Graphviz");
  verb->add_flag("--sizes", o->sizes, "counts and sizes");
  verb->add_option("--shape", o->shapes, "NAME:dims of a dynamic input: the arena for them")
      ->expected(1, 1 << 16);
  verb->add_flag("--sections", o->sections, "the section table");
  verb->add_flag("--ir", o->ir, "the optimised graph as text");
  verb->add_flag("--description", o->description, "how it was made, as JSON");
  verb->add_flag("--spills", o->spills, "look for spilled vectors in the code of micro-kernels");
  verb->add_flag("--verify", o->verify, "check the weights' checksum too");
  verb->callback([o, &exit_code] { exit_code = ExitCode(Show(*o), o->model); });
}

}  // namespace ge
