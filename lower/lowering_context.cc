#include "lower/lowering_context.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "abi/convert.h"
#include "base/check.h"
#include "lower/cost.h"
#include "lower/pack.h"
#include "lower/scalar_constant.h"
#include "ops/window.h"

namespace ge {
namespace {

// Equal, or different only where an axis has one element.
bool SameIndex(const Index& a, const Index& b, const std::vector<Expr>& dims) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!(a[i] == b[i]) && !dims[i].IsConst(1) && !ProvablyEq(a[i], b[i])) return false;
  return true;
}

// Position of a constant index among the elements; -1 if something is symbolic or outside.
int64_t Position(const std::vector<Expr>& dims, const Index& idx) {
  int64_t position = 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (!dims[i].IsConst() || !idx[i].IsConst()) return -1;
    if (idx[i].value() < 0 || idx[i].value() >= dims[i].value()) return -1;
    position = position * dims[i].value() + idx[i].value();
  }
  return position;
}

// A coarse bound of a constant's elements, so that kernels that differ in constants only stay one.
double BoundOf(const Constant& c) {
  constexpr int64_t kMany = 1 << 16;
  if (c.dtype != DType::kF32 || c.Elements() > kMany) return tile::Buffer::kAny;
  double most = 0;
  for (int64_t i = 0; i < c.Elements(); ++i) {
    const double v = LoadElement<double>(c.dtype, c.bytes.data(), i);
    if (std::isnan(v)) return tile::Buffer::kAny;
    most = std::max(most, std::fabs(v));
  }
  for (double bound : {0x1p-4, 0x1p12, 0x1p64})
    if (most <= bound) return bound;
  return tile::Buffer::kAny;
}

}  // namespace

View BufferView(const Value& value) {
  return DenseView(value.type.layout, value.type.dims, value.halo);
}

LoweringContext::LoweringContext(const Graph& g, const Region& region, const SocSpec& soc,
                                 const std::set<ValueId>* args)
    : g_(g), region_(region), soc_(soc) {
  out_.kernel.name = region.name;
  b_ = std::make_unique<tile::Builder>(out_.kernel, g.arena());
  for (NodeId n : region.nodes) {
    inside_.insert(n);
    const Node& node = g.node(n);
    ValueId root = kNone;
    for (ValueId v : node.inputs) {
      if (v == kNone) continue;
      ++uses_inside_[v];
      if (auto it = root_.find(v); it != root_.end() && root == kNone) root = it->second;
    }
    for (ValueId v : node.outputs)
      if (v != kNone) root_[v] = n == region.anchor ? v : root;
  }
  const bool quantises = std::any_of(region.nodes.begin(), region.nodes.end(), [&](NodeId n) {
    return g.node(n).op->name == "QuantizeLinear";
  });
  auto declare = [&](ValueId v, bool written) {
    if (args && !args->contains(v)) return;
    if (arg_.contains(v) || g.value(v).kind != ValueKind::kTensor) return;
    const Value& value = g.value(v);
    KernelArg what{KernelArg::Kind::kValue, v};
    if (value.constant != kNone && !value.type.layout.IsNd()) {
      what = {KernelArg::Kind::kPack, static_cast<int>(packs_.size())};
      packs_.push_back(PackInLayout(v, value.type));
    }
    arg_[v] = AddArg(what, value.name, value.type.dtype, ViewOf(v).Elements(), written);
    if (const Constant* c = quantises ? g.ConstantOf(v) : nullptr)
      out_.kernel.buffers[arg_[v]].within = BoundOf(*c);
  };
  for (ValueId v : region.inputs) declare(v, false);
  for (ValueId v : region.outputs) declare(v, true);
}

int LoweringContext::ArgOf(ValueId v) {
  auto it = arg_.find(v);
  GE_CHECK(it != arg_.end(), "no kernel argument for value " + g_.value(v).name);
  used_.insert(v);
  return it->second;
}

int LoweringContext::AddArg(KernelArg what, std::string_view name, DType dtype, Expr elements,
                            bool written) {
  out_.args.push_back(what);
  return b_->Arg(name, dtype, elements, written);
}

const View& LoweringContext::ViewOf(ValueId v) {
  auto it = view_.find(v);
  if (it == view_.end()) it = view_.emplace(v, BufferView(g_.value(v))).first;
  return it->second;
}

bool LoweringContext::InRegion(ValueId v) const { return root_.contains(v); }

ValueId LoweringContext::RootOf(ValueId v) const {
  auto it = root_.find(v);
  return it == root_.end() ? kNone : it->second;
}

