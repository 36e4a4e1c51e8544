// Pass: one function over a Graph that says whether it changed something. A pass cannot fail.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
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
  std::vector<std::string_view> needs, gives;  // properties, checked against the written order
  bool (*run)(Graph&, const Policy&, const PassServices&);
};

const Pass* FindPass(std::string_view name);
std::vector<const Pass*> AllPasses();  // sorted by name
bool RegisterPass(const Pass& pass);

// Whether in this order each pass finds the properties that it needs given by an earlier one.
Status CheckOrder(std::span<const std::string_view> names);

}  // namespace ge
