// Dumps: what the tasks of a model read and write, as files (docs/acl.md). A model is dumped if the
// configuration that was in force when it was loaded says so, until that configuration ends.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "api/acl/include/acl/acl.h"
#include "api/acl/json.h"
#include "rt/runtime.h"

namespace ge::acl {

// Makes the member "dump" of a configuration the one in force; ACL_ERROR_INVALID_DUMP_CONFIG.
aclError StartDump(const Json& config, const char* function);
void StopDump();

// Called around each task of a run of the model (rt::Run::Watch); empty if it is not dumped.
std::function<void(const rt::Run&, size_t task, bool done)> DumperOf(const rt::Model& model,
                                                                     uint32_t id, const char* path);
// A run failed: writes the model's inputs if the configuration asks for dumps of exceptions.
void DumpFailure(const rt::Model& model, uint32_t id, std::span<const rt::Tensor> inputs);

// Operator and name of each task of the plan, as the description has them; "" for what has none.
std::vector<std::pair<std::string, std::string>> TaskNames(const om::Plan& plan,
                                                           const Json& description);

}  // namespace ge::acl
