// Loading: map, check, load the code, look up host kernels. Nothing is computed from weights.
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "rt/cpu.h"
#include "rt/state.h"

namespace ge::rt {
namespace {

Status LoadKernels(Model::State* m, const LoadOptions& options) {
  const om::Plan& plan = m->plan();
  const bool native = !m->file.code.empty();
  GE_TRY(om::CheckPlan(plan, static_cast<int64_t>(m->file.weights.size()),
                       native ? static_cast<int64_t>(plan.kernels.size()) : 0));
  if (native) {
    GE_TRY(CheckCpu(m->file.cpu_features));
    GE_ASSIGN(m->code, CodeObject::Load(m->file.code, plan.kernels.size()));
  }
  for (size_t i = 0; i < plan.kernels.size(); ++i) {
    const om::Kernel& kernel = plan.kernels[i];
    LoadOptions::TextKernel loaded{native ? m->code.kernels()[i] : nullptr, nullptr};
    if (loaded.fn == nullptr) {
      if (!options.text_kernel) {
        return Unsupported(
            "kernel " + kernel.name +
            " is TileIR text, which this runtime cannot run (the file was compiled without a "
            "C compiler; ge run interprets it)");
      }
      auto made = options.text_kernel(kernel.text);
      if (!made.ok()) return std::move(made).In("kernel " + kernel.name).status();
      loaded = std::move(made).value();
    }
    m->kernels.push_back(std::move(loaded));
  }
  return {};
}

bool VerifyWeights(const LoadOptions& options) {
  const char* verify = std::getenv("GE_VERIFY");
  return options.verify_weights || (verify != nullptr && std::string_view(verify) == "weights");
}

Result<std::shared_ptr<const Model>> Build(std::unique_ptr<Model::State> m,
                                           std::span<const std::byte> bytes,
                                           const LoadOptions& options) {
  GE_ASSIGN(m->file, om::ReadOm(bytes, VerifyWeights(options)));
  if (!m->file.external.empty()) {
    GE_TRY(m->external.Map(m->file.external, options, VerifyWeights(options)));
    m->file.weights = m->external.bytes();
  }
  GE_TRY(LoadKernels(m.get(), options));
  m->pool = ThreadPool::Shared(options.threads > 0 ? options.threads : AvailableCpus());
  GE_TRY(Prepare(m.get()));
  return std::shared_ptr<const Model>(std::make_shared<Model>(std::move(m)));
}

}  // namespace

Result<std::shared_ptr<const Model>> Model::Load(const std::string& path,
                                                 const LoadOptions& options) {
  auto state = std::make_unique<State>();
  GE_ASSIGN(state->map, FileMap::Open(path));
  const auto bytes = state->map.bytes();
  LoadOptions located = options;
  if (located.weight_dir.empty()) {
    const size_t slash = path.rfind('/');
    located.weight_dir = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  }
  return Build(std::move(state), bytes, located).In(path);
}

Result<std::shared_ptr<const Model>> Model::LoadFromMemory(const void* data, int64_t bytes,
                                                           const LoadOptions& options) {
  if (data == nullptr || bytes < 0) return Invalid("no model in memory");
  // A copy: weights must be aligned, and the caller may free its memory.
  auto state = std::make_unique<State>();
  GE_TRY(state->copy.Grow(bytes, 0));
  std::memcpy(state->copy.data(), data, static_cast<size_t>(bytes));
  const std::span<const std::byte> span(state->copy.data(), static_cast<size_t>(bytes));
  return Build(std::move(state), span, options).In("model in memory");
}

Model::Model(std::unique_ptr<State> state) : state_(std::move(state)) {}
Model::~Model() = default;
const om::Plan& Model::plan() const { return state_->plan(); }
int64_t Model::weight_bytes() const { return static_cast<int64_t>(state_->file.weights.size()); }
std::string_view Model::description() const { return state_->file.description; }
int Model::threads() const { return state_->pool->size(); }
int64_t Model::work_bytes() const { return state_->work_bytes; }

}  // namespace ge::rt
