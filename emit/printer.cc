// Statements as C. A vector loop is printed as a loop of W lanes and a tail: masked where the chip
// has mask registers, else one element at a time.
#include "emit/printer.h"

#include "base/check.h"
#include "emit/emit.h"

namespace ge::emit {

using tile::LoopKind;
using tile::Stmt;
using tile::StmtKind;

KernelPrinter::KernelPrinter(const tile::Kernel& kernel, const SocSpec& soc)
    : kernel_(kernel),
      lanes_(soc.F32Lanes()),
      masks_(soc.masks),
      vnni_(soc.masks && soc.vnni),
      bf16_(soc.masks && (soc.bf16 || soc.amx)),
      amx_(soc.masks && soc.amx),
      l2_bytes_(soc.l2_bytes),
      scratch_(tile::PlanScratch(kernel)),
      vars_(kernel.vars.size()) {}

std::string KernelPrinter::Print(const std::string& symbol) {
  out_ += fmt::format("void {}(const ge_kernel_call* call, si64 begin, si64 end) {{\n", symbol);
  indent_ = 1;
  Line("const ge_math_table* const M __attribute__((unused)) = call->math;");
  std::vector<std::string> size_names;
  for (size_t i = 0; i < kernel_.symbols.size(); ++i) {
    std::string name = fmt::format("size{}", i);
    size_names.push_back(name);
    Line("const si64 {} __attribute__((unused)) = call->sizes[{}];", name, i);
  }
  PrintBuffers();
  const size_t start = out_.size();
  OpenScope();
  for (size_t i = 0; i < size_names.size(); ++i) Bind(kernel_.symbols[i], size_names[i]);
  const auto& body = kernel_.body.body;
  if (body.size() == 1 && body[0].kind == StmtKind::kLoop && body[0].loop == LoopKind::kParallel) {
    PrintSerialLoop(body[0], "begin", "end");
  } else {
    Line("if (begin >= end) return;");
    PrintBody(body);
  }
  CloseScope();
  InsertTileShapes(start);
  out_ += "}\n";
  return std::move(out_);
}

void KernelPrinter::PrintBuffers() {
  int arg = 0;
  for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
    if (!kernel_.buffers[i].is_arg) continue;
    Line("char* const b{} __attribute__((unused)) = (char*)call->buffers[{}];", i, arg++);
  }
}

void KernelPrinter::PrintBody(const std::vector<Stmt>& body) {
  for (const Stmt& s : body) PrintStmt(s);
}

void KernelPrinter::PrintStmt(const Stmt& s) {
  memo_ = held_;
  switch (s.kind) {
    case StmtKind::kBlock:
      Open();
      PrintBody(s.body);
      Close();
      break;
    case StmtKind::kLoop: PrintLoop(s); break;
    case StmtKind::kAlloc: PrintAlloc(s); break;
    case StmtKind::kLet: PrintLet(s); break;
    case StmtKind::kReduce: PrintReduce(s); break;
    case StmtKind::kIf: PrintIf(s); break;
    case StmtKind::kStore: PrintStore(s); break;
    case StmtKind::kBrGemm: PrintGemm(s); break;
  }
}

void KernelPrinter::PrintLoop(const Stmt& s) {
  if (s.loop == LoopKind::kVector && !vector_ && CanVectorize(s)) return PrintVectorLoop(s);
  if (s.loop == LoopKind::kUnrolled && s.extent.IsConst() && s.extent.value() <= 64) {
    return PrintUnrolled(s);
  }
  if (IsPipeline(s)) return PrintTilePipeline(s);
  if (const std::vector<tile::ExprId> loads = TurnedLoads(s); !loads.empty())
    return PrintTurned(s, loads);
  PrintSerialLoop(s, "0", Index(s.extent));
}

void KernelPrinter::PrintSerialLoop(const Stmt& s, const std::string& from, const std::string& to) {
  OpenFor(s.symbol, from, to);
  PlanFetches(s);
  PrintBody(s.body);
  CloseFor();
}

void KernelPrinter::PrintUnrolled(const Stmt& s) {
  for (int64_t i = 0; i < s.extent.value(); ++i) {
    Open();
    OpenScope();
    Bind(s.symbol, fmt::format("{}L", i));
    PrintBody(s.body);
    CloseFor();
  }
}

// What is the same in all iterations of a loop that does nothing but store is computed before it:
// the compiler may not, since stores could change what is loaded. Not where no iteration might run.
void KernelPrinter::HoldInvariants(const Stmt& loop) {
  if (loop.body.size() != 1 || loop.body[0].kind != StmtKind::kStore || !loop.extent.IsConst() ||
      loop.extent.value() < 1)
    return;
  const Stmt& store = loop.body[0];
  std::unordered_map<tile::ExprId, bool> varies;
  std::vector<tile::ExprId> order, stack = {store.value};
  while (!stack.empty()) {  // operands before what uses them
    const tile::ExprId id = stack.back();
    const tile::ValueNode& n = kernel_.values[id];
    bool ready = true, any = DependsOn(n.index, loop.symbol);
    if (n.op == tile::Op::kLoad && (kernel_.buffers[n.buffer].written || n.buffer == store.buffer))
      any = true;
    for (tile::ExprId operand : {n.a, n.b, n.c}) {
      if (operand < 0) continue;
      const auto it = varies.find(operand);
      if (it == varies.end())
        stack.push_back(operand), ready = false;
      else
        any |= it->second;
    }
    if (!ready) continue;
    stack.pop_back();
    if (varies.emplace(id, any).second) order.push_back(id);
  }
  if (!varies.at(store.value)) return;
  memo_.clear();
  for (tile::ExprId id : order)
    if (!varies.at(id)) held_.emplace(id, Value(id));
}