std::vector<ValueId> LoweringContext::OutputsOf(ValueId root) const {
  std::vector<ValueId> outputs;
  for (ValueId v : region_.outputs)
    if (RootOf(v) == root) outputs.push_back(v);
  return outputs;
}

bool LoweringContext::UsedInside(ValueId v) const { return uses_inside_.contains(v); }

tile::Val LoweringContext::Read(ValueId v, const Index& idx) {
  GE_CHECK(idx.size() == g_.value(v).type.dims.size(),
           "an index of the wrong rank for value " + g_.value(v).name);
  if (v == yielded_.value) {
    GE_CHECK(SameIndex(idx, yielded_.idx, g_.value(v).type.dims),
             "a fused consumer reads another element than the one yielded of " + g_.value(v).name);
    return yielded_.val;
  }
  if (tile::Val known = ReadKnown(v, idx); known.valid()) return known;
  if (!InRegion(v)) return ReadBuffer(v, idx);
  GE_CHECK(g_.value(v).producer != region_.anchor,
           "the anchor's output is read before it is yielded: " + g_.value(v).name);
  for (auto scope = memo_.rbegin(); scope != memo_.rend(); ++scope)
    for (const auto& [key, val] : *scope)
      if (key.first == v && key.second == idx) return val;
  bool outermost = memo_.empty();
  if (outermost) memo_.emplace_back();
  tile::Val val = Evaluate(v, idx);
  memo_.back().push_back({{v, idx}, val});
  if (outermost) memo_.clear();
  return val;
}

tile::Val LoweringContext::ReadBuffer(ValueId v, const Index& idx) {
  const View& view = ViewOf(v);
  std::optional<Expr> offset = WalkOffset(view, idx);
  return b_->Load(ArgOf(v), offset ? *offset : view.Offset(idx));
}

// Facts and splat constants; else an invalid Val.
tile::Val LoweringContext::ReadKnown(ValueId v, const Index& idx) {
  const Value& value = g_.value(v);
  DType type = ComputeType(value.type.dtype);
  if (value.elems && !value.elems->empty()) {
    const std::vector<Expr>& elems = *value.elems;
    auto element = [&](Expr e) {
      if (e.IsConst()) return b_->ConstInt(type, e.value());
      tile::Val i = b_->Index(e);
      return type == DType::kI64 ? i : b_->Cast(i, type);
    };
    if (std::all_of(elems.begin(), elems.end(), [&](Expr e) { return e == elems[0]; }))
      return element(elems[0]);
    int64_t position = Position(value.type.dims, idx);
    if (position >= 0 && position < static_cast<int64_t>(elems.size()))
      return element(elems[position]);
    if (value.constant == kNone && value.producer != kNone && !InRegion(v)) {
      // Never stored anywhere: choose among the elements.
      View view = DenseView(Nd(), value.type.dims);
      tile::Val at = b_->Index(view.Offset(idx));
      tile::Val chosen = element(elems.back());
      for (int64_t i = static_cast<int64_t>(elems.size()) - 2; i >= 0; --i)
        chosen = b_->Select(b_->Binary(tile::Op::kEq, at, b_->ConstInt(DType::kI64, i)),
                            element(elems[i]), chosen);
      return chosen;
    }
  }
  if (const Constant* constant = g_.ConstantOf(v))
    if (std::optional<Scalar> scalar = SplatOf(*constant))
      return scalar->is_integer ? b_->ConstInt(type, scalar->i) : b_->Const(type, scalar->f);
  return {};
}

tile::Val LoweringContext::Evaluate(ValueId v, const Index& idx) {
  const Value& value = g_.value(v);
  const Node& node = g_.node(value.producer);
  GE_CHECK(node.op->element != nullptr, "fused node " + node.name + " has no element function");
  int output = static_cast<int>(std::find(node.outputs.begin(), node.outputs.end(), v) -
                                node.outputs.begin());
  NodeLowering face(*this, value.producer);
  // A gather may open blocks (Reduce): what is computed inside must not be reused outside.
  bool opens = node.op->fusion != Fusion::kPointwise && node.op->fusion != Fusion::kView;
  if (opens) memo_.emplace_back();
  tile::Val val = node.op->element(face, output, idx);
  if (opens) memo_.pop_back();
  GE_CHECK(val.type() == ComputeType(value.type.dtype),
           "node " + node.name + " computes the wrong type");
  return b_->Narrow(val, value.type.dtype);
}

