// Pass: one function over a Graph that says whether it changed something. A pass cannot fail.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ir/policy.h"

namespace ge {

// What passes may call but not see: provided by driver/.
struct PassServices {
  // Values of a node's outputs from constant inputs; empty if it cannot. Small constants by the
  // interpreter, large ones by generated code.
  std::function<std::vector<Constant>(const Graph&, const Node&)> evaluate;
};

struct Pass {
  std::string_view name;
  std::vector<std::string_view> needs, gives;   // properties, checked against the written order
  bool (*run)(Graph&, const Policy&, const PassServices&);
};

const Pass* FindPass(std::string_view name);
std::vector<const Pass*> AllPasses();
bool RegisterPass(const Pass& pass);

}  // namespace ge