void KernelPrinter::PrintVectorLoop(const Stmt& s) {
  const std::string i = Fresh('i'), e = Fresh('e');
  const bool fixed = s.extent.IsConst();
  const int64_t extent = fixed ? s.extent.value() : 0;
  Open();
  HoldInvariants(s);
  Line("const si64 {} = {};", e, Index(s.extent));
  Line("si64 {} = 0;", i);
  if (!fixed || extent >= lanes_) {
    Line("for (; {0} + W <= {1}; {0} += W) {{", i, e);
    ++indent_;
    OpenScope();
    Bind(s.symbol, i);
    vector_ = VectorScope{s.symbol, i, ""};
    PrintFetches(s);
    PrintBody(s.body);
    CloseFor();
  }
  if (!fixed || extent % lanes_ != 0) {
    if (masks_) {
      std::string n = Fresh('n');
      Line("if ({} < {}) {{", i, e);
      ++indent_;
      Line("const si64 {} = {} - {};", n, e, i);
      OpenScope();
      Bind(s.symbol, i);
      vector_ = VectorScope{s.symbol, i, n};
      PrintBody(s.body);
      CloseFor();
    } else {
      vector_.reset();
      varying_symbols_.clear();
      Line("for (; {0} < {1}; {0}++) {{", i, e);
      ++indent_;
      OpenScope();
      Bind(s.symbol, i);
      PrintBody(s.body);
      CloseFor();
    }
  }
  vector_.reset();
  varying_symbols_.clear();
  held_.clear();
  Close();
}

void KernelPrinter::PrintIf(const Stmt& s) {
  CValue condition = Value(s.value);
  GE_CHECK(!condition.varying, "a varying If inside a vector loop of " + kernel_.name);
  Line("if ({}) {{", condition.text);
  ++indent_;
  PrintBody(s.body);
  Close();
  if (s.orelse.empty()) return;
  Line("else {{");
  ++indent_;
  PrintBody(s.orelse);
  Close();
}

void KernelPrinter::PrintLet(const Stmt& s) {
  CValue v = Value(s.value);
  const tile::Var& var = kernel_.vars[s.var];
  std::string name = Fresh('x');
  Line("const {}{} {} __attribute__((unused)) = {};", v.varying ? 'v' : 's', ge::Name(var.type),
       name, v.text);
  vars_[s.var] = {name, v.varying};
  if (!var.index.IsSymbol()) return;
  symbols_[var.index.node()] = name;
  depth_[var.index.node()] = static_cast<int>(scopes_.size());  // not before this statement
  if (v.varying) {
    varying_symbols_.insert(var.index.node());
  } else {
    varying_symbols_.erase(var.index.node());
  }
}

void KernelPrinter::PrintStore(const Stmt& s) {
  if (PrintSaturatedStore(s)) return;
  // What the store rounds need not be rounded before.
  const tile::ValueNode& node = kernel_.values[s.value];
  const bool twice =
      node.op == tile::Op::kNarrow && node.storage == kernel_.buffers[s.buffer].dtype;
  const tile::ExprId root = twice ? node.a : s.value;
  CValue v = Value(root);
  const DType type = TypeOf(root);
  const std::string_view d = ge::Name(kernel_.buffers[s.buffer].dtype);
  const bool tail = vector_ && !vector_->count.empty();
  if (!Varying(s.index)) {
    std::string last = v.varying
                           ? fmt::format("{}[{}]", v.text, tail ? vector_->count + " - 1" : "W - 1")
                           : v.text;
    Line("s_st_{}(b{}, {}, {});", d, s.buffer, Index(s.index), last);
    return;
  }
  if (LaneStride(s.index) == 1) {
    Line("v_st{}_{}(b{}, {}, {}{});", tail ? "n" : "", d, s.buffer, Index(s.index),
         As(v, type, true), tail ? ", " + vector_->count : "");
    return;
  }
  Line("for (si64 l = 0; l < {}; l++) s_st_{}(b{}, {}, {});", tail ? vector_->count : "W", d,
       s.buffer, Index(s.index, "l"), v.varying ? v.text + "[l]" : v.text);
}

// Locals of a constant small size are C arrays, others lie in the worker's scratch block.
void KernelPrinter::PrintAlloc(const Stmt& s) {
  const tile::Buffer& b = kernel_.buffers[s.buffer];
  Open();
  if (scratch_.offset[s.buffer].IsConst(-1)) {
    int64_t bytes = std::max<int64_t>(BytesFor(b.dtype, b.elements.value()), 1);
    Line("char b{}[{}] __attribute__((aligned(64)));", s.buffer, bytes);
  } else {
    Line("char* const b{} = (char*)call->scratch + {};", s.buffer,
         Index(scratch_.offset[s.buffer]));
  }
  PrintBody(s.body);
  Close();
}

std::string EmitKernel(const tile::Kernel& kernel, const SocSpec& soc, const std::string& symbol) {
  return KernelPrinter(kernel, soc).Print(symbol);
}

}  // namespace ge::emit