void LoweringContext::Yield(ValueId v, const Index& idx, tile::Val value) {
  if (v == kNone) return;
  std::vector<ValueId> outputs = OutputsOf(v);
  if (outputs.empty()) return;
  GE_CHECK(value.type() == ComputeType(g_.value(v).type.dtype),
           "node " + g_.node(g_.value(v).producer).name + " yields the wrong type");
  if (!(outputs.size() == 1 && outputs[0] == v))
    value = b_->Let(b_->Narrow(value, g_.value(v).type.dtype));
  Yielded before = std::exchange(yielded_, Yielded{v, idx, value});
  StoreAll(outputs, idx);
  yielded_ = std::move(before);
}

void LoweringContext::StoreAll(const std::vector<ValueId>& outputs, const Index& idx) {
  memo_.emplace_back();
  // Region outputs in the order of their nodes, so that one may be reused by the next.
  for (ValueId v : outputs) {
    tile::Val val;
    if (v == yielded_.value) {
      val = yielded_.val;
    } else {
      val = Read(v, idx);
      if (UsedInside(v) && outputs.size() > 1) {
        val = b_->Let(val);
        memo_.back().push_back({{v, idx}, val});
        std::rotate(memo_.back().begin(), memo_.back().end() - 1, memo_.back().end());
      }
    }
    Store(v, idx, val);
  }
  memo_.pop_back();
}

void LoweringContext::Store(ValueId v, const Index& idx, tile::Val value) {
  int arg = ArgOf(v);
  const View& view = ViewOf(v);
  // Halos may differ: coordinates are those of elements.
  bool along = walk && view.order == walk->view.order && view.modulo == walk->view.modulo &&
               view.dims == walk->view.dims && idx == walk->logical;
  if (!along) {
    if (walk && walk->interior.valid())
      b_->If(walk->interior, [&] { b_->Store(arg, view.Offset(idx), value); });
    else
      b_->Store(arg, view.Offset(idx), value);
    return;
  }
  if (view.extents == walk->view.extents && view.halo_lo == walk->view.halo_lo) covered_.insert(v);
  if (walk->interior.valid()) value = b_->Select(walk->interior, value, b_->Const(value.type(), 0));
  if (view.HasPadLanes()) {
    Expr offset = view.offset;
    for (size_t d = 0; d < view.order.size(); ++d)
      offset += (walk->physical[d] - walk->view.halo_lo[d] + view.halo_lo[d]) * view.strides[d];
    return b_->Store(arg, offset, value);
  }
  std::optional<Expr> offset = WalkOffset(view, idx);
  b_->Store(arg, offset ? *offset : view.Offset(idx), value);
}

void LoweringContext::StoreZero(const std::vector<ValueId>& outputs,
                                const std::vector<Expr>& physical) {
  for (ValueId v : outputs) {
    const View& view = ViewOf(v);
    if (!(view.order == walk->view.order && view.extents == walk->view.extents)) continue;
    Expr offset = view.offset;
    for (size_t i = 0; i < physical.size(); ++i) offset += physical[i] * view.strides[i];
    const Value& value = g_.value(v);
    const double fill = value.halo.empty() ? 0 : static_cast<double>(value.halo[0].fill);
    b_->Store(ArgOf(v), offset, b_->Const(ComputeType(value.type.dtype), fill));
  }
}

