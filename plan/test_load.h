// For tests: a finished plan, loaded with its kernels as text that is interpreted.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "om/file.h"
#include "plan/interpreted.h"
#include "plan/planner.h"

namespace ge {

inline Result<std::shared_ptr<const rt::Model>> LoadInterpreted(
    const Planned& planned, std::function<Status(std::byte*)> fill_weights, int threads) {
  om::OmContents contents;
  contents.plan = planned.plan;
  for (size_t i = 0; i < planned.kernels.size(); ++i) {
    contents.plan.kernels[i].hash = "text";
    contents.plan.kernels[i].text = tile::ToString(planned.kernels[i]->kernel, true);
  }
  contents.weight_bytes = planned.weight_bytes;
  contents.fill_weights = std::move(fill_weights);
  const std::string path = (std::filesystem::temp_directory_path() /
                            ("ge_plan_test_" + std::to_string(getpid()) + ".om"))
                               .string();
  GE_TRY(om::WriteOm(path, contents));
  rt::LoadOptions options;
  options.threads = threads;
  options.text_kernel = InterpretedKernel;
  auto model = rt::Model::Load(path, options);
  std::filesystem::remove(path);
  return model;
}

}  // namespace ge
