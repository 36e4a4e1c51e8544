// See byte_dots.h. The two forms of a dot, each as a graph of its own that shares the model:
//
//   bytes    QuantizeLinear(Mul(Cast(ConvInteger(x, w)), s))             x u8 -> u8
//   floats   DequantizeLinear(QuantizeLinear(Conv(x, w)))                x f32 -> f32
//
// that is, what lies between two dots is bytes or floats, and is rounded to bytes either way.
// Weights are of the dot's shape and of no meaning: nothing is computed.
#include "driver/byte_dots.h"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <set>

#include "base/check.h"
#include "fuse/fuse.h"
#include "ir/opdef.h"
#include "lower/lower.h"

namespace ge {
namespace {

// Operands of the dot, which is that of floats or what it is for quantised operands.
struct Operands {
  ValueId x = kNone, w = kNone;
  bool conv = false;
};

std::optional<Operands> OperandsOf(const Node& n) {
  const std::string& name = n.op->name;
  if (name == "Conv" || name == "ConvInteger") return Operands{n.inputs[0], n.inputs[1], true};
  if (name == "QLinearConv") return Operands{n.inputs[0], n.inputs[3], true};
  if (name == "MatMul" || name == "Gemm" || name == "MatMulInteger")
    return Operands{n.inputs[0], n.inputs[1], false};
  if (name == "QLinearMatMul") return Operands{n.inputs[0], n.inputs[3], false};
  return std::nullopt;
}

class Form {
 public:
  Form(const Graph& from, bool bytes) : bytes_(bytes) {
    g_.name = from.name;
    g_.model = from.model;
    kept_ = g_.model->constants.size();
  }
  ~Form() { g_.model->constants.resize(kept_); }

  double Cost(const Node& n, const Graph& from, const Operands& o, const SocSpec& soc,
              const Policy& policy) {
    Build(n, from, o);
    Policy quiet = policy;
    quiet.report = nullptr;
    quiet.floats_pay = nullptr;
    quiet.tiles.clear();
    AssignLayouts(g_, soc, quiet);
    double ns = 0;
    const RegionMap regions = FormRegions(g_, soc, quiet);
    for (const Region& r : regions.at(&g_)) {
      if (r.engine != Engine::kCube) continue;
      const Lowered lowered = LowerRegion(g_, r, soc, quiet);
      for (const LoweredKernel& k : lowered.kernels) ns += k.cost_ns;
    }
    return ns;
  }

 private:
  void Build(const Node& n, const Graph& from, const Operands& o) {
    TensorType x = from.value(o.x).type;
    x.dtype = bytes_ ? DType::kU8 : DType::kF32;
    std::vector<int64_t> w;
    for (const Expr& d : from.value(o.w).type.dims) w.push_back(d.value());
    if (n.op->name == "Gemm" && AttrOr<int64_t>(n, "transB", 0) != 0) std::swap(w[0], w[1]);
    const int64_t columns = o.conv ? w[0] : w.back();
    const ValueId in = g_.AddInput("x", x);
    const ValueId weights = Const(bytes_ ? DType::kI8 : DType::kF32, w);
    std::vector<int64_t> channels = {columns};
    if (o.conv) channels.resize(static_cast<size_t>(x.rank()) - 1, 1);
    const ValueId scale = Scalar(DType::kF32, 1), zero = Scalar(DType::kU8, 0);
    const std::string dot =
        o.conv ? (bytes_ ? "ConvInteger" : "Conv") : (bytes_ ? "MatMulInteger" : "MatMul");
    ValueId y = Op(dot, {in, weights}, n.attrs, o.conv);
    if (bytes_) {
      y = Op("Cast", {y}, {{"to", static_cast<int64_t>(DType::kF32)}});
      y = Op("Mul", {y, Const(DType::kF32, channels)});
    } else {
      y = Op("Add", {y, Const(DType::kF32, channels)});
    }
    y = Op("QuantizeLinear", {y, scale, zero});
    if (!bytes_) y = Op("DequantizeLinear", {y, scale, zero});
    g_.outputs = {y};
  }

