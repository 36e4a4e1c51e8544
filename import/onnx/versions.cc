// Upgrades, one function per kind of change, one table that says which operator needs which.
//
//   Squeeze(x) {axes=[0]}   (before 13)   =>   Squeeze(x, const i64[1] {0})
//   Softmax(x) {axis=1}     (before 13)   =>   Reshape(Softmax(Flatten(x, 1), -1), dims of x)
#include "import/onnx/versions.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "ir/opdef.h"

namespace ge::onnx {

namespace {

struct Upgrading {
  NodeDraft& d;
  int64_t version;
  Emitter& e;
  std::vector<ValueId>& results;

  bool Has(std::string_view attr) const { return d.attrs.find(attr) != d.attrs.end(); }
  template <class T>
  T Get(std::string_view attr, T otherwise) const {
    auto it = d.attrs.find(attr);
    const T* v = it == d.attrs.end() ? nullptr : std::get_if<T>(&it->second);
    return v ? *v : otherwise;
  }
  void Drop(std::string_view attr) {
    if (auto it = d.attrs.find(attr); it != d.attrs.end()) d.attrs.erase(it);
  }
  bool HasInput(size_t i) const { return i < d.inputs.size() && d.inputs[i] != kNone; }
  const TensorType& In(size_t i) const { return e.graph().value(d.inputs[i]).type; }
  void SetInput(size_t i, ValueId v) {
    if (d.inputs.size() <= i) d.inputs.resize(i + 1, kNone);
    d.inputs[i] = v;
  }
  bool WantsOutput(size_t o) const { return o < d.outputs.size() && !d.outputs[o].empty(); }
  // A scalar of the type of input 0.
  Result<ValueId> Scalar(float x) {
    const ValueId c = e.graph().AddConstant(d.name + ".scalar", MakeConstant(DType::kF32, {}, &x));
    const DType to = In(0).dtype;
    if (to == DType::kF32) return c;
    return e.One(d.name, "Cast", {c}, {{"to", static_cast<int64_t>(to)}});
  }
  // Attribute `attr` (integers) becomes input i.
  void IntsToInput(std::string_view attr, size_t i) {
    if (!Has(attr)) return;
    SetInput(i, e.Ints(fmt::format("{}.{}", d.name, attr), Get<std::vector<int64_t>>(attr, {})));
    Drop(attr);
  }
};

using Step = Status (*)(Upgrading&);

Status AxesToInput(Upgrading& u) {
  u.IntsToInput("axes", 1);
  return Status();
}

Status Slice1(Upgrading& u) {
  const auto starts = u.Get<std::vector<int64_t>>("starts", {});
  std::vector<int64_t> axes(starts.size());
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int64_t>(i);
  if (!u.Has("axes")) u.d.attrs["axes"] = axes;
  u.IntsToInput("starts", 1);
  u.IntsToInput("ends", 2);
  u.IntsToInput("axes", 3);
  return Status();
}

Status TopK1(Upgrading& u) {
  u.SetInput(1, u.e.Ints(u.d.name + ".k", {u.Get<int64_t>("k", 0)}));
  u.Drop("k");
  return Status();
}

Status Pad2(Upgrading& u) {
  if (!u.Has("pads") && u.Has("paddings")) u.d.attrs["pads"] = u.d.attrs["paddings"];
  u.Drop("paddings");
  u.IntsToInput("pads", 1);
  if (u.HasInput(0) && u.Get<float>("value", 0) != 0) {
    GE_ASSIGN(const ValueId value, u.Scalar(u.Get<float>("value", 0)));
    u.SetInput(2, value);
  }
  u.Drop("value");
  return Status();
}

Status Clip6(Upgrading& u) {
  if (!u.HasInput(0)) return Status();
  const char* names[] = {"min", "max"};
  for (size_t i = 0; i < 2; ++i) {
    if (!u.Has(names[i])) continue;
    GE_ASSIGN(const ValueId v, u.Scalar(u.Get<float>(names[i], 0)));
    u.SetInput(i + 1, v);
    u.Drop(names[i]);
  }
  return Status();
}

Status Split2(Upgrading& u) {
  u.IntsToInput("split", 1);
  return Status();
}

Status SplitOutputs(Upgrading& u) {
  if (!u.HasInput(1)) u.d.attrs["num_outputs"] = static_cast<int64_t>(u.d.outputs.size());
  return Status();
}

// The tensor was seen as a matrix: dims before `axis` by dims from `axis` on.
Status FlattenedRows(Upgrading& u) {
  if (!u.HasInput(0)) return Status();
  const std::vector<Expr> dims = u.In(0).dims;
  const int64_t rank = static_cast<int64_t>(dims.size());
  int64_t axis = u.Get<int64_t>("axis", 1);
  if (axis < -rank || axis > rank || (rank > 0 && axis == rank))
    return Invalid(fmt::format("axis {} given, {} to {} allowed", axis, -rank, rank - 1));
  if (axis < 0) axis += rank;
  if (axis == rank - 1) {
    u.d.attrs["axis"] = int64_t{-1};
    return Status();
  }
  GE_ASSIGN(const ValueId flat, u.e.One(u.d.name, "Flatten", {u.d.inputs[0]}, {{"axis", axis}}));
  GE_ASSIGN(const ValueId rows, u.e.One(u.d.name, u.d.op, {flat}, {{"axis", int64_t{-1}}}));
  GE_ASSIGN(const ValueId shape, u.e.Sizes(u.d.name, dims));
  NodeDraft reshape;
  reshape.name = u.d.name;
  reshape.op = "Reshape";
  reshape.inputs = {rows, shape};
  reshape.attrs = Attrs{{"allowzero", int64_t{1}}};
  reshape.outputs = u.d.outputs;
  GE_ASSIGN(u.results, u.e.Emit(std::move(reshape)));
  return Status();
}

Status BatchNormalizationOld(Upgrading& u) {
  if (u.Get<int64_t>("spatial", 1) != 1)
    return Unsupported("BatchNormalization with spatial = 0 is not supported");
  if (u.version < 7 && u.Has("is_test") && u.Get<int64_t>("is_test", 0) == 0)
    return Unsupported("BatchNormalization in training mode is not supported before opset 14");
  for (size_t o = 1; o < u.d.outputs.size(); ++o)
    if (u.WantsOutput(o))
      return Unsupported("BatchNormalization in training mode is not supported before opset 14");
  u.d.outputs.resize(1);
  for (const char* attr : {"spatial", "is_test", "consumed_inputs"}) u.Drop(attr);
  return Status();
}

Status DropoutOld(Upgrading& u) {
  const float ratio = u.Get<float>("ratio", 0.5f);
  for (const char* attr : {"ratio", "is_test", "consumed_inputs"}) u.Drop(attr);
  u.SetInput(1,
             u.e.graph().AddConstant(u.d.name + ".ratio", MakeConstant(DType::kF32, {}, &ratio)));
  return Status();
}

void OldResizeAttrs(Upgrading& u) {
  u.d.attrs["coordinate_transformation_mode"] = std::string("asymmetric");
  u.d.attrs["nearest_mode"] = std::string("floor");
  if (u.Get<std::string>("mode", "nearest") == "bilinear")
    u.d.attrs["mode"] = std::string("linear");
}

Status Upsample(Upgrading& u) {
  u.d.op = "Resize";
  if (u.Has("scales")) {
    const auto scales = u.Get<std::vector<float>>("scales", {});
    u.SetInput(
        1, u.e.graph().AddConstant(
               u.d.name + ".scales",
               MakeConstant(DType::kF32, {static_cast<int64_t>(scales.size())}, scales.data())));
    u.Drop("scales");
  }
  if (!u.HasInput(1)) return Invalid("Upsample without scales");
  u.d.inputs = {u.d.inputs[0], kNone, u.d.inputs[1]};
  OldResizeAttrs(u);
  return Status();
}

Status Resize10(Upgrading& u) {
  if (!u.HasInput(1)) return Invalid("Resize without scales");
  u.d.inputs = {u.d.inputs[0], kNone, u.d.inputs[1]};
  OldResizeAttrs(u);
  return Status();
}

// Until 12 an unwanted roi or scales was written as an empty tensor; exporters still do.
Status ResizeEmptyInputs(Upgrading& u) {
  for (size_t i = 1; i < 3; ++i) {
    if (!u.HasInput(i)) continue;
    const TensorType& type = u.In(i);
    if (type.rank() == 1 && type.dims[0].IsConst(0)) u.d.inputs[i] = kNone;
  }
  return Status();
}

Status RenameScatter(Upgrading& u) {
  u.d.op = "ScatterElements";
  return Status();
}

// Scale and bias were one per group: repeat each for the channels of its group.
Status GroupNormalization18(Upgrading& u) {
  if (!u.HasInput(2) || u.In(0).rank() < 2) return Status();
  const int64_t groups = u.Get<int64_t>("num_groups", 0);
  if (groups < 1) return Invalid(fmt::format("num_groups is {}", groups));
  const Expr channels = u.In(0).dims[1];
  for (size_t i = 1; i <= 2; ++i) {
    GE_ASSIGN(
        const ValueId column,
        u.e.One(u.d.name, "Reshape", {u.d.inputs[i], u.e.Ints(u.d.name + ".column", {groups, 1})}));
    GE_ASSIGN(const ValueId shape, u.e.Sizes(u.d.name, {groups, FloorDiv(channels, groups)}));
    GE_ASSIGN(const ValueId wide, u.e.One(u.d.name, "Expand", {column, shape}));
    GE_ASSIGN(u.d.inputs[i],
              u.e.One(u.d.name, "Reshape", {wide, u.e.Ints(u.d.name + ".flat", {-1})}));
  }
  return Status();
}

Status Dft17(Upgrading& u) {
  const int64_t axis = u.Get<int64_t>("axis", 1);
  u.SetInput(2, u.e.graph().AddConstant(u.d.name + ".axis", MakeConstant(DType::kI64, {}, &axis)));
  u.Drop("axis");
  return Status();
}

Status GridSample16(Upgrading& u) {
  const std::string mode = u.Get<std::string>("mode", "bilinear");
  if (mode == "bilinear") u.d.attrs["mode"] = std::string("linear");
  if (mode == "bicubic") u.d.attrs["mode"] = std::string("cubic");
  return Status();
}

Status RoiAlign10(Upgrading& u) {
  u.d.attrs["coordinate_transformation_mode"] = std::string("output_half_pixel");
  return Status();
}

// Before 7: B matched a run of A's axes that began at `axis`.
Status OldBroadcast(Upgrading& u) {
  const bool broadcast = u.Get<int64_t>("broadcast", 0) != 0;
  const int64_t axis = u.Get<int64_t>("axis", -1);
  u.Drop("broadcast");
  u.Drop("axis");
  if (!broadcast || axis < 0 || !u.HasInput(1)) return Status();
  std::vector<Expr> dims = u.In(1).dims;
  const size_t rank = static_cast<size_t>(u.In(0).rank());
  if (axis + dims.size() > rank)
    return Invalid(fmt::format("broadcast of {} at axis {} of {}", ToString(u.In(1)), axis,
                               ToString(u.In(0))));
  dims.resize(rank - static_cast<size_t>(axis), 1);
  GE_ASSIGN(const ValueId shape, u.e.Sizes(u.d.name, dims));
  GE_ASSIGN(u.d.inputs[1], u.e.One(u.d.name, "Reshape", {u.d.inputs[1], shape}));
  return Status();
}

Status PRelu6(Upgrading& u) {
  if (!u.HasInput(1) || u.In(1).rank() != 1 || u.In(1).dims[0].IsConst(1) || u.In(0).rank() < 2)
    return Status();
  std::vector<Expr> dims(static_cast<size_t>(u.In(0).rank()) - 1, 1);
  dims[0] = u.In(1).dims[0];
  GE_ASSIGN(const ValueId shape, u.e.Sizes(u.d.name, dims));
  GE_ASSIGN(u.d.inputs[1], u.e.One(u.d.name, "Reshape", {u.d.inputs[1], shape}));
  return Status();
}

Status DropOldAttrs(Upgrading& u) {
  for (const char* attr : {"consumed_inputs", "broadcast", "is_test"}) u.Drop(attr);
  return Status();
}

Status Reshape1(Upgrading& u) {
  u.IntsToInput("shape", 1);
  u.Drop("consumed_inputs");
  return Status();
}

// Cast's `to` was a name.
Status Cast1(Upgrading& u) {
  static const std::map<std::string, DType, std::less<>> kNames = {
      {"FLOAT", DType::kF32},  {"UINT8", DType::kU8},   {"INT8", DType::kI8},
      {"UINT16", DType::kU16}, {"INT16", DType::kI16},  {"INT32", DType::kI32},
      {"INT64", DType::kI64},  {"BOOL", DType::kBool},  {"FLOAT16", DType::kF16},
      {"DOUBLE", DType::kF64}, {"UINT32", DType::kU32}, {"UINT64", DType::kU64}};
  const auto it = kNames.find(u.Get<std::string>("to", ""));
  if (it != kNames.end()) u.d.attrs["to"] = static_cast<int64_t>(it->second);
  return Status();
}

Status Refuse(Upgrading& u) {
  return Unsupported(fmt::format("{} of opset {} is not supported", u.d.op, u.version));
}

struct Rule {
  std::string_view op;
  int64_t before;  // applies to opsets below
  Step step;
};

// In the order in which they are applied.
constexpr int64_t kAlways = INT64_MAX;
const Rule kRules[] = {
    {"Add", 7, OldBroadcast},
    {"Sub", 7, OldBroadcast},
    {"Mul", 7, OldBroadcast},
    {"Div", 7, OldBroadcast},
    {"Pow", 7, OldBroadcast},
    {"And", 7, OldBroadcast},
    {"Or", 7, OldBroadcast},
    {"Xor", 7, OldBroadcast},
    {"Equal", 7, OldBroadcast},
    {"Less", 7, OldBroadcast},
    {"Greater", 7, OldBroadcast},
    {"PRelu", 7, PRelu6},
    {"Gemm", 7, DropOldAttrs},
    {"Reshape", 5, Reshape1},
    {"Cast", 6, Cast1},
    {"RNN", 7, DropOldAttrs},
    {"Upsample", 7, Refuse},
    {"Scan", 9, Refuse},
    {"BatchNormalization", 14, BatchNormalizationOld},
    {"Dropout", 12, DropoutOld},
    {"Upsample", kAlways, Upsample},
    {"Resize", 11, Resize10},
    {"Resize", kAlways, ResizeEmptyInputs},
    {"Slice", 10, Slice1},
    {"TopK", 10, TopK1},
    {"Pad", 11, Pad2},
    {"Clip", 11, Clip6},
    {"Squeeze", 13, AxesToInput},
    {"Unsqueeze", 13, AxesToInput},
    {"ReduceSum", 13, AxesToInput},
    {"ReduceMax", 18, AxesToInput},
    {"ReduceMin", 18, AxesToInput},
    {"ReduceMean", 18, AxesToInput},
    {"ReduceProd", 18, AxesToInput},
    {"ReduceL1", 18, AxesToInput},
    {"ReduceL2", 18, AxesToInput},
    {"ReduceLogSum", 18, AxesToInput},
    {"ReduceLogSumExp", 18, AxesToInput},
    {"ReduceSumSquare", 18, AxesToInput},
    {"Split", 13, Split2},
    {"Split", 18, SplitOutputs},
    {"Softmax", 13, FlattenedRows},
    {"LogSoftmax", 13, FlattenedRows},
    {"Hardmax", 13, FlattenedRows},
    {"Scatter", kAlways, RenameScatter},
    {"GroupNormalization", 21, GroupNormalization18},
    {"DFT", 20, Dft17},
    {"GridSample", 20, GridSample16},
    {"RoiAlign", 16, RoiAlign10},
};

}  // namespace

std::string_view NewestName(std::string_view op) {
  if (op == "Upsample") return "Resize";
  if (op == "Scatter") return "ScatterElements";
  return op;
}

Status Upgrade(NodeDraft& draft, int64_t version, Emitter& emitter, std::vector<ValueId>& results) {
  static const auto kByOp = [] {
    std::multimap<std::string_view, const Rule*> by_op;
    for (const Rule& r : kRules) by_op.emplace(r.op, &r);
    return by_op;
  }();
  Upgrading u{draft, version, emitter, results};
  if (version < 7) u.Drop("consumed_inputs");
  const std::string op = draft.op;
  const auto [begin, end] = kByOp.equal_range(op);
  for (auto it = begin; it != end && results.empty(); ++it)
    if (version < it->second->before) GE_TRY(it->second->step(u));
  return Status();
}

}  // namespace ge::onnx
