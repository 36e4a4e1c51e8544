// From a plan and the .om's description to what clients see: names, dims, sizes, gears.
#include <algorithm>

#include "api/acl/dtypes.h"
#include "api/acl/json.h"
#include "api/acl/model.h"
#include "api/acl/tensors.h"
#include "om/size.h"

namespace ge::acl {
namespace {

constexpr int64_t kUnbounded = int64_t{1} << 31;

// The name of the node that writes the output: the last task that does.
std::string WriterOf(const om::Plan& plan, int32_t buffer) {
  const auto root = [&](int32_t b) {
    const int32_t alias = plan.buffers[static_cast<size_t>(b)].alias;
    return alias < 0 ? b : alias;
  };
  std::string name;
  for (const om::Task& task : plan.tasks) {
    for (const int32_t out : task.outs)
      if (out >= 0 && root(out) == root(buffer)) name = task.name;
  }
  return name;
}

std::string Short(const std::string& name, const char* kind, size_t index) {
  if (name.size() < ACL_MAX_TENSOR_NAME_LEN) return name;
  return "acl_" + std::string(kind) + "_" + std::to_string(index) + "_" +
         std::to_string(std::hash<std::string>()(name));
}

ClientTensor MakeIo(const om::Plan& plan, const om::IoTensor& io, aclFormat format) {
  ClientTensor info;
  info.name = info.shown = io.name;
  info.type = static_cast<DType>(io.dtype);
  info.dtype = ToAcl(info.type);
  info.format = format;
  const std::vector<int64_t> unbound(plan.symbols.size(), om::kNoSize);
  for (const om::SizeRef dim : io.dims) {
    const int64_t value = om::EvalSize(plan, dim, unbound);
    info.dims.push_back(value < 0 ? -1 : value);
    std::pair<int64_t, int64_t> range(info.dims.back(), info.dims.back());
    if (value < 0) {
      range = {0, -1};
      const auto code = om::CodeOf(plan, dim);
      if (code.size() == 1 && code[0].op == om::SizeOp::kSymbol) {
        const om::Symbol& symbol = plan.symbols[static_cast<size_t>(code[0].value)];
        range = {symbol.lo, symbol.hi < kUnbounded ? symbol.hi : -1};
      }
    }
    info.range.push_back(range);
  }
  return info;
}

int64_t BytesOf(const ClientTensor& io, const std::vector<int64_t>& dims) {
  return std::max<int64_t>(0, TensorBytes(io.dtype, dims));
}

aclFormat FormatOf(const Json& description) {
  const std::string& name = description["input_format"].string;
  if (name == "NHWC") return ACL_FORMAT_NHWC;
  if (name == "ND") return ACL_FORMAT_ND;
  if (name == "NCDHW") return ACL_FORMAT_NCDHW;
  if (name == "NDHWC") return ACL_FORMAT_NDHWC;
  return ACL_FORMAT_NCHW;
}

void ReadGears(const Json& description, ClientModel* info) {
  const Json& gears = description["gears"];
  const std::string& mode = gears["mode"].string;
  info->gear_mode = mode == "batch"   ? GearMode::kBatch
                    : mode == "image" ? GearMode::kImage
                    : mode == "dims"  ? GearMode::kDims
                                      : GearMode::kNone;
  if (info->gear_mode == GearMode::kNone) return;
  for (const Json& gear : gears["values"].items) {
    auto& values = info->gears.emplace_back();
    if (gear.kind == Json::Kind::kNumber) values.push_back(static_cast<int64_t>(gear.number));
    for (const Json& v : gear.items) values.push_back(static_cast<int64_t>(v.number));
  }
}

// Sizes of inputs and outputs at the largest gear (or at the upper bounds).
Status SizeAtLargest(LoadedModel* model) {
  ClientModel& info = *model->info;
  std::vector<std::vector<std::vector<int64_t>>> points;
  for (const auto& gear : info.gears) {
    auto dims = DimsAt(info, info.gear_mode, gear);
    if (dims.empty()) return Error(Code::kDataLoss, "a gear of the model does not fit its inputs");
    points.push_back(std::move(dims));
  }
  if (info.gears.empty()) {
    auto& dims = points.emplace_back();
    for (const ClientTensor& io : info.inputs) {
      auto& at = dims.emplace_back();
      for (const auto& [lo, hi] : io.range) at.push_back(hi);
    }
  }
  for (const auto& point : points) {
    bool bounded = true;
    for (size_t i = 0; i < info.inputs.size(); ++i) {
      info.inputs[i].bytes = std::max(info.inputs[i].bytes, BytesOf(info.inputs[i], point[i]));
      for (const int64_t d : point[i]) bounded = bounded && d >= 0;
    }
    if (!bounded) continue;
    auto outputs = OutputDimsAt(model, point);
    if (!outputs.ok()) {
      // A gear must work; an upper bound need not (inputs may have to agree).
      if (!info.gears.empty()) return outputs.status();
      continue;
    }
    for (size_t i = 0; i < info.outputs.size(); ++i)
      info.outputs[i].bytes =
          std::max(info.outputs[i].bytes, BytesOf(info.outputs[i], (*outputs)[i]));
  }
  return {};
}

}  // namespace

std::vector<std::vector<int64_t>> DimsAt(const ClientModel& info, GearMode mode,
                                         const std::vector<int64_t>& values) {
  std::vector<std::vector<int64_t>> all;
  size_t next = 0;
  for (const ClientTensor& io : info.inputs) {
    auto& dims = all.emplace_back(io.dims);
    if (mode == GearMode::kImage) next = 0;
    for (int64_t& d : dims) {
      if (d >= 0) continue;
      const size_t at = mode == GearMode::kBatch ? 0 : next++;
      if (at >= values.size()) return {};
      d = values[at];
    }
  }
  const bool fits = mode == GearMode::kBatch   ? values.size() == 1
                    : mode == GearMode::kImage ? values.size() == 2
                                               : next == values.size();
  return fits ? all : std::vector<std::vector<int64_t>>();
}

Result<std::vector<std::vector<int64_t>>> OutputDimsAt(
    LoadedModel* model, const std::vector<std::vector<int64_t>>& input_dims) {
  GE_ASSIGN(std::unique_ptr<rt::Run> run, model->Take());
  std::vector<rt::Tensor> inputs;
  for (size_t i = 0; i < input_dims.size(); ++i) {
    rt::Tensor& t = inputs.emplace_back();
    t.dtype = static_cast<uint8_t>(model->info->inputs[i].type);
    t.dims = input_dims[i];
  }
  auto outputs = run->OutputDims(inputs);
  model->Return(std::move(run));
  return outputs;
}

Status Describe(LoadedModel* model) {
  const om::Plan& plan = model->model->plan();
  model->info = std::make_shared<ClientModel>();
  ClientModel& info = *model->info;
  info.name = plan.model_name;
  Json description;
  if (!model->model->description().empty()) {
    auto parsed = ParseJson(model->model->description());
    if (parsed.ok()) description = std::move(parsed).value();  // else: as if there were none
  }
  const aclFormat format = FormatOf(description);
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    ClientTensor io = MakeIo(plan, plan.inputs[i], format);
    io.short_name = Short(io.name, "input", i);
    info.dynamic = info.dynamic || std::count(io.dims.begin(), io.dims.end(), -1) > 0;
    if (io.name == ACL_DYNAMIC_AIPP_NAME) info.aipp_input = static_cast<int>(i);
    info.inputs.push_back(std::move(io));
  }
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    ClientTensor io = MakeIo(plan, plan.outputs[i], format);
    const std::string writer = WriterOf(plan, plan.outputs[i].buffer);
    if (!writer.empty()) io.shown = writer + ":0:" + io.name;
    io.short_name = Short(io.shown, "output", i);
    info.outputs.push_back(std::move(io));
  }
  for (const Json& aipp : description["aipp"].items)
    (aipp["mode"].string == "dynamic" ? info.dynamic_aipp : info.static_aipp)
        .push_back(static_cast<int>(aipp["input"].number));
  ReadGears(description, &info);
  return SizeAtLargest(model);
}

}  // namespace ge::acl