// Offset of idx in a view through the walk's own coordinates; nullopt where idx does not follow it.
std::optional<Expr> LoweringContext::WalkOffset(const View& view, const Index& idx) const {
  if (!walk) return std::nullopt;
  const Walk& w = *walk;
  int shift = static_cast<int>(w.logical.size()) - static_cast<int>(idx.size());
  if (shift < 0) return std::nullopt;
  int n = static_cast<int>(view.order.size());
  constexpr int kOne = -1, kOther = -2;
  std::vector<int> match(n, kOne);  // dim of the walk; kOne: coordinate 0; kOther: from idx
  bool any = false;
  for (int d = 0; d < n; ++d) {
    int axis = view.order[d].axis;
    if (view.dims[axis].IsConst(1)) continue;
    match[d] = kOther;
    if (!(idx[axis] == w.logical[axis + shift]) || !(view.dims[axis] == w.view.dims[axis + shift]))
      continue;
    for (size_t j = 0; j < w.view.order.size() && match[d] == kOther; ++j)
      if (w.view.order[j] == LayoutDim{axis + shift, view.order[d].tile} &&
          w.view.modulo[j] == view.modulo[d])
        match[d] = static_cast<int>(j);
    any |= match[d] >= 0;
  }
  if (!any) return std::nullopt;
  // A tiled axis follows the walk with all its dims or with none.
  for (int d = 0; d < n; ++d)
    for (int e = 0; e < n; ++e)
      if (match[e] == kOther && view.order[e].axis == view.order[d].axis) match[d] = kOther;
  std::vector<Expr> elsewhere = view.Physical(idx);
  Expr offset = view.offset;
  for (int d = 0; d < n;) {
    if (match[d] < 0) {
      offset += (match[d] == kOne ? Expr(view.halo_lo[d]) : elsewhere[d]) * view.strides[d];
      ++d;
      continue;
    }
    const Walk::Group* group = nullptr;
    for (const Walk::Group& candidate : w.groups)
      if (candidate.first == match[d]) group = &candidate;
    // The dims of a group that have more than one element, in order.
    if (group) {
      int last = d, j = group->first;
      bool whole = true;
      for (int e = d; j <= group->last && whole; ++j) {
        if (w.view.extents[j].IsConst(1)) continue;
        while (e < n && match[e] < 0 && view.extents[e].IsConst(1)) ++e;
        whole = e < n && match[e] == j && view.extents[e] == w.view.extents[j];
        last = e++;
      }
      if (whole) {
        offset += group->flat * view.strides[last];
        d = last + 1;
        continue;
      }
    }
    Expr coordinate = w.physical[match[d]] - w.view.halo_lo[match[d]] + view.halo_lo[d];
    offset += coordinate * view.strides[d];
    ++d;
  }
  return offset;
}

LoweredKernel LoweringContext::Finish(std::string schedule) {
  tile::CollectSizeSymbols(out_.kernel);
  out_.grid = out_.kernel.Grid();
  KernelCost cost = EstimateCost(out_.kernel, soc_);
  out_.flops = cost.flops;
  out_.bytes = cost.bytes;
  // Weights come from memory in every run.
  double weights = 0;
  for (size_t i = 0; i < out_.args.size(); ++i) {
    const tile::Buffer& buffer = out_.kernel.buffers[i];
    if (out_.args[i].kind == KernelArg::Kind::kPack)
      weights += static_cast<double>(BytesFor(buffer.dtype, HintValue(buffer.elements)));
  }
  out_.cost_ns = std::max(cost.ns, weights / soc_.dram_gb_per_s);
  out_.tiles = cost.tiles, out_.on_chip_bytes = cost.on_chip_bytes;
  out_.schedule = std::move(schedule);
  return std::move(out_);
}

tile::Val NodeLowering::Load(int input, const Index& idx) {
  return context_.Read(node.inputs[input], idx);
}

namespace {

// Does the halo of the value that a convolution reads hold its pads?
bool HaloHoldsPads(const Graph& g, const Node& n) {
  const Value& x = g.value(n.inputs[0]);
  if (n.op->name != "Conv" || x.halo.empty() || x.type.rank() < 3) return false;
  auto window = ForwardWindow(n, Tail(x.type.dims, 2), Tail(g.value(n.inputs[1]).type.dims, 2));
  if (!window.ok()) return false;
  for (int i = 0; i < window->rank(); ++i) {
    int64_t lo = 0, hi = 0;
    for (const Halo& halo : x.halo)
      if (halo.axis == 2 + i) lo = halo.lo, hi = halo.hi;
    if (!ProvablyLe(window->pad_lo[i], lo) || !ProvablyLe(window->pad_hi[i], hi)) return false;
  }
  return true;
}

}  // namespace

// Padding that lies in memory needs no comparison.
tile::Val NodeLowering::LoadOr(int input, const Index& idx, tile::Val otherwise) {
  const tile::ValueNode& value = b.kernel().values[otherwise.id];
  bool zero = value.op == tile::Op::kConst && value.f == 0 && value.i == 0;
  ValueId v = node.inputs[input];
  if (input == 0 && zero && !context_.InRegion(v) && HaloHoldsPads(graph, node))
    return context_.ReadBuffer(v, idx);
  return Lowering::LoadOr(input, idx, otherwise);
}

void NodeLowering::Yield(int output, const Index& idx, tile::Val value) {
  if (output < static_cast<int>(node.outputs.size()))
    context_.Yield(node.outputs[output], idx, value);
}

void NodeLowering::ForEach(const std::vector<Expr>& extents, bool vector,
                           const std::function<void(const Index&)>& body) {
  GE_CHECK(loops_ != nullptr, "ForEach outside a lowering: node " + node.name);
  loops_(extents, vector, body);
}

}  // namespace ge
