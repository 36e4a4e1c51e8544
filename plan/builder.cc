// See builder.h.

#include "plan/builder.h"

#include <algorithm>

#include "base/check.h"
#include "fmt/format.h"
#include "type/layout.h"

namespace ge {
namespace {

om::SizeOp OpOf(ExprKind kind) {
  switch (kind) {
    case ExprKind::kConst: return om::SizeOp::kConst;
    case ExprKind::kSymbol: return om::SizeOp::kSymbol;
    case ExprKind::kAdd: return om::SizeOp::kAdd;
    case ExprKind::kMul: return om::SizeOp::kMul;
    case ExprKind::kFloorDiv: return om::SizeOp::kFloorDiv;
    case ExprKind::kMod: return om::SizeOp::kMod;
    case ExprKind::kMin: return om::SizeOp::kMin;
    case ExprKind::kMax: return om::SizeOp::kMax;
    case ExprKind::kSelect: return om::SizeOp::kSelect;
    case ExprKind::kLt: return om::SizeOp::kLt;
    case ExprKind::kLe: return om::SizeOp::kLe;
    case ExprKind::kEq: return om::SizeOp::kEq;
    case ExprKind::kNe: return om::SizeOp::kNe;
    case ExprKind::kAnd: return om::SizeOp::kAnd;
    case ExprKind::kOr: return om::SizeOp::kOr;
    case ExprKind::kNot: return om::SizeOp::kNot;
    case ExprKind::kInvalid: break;
  }
  GE_CHECK(false, "a size is invalid");
  return om::SizeOp::kConst;
}

bool IsSlot(const Value& v) {
  return v.kind != ValueKind::kTensor || v.type.dtype == DType::kString;
}

}  // namespace

Expr StorageBytes(const Value& v) {
  const Expr elements = DenseView(v.type.layout, v.type.dims, v.halo).Elements();
  const int bits = BitWidth(v.type.dtype);
  return bits % 8 == 0 ? elements * (bits / 8) : CeilDiv(elements * bits, 8);
}

int32_t PlanBuilder::SymbolIndex(Expr symbol) {
  auto [it, added] =
      symbols_.emplace(symbol.node(), static_cast<int32_t>(plan_.symbols.size()));
  if (added) {
    const SymbolFacts& f = symbol.node()->facts;
    plan_.symbols.push_back({symbol.node()->name, f.lo, f.hi, f.multiple_of});
    bound_.push_back(false);
  }
  return it->second;
}

// Operands in order, then the operator; an operator of n operands is applied n - 1 times. A Mod or
// Select has its operands in the order of the text form.
void PlanBuilder::EmitCode(Expr e) {
  if (e.IsConst()) {
    plan_.size_code.push_back({om::SizeOp::kConst, e.value()});
    return;
  }
  if (e.IsSymbol()) {
    plan_.size_code.push_back({om::SizeOp::kSymbol, SymbolIndex(e)});
    return;
  }
  const om::SizeOp op = OpOf(e.kind());
  const std::vector<Expr>& args = e.node()->args;
  const bool variadic = op != om::SizeOp::kSelect && op != om::SizeOp::kNot;
  for (size_t i = 0; i < args.size(); ++i) {
    EmitCode(args[i]);
    if (variadic && i > 0) plan_.size_code.push_back({op, 0});
  }
  if (!variadic) plan_.size_code.push_back({op, 0});
}

om::SizeRef PlanBuilder::Size(Expr e) {
  const auto key = std::make_pair(e.node(), e.IsConst() ? e.value() : 0);
  auto it = sizes_.find(key);
  if (it != sizes_.end()) return it->second;
  const auto begin = static_cast<uint32_t>(plan_.size_code.size());
  EmitCode(e);
  plan_.sizes.push_back({begin, static_cast<uint32_t>(plan_.size_code.size())});
  const auto ref = static_cast<om::SizeRef>(plan_.sizes.size() - 1);
  sizes_.emplace(key, ref);
  return ref;
}

std::vector<om::SizeRef> PlanBuilder::Sizes(const std::vector<Expr>& exprs) {
  std::vector<om::SizeRef> refs;
  for (const Expr& e : exprs) refs.push_back(Size(e));
  return refs;
}

int32_t PlanBuilder::BindSymbol(Expr symbol, int32_t input, int32_t dim) {
  const int32_t index = SymbolIndex(symbol);
  if (input >= 0 && !bound_[index]) {
    plan_.symbols[index].input = input;
    plan_.symbols[index].dim = dim;
  }
  bound_[index] = true;
  return index;
}

bool PlanBuilder::IsBound(Expr symbol) const {
  auto it = symbols_.find(symbol.node());
  return it != symbols_.end() && bound_[it->second];
}

std::vector<Expr> PlanBuilder::Unbound(const std::vector<Expr>& exprs) const {
  std::vector<Expr> symbols, unbound;
  for (const Expr& e : exprs) CollectSymbols(e, symbols);
  for (const Expr& s : symbols)
    if (!IsBound(s)) unbound.push_back(s);
  return unbound;
}

int32_t PlanBuilder::AddBuffer(om::BufferKind kind, const Value& v) {
  om::Buffer b;
  b.name = v.name;
  b.dtype = static_cast<uint8_t>(v.type.dtype);
  b.dims = IsSlot(v) ? std::vector<om::SizeRef>() : Sizes(v.type.dims);
  b.bytes = Size(IsSlot(v) ? Expr(0) : StorageBytes(v));
  b.kind = kind;
  if (IsSlot(v)) {
    b.kind = om::BufferKind::kSlot;
    b.index = plan_.slots++;
  }
  plan_.buffers.push_back(std::move(b));
  return static_cast<int32_t>(plan_.buffers.size() - 1);
}

int32_t PlanBuilder::AddBytes(const std::string& name, Expr bytes) {
  om::Buffer b;
  b.name = name;
  b.dtype = static_cast<uint8_t>(DType::kU8);
  b.kind = om::BufferKind::kArena;
  b.bytes = Size(bytes);
  b.dims = {b.bytes};
  plan_.buffers.push_back(std::move(b));
  return static_cast<int32_t>(plan_.buffers.size() - 1);
}

int32_t PlanBuilder::AddScalar(const std::string& name, DType dtype) {
  Value v;
  v.name = name;
  v.type.dtype = dtype;
  return AddBuffer(om::BufferKind::kArena, v);
}

int32_t PlanBuilder::AddSlot(const std::string& name, DType dtype) {
  Value v;
  v.name = name;
  v.type.dtype = dtype;
  v.kind = ValueKind::kOpaque;
  return AddBuffer(om::BufferKind::kSlot, v);
}

int32_t PlanBuilder::Constant(const Graph& g, ValueId v, const Pack* pack) {
  const ge::Constant& c = *g.ConstantOf(v);
  // Constants with the same bytes and packing are one. An empty constant may have no address.
  const void* identity = c.bytes.empty() ? static_cast<const void*>(&c) : c.bytes.data();
  const std::string shape = pack ? pack->key : fmt::format("{}[{}]", Name(c.dtype), fmt::join(c.dims, ","));
  auto [it, added] = constants_.emplace(std::make_pair(identity, shape), 0);
  if (!added) return it->second;
  const int64_t bytes = pack ? pack->bytes : static_cast<int64_t>(c.bytes.size());
  om::Buffer b;
  b.name = g.value(v).name;
  b.dtype = static_cast<uint8_t>(c.dtype);
  b.kind = om::BufferKind::kConst;
  b.bytes = Size(bytes);
  b.offset = out_.weight_bytes;
  for (int64_t d : c.dims) b.dims.push_back(Size(d));
  out_.weights.push_back({&g, v, pack, out_.weight_bytes, bytes});
  out_.weight_bytes += (bytes + 63) / 64 * 64;
  plan_.buffers.push_back(std::move(b));
  it->second = static_cast<int32_t>(plan_.buffers.size() - 1);
  return it->second;
}

om::Task& PlanBuilder::AddTask(om::TaskKind kind, const std::string& name) {
  om::Task t;
  t.kind = kind;
  t.name = name;
  plan_.tasks.push_back(std::move(t));
  return plan_.tasks.back();
}

om::Task& PlanBuilder::AddHost(const std::string& host, const std::string& name,
                               std::vector<int32_t> args, std::vector<int32_t> outs) {
  om::Task& t = AddTask(om::TaskKind::kHost, name);
  t.host = host;
  t.args = std::move(args);
  t.outs = std::move(outs);
  return t;
}

void PlanBuilder::AddBinds(const std::string& name, const std::vector<Expr>& symbols,
                           const std::vector<Expr>& exprs) {
  if (symbols.empty()) return;
  std::vector<om::SizeRef> values = Sizes(exprs);
  std::vector<int32_t> binds;
  for (const Expr& s : symbols) binds.push_back(BindSymbol(s, -1, -1));
  om::Task& t = AddHost("BindSizes", name, {}, {});
  t.sizes = std::move(values);
  t.binds = std::move(binds);
}

Status PlanBuilder::Finish() {
  for (size_t i = 0; i < plan_.symbols.size(); ++i)
    if (!bound_[i])
      return Error(Code::kInternal, fmt::format("nothing gives size '{}' its value", plan_.symbols[i].name));
  std::vector<bool> late(plan_.sizes.size());
  for (size_t i = 0; i < late.size(); ++i)
    for (uint32_t k = plan_.sizes[i].begin; k < plan_.sizes[i].end; ++k) {
      const om::SizeCode& code = plan_.size_code[k];
      if (code.op == om::SizeOp::kSymbol && plan_.symbols[code.value].input < 0) late[i] = true;
    }
  for (om::Buffer& b : plan_.buffers)
    if (b.kind == om::BufferKind::kArena && late[b.bytes]) b.kind = om::BufferKind::kPool;
  return {};
}

}  // namespace ge
