// What compile.cc and memory_limit.cc share. Internal to driver/.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "driver/compile.h"
#include "plan/planner.h"

namespace ge {

// Everything of one model between import and the file. Not movable: Planned points into the rest.
struct Compilation {
  CompileRequest request;
  SocSpec soc;
  std::unique_ptr<Graph> graph;
  RegionMap regions;
  LoweredMap lowered;
  Planned planned;
  CompileReport report;
  std::string imported_text, ir_text;  // of the graph before and after the passes, for people
  std::vector<std::string> rewrites;   // what the passes report
  nlohmann::json details;              // members of the description
  // What brings the graph back from strips and recomputation, the latest last.
  std::vector<std::function<void()>> undo;
  bool choices_open = true;    // as the passes left the graph: not in strips yet
  std::set<std::string> used;  // lines of choices that are about a dot
  Status choice_fault;

  void Progress(const std::string& stage, double fraction) const {
    if (request.progress) request.progress(stage, fraction);
  }
  void Log(const std::string& line) const {
    if (request.log) request.log(line);
  }
};

// Regions, kernels and plan anew, for the graph and the policy as they are now.
Status PlanAgain(Compilation& c);

// What all tasks of a plan take in sum.
double PredictedNs(const Planned& planned);

// write_over.cc
Status UseWriteOver(Compilation& c);

// channel_parts.cc
Status UseChannelParts(Compilation& c);

// memory_limit.cc
Status UseLeanOrder(Compilation& c);
Status UseStrips(Compilation& c);
Status KeepLimit(Compilation& c);

}  // namespace ge