  using Attributes = std::map<std::string, Attr, std::less<>>;
  ValueId Op(const std::string& name, std::vector<ValueId> inputs, const Attributes& attrs = {},
             bool window = true) {
    const NodeId id =
        g_.AddNode(*FindOp("", name), fmt::format("{}{}", name, g_.nodes.size()), inputs, 1);
    for (const auto& [key, value] : attrs) {
      if (window && key != "transB" && key != "transA") g_.node(id).attrs[key] = value;
    }
    GE_CHECK(Infer(g_, g_.node(id)).ok(), "a dot without its neighbours: " + name);
    return g_.node(id).outputs[0];
  }

  // Not of equal elements, which would count as one number.
  ValueId Const(DType type, const std::vector<int64_t>& dims) {
    int64_t elements = 1;
    for (int64_t d : dims) elements *= d;
    std::vector<std::byte> bytes(static_cast<size_t>(BytesFor(type, elements)));
    if (!bytes.empty()) bytes.back() = std::byte{1};
    return g_.AddConstant(fmt::format("c{}", g_.values.size()),
                          MakeConstant(type, dims, bytes.data()));
  }
  ValueId Scalar(DType type, int number) {
    const float f = static_cast<float>(number);
    const auto u = static_cast<uint8_t>(number);
    return g_.AddConstant(
        fmt::format("c{}", g_.values.size()),
        MakeConstant(type, {}, type == DType::kF32 ? static_cast<const void*>(&f) : &u));
  }

  Graph g_;
  size_t kept_ = 0;
  bool bytes_;
};

// What decides: chip and policy are the same for all.
std::string KeyOf(const Graph& g, const Node& n, const Operands& o) {
  std::string key = n.op->name;
  for (ValueId v : {o.x, o.w}) {
    key += " [";
    for (const Expr& d : g.value(v).type.dims) key += ToString(d) + " ";
    key += "]";
  }
  for (const auto& [name, attr] : n.attrs) {
    key += " " + name;
    if (const auto* i = std::get_if<int64_t>(&attr)) key += std::to_string(*i);
    if (const auto* s = std::get_if<std::string>(&attr)) key += *s;
    if (const auto* v = std::get_if<std::vector<int64_t>>(&attr))
      for (int64_t i : *v) key += fmt::format(",{}", i);
  }
  return key;
}

struct Decisions {
  std::map<std::string, std::pair<double, double>> ns;  // of bytes and of floats
  std::set<std::string> told;
};

}  // namespace

std::function<std::string(const Graph&, const Node&)> CompareByteDots(const SocSpec& soc,
                                                                      const Policy& policy) {
  return [&soc, &policy, known = std::make_shared<Decisions>()](const Graph& g,
                                                                const Node& n) -> std::string {
    const std::optional<Operands> o = OperandsOf(n);
    if (!o || g.value(o->x).type.rank() < 2 || !g.value(o->w).type.IsStatic()) return "";
    const std::string key = KeyOf(g, n, *o);
    auto at = known->ns.find(key);
    if (at == known->ns.end()) {
      const double bytes = Form(g, true).Cost(n, g, *o, soc, policy);
      const double floats = Form(g, false).Cost(n, g, *o, soc, policy);
      at = known->ns.emplace(key, std::pair(bytes, floats)).first;
    }
    const auto [bytes, floats] = at->second;
    const bool pays = floats > 0 && floats < bytes;
    const std::string estimates = fmt::format(
        "by the estimate {:.1f} us in bytes, {:.1f} us in floats", bytes / 1000, floats / 1000);
    if (policy.report && known->told.insert(n.name).second)
      policy.report(fmt::format("bytes: {}: {}: {}", n.name, estimates, pays ? "floats" : "bytes"));
    return pays ? estimates : "";
  };
}

}  // namespace ge
