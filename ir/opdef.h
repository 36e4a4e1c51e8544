// OpDef: what an operator is, written once. One file per family in ops/ defines and registers them.
//
// An operator has a schema, an inference function and exactly one meaning:
//   element   output[idx] as a formula over input elements (pointwise, views, gathers): fusable
//   both ways lower     a loop nest that yields output elements through Lowering::Yield
//   (reductions, dots, scans):
//             pointwise consumers are fused into Yield, producers into Load
//   expand    a replacement by simpler nodes (done right after import)
//   host      the name of a host kernel of the runtime, for what no loop nest can say
//   control   If, Loop, Scan: the planner turns them into jumps
// Names and semantics are ONNX's newest opset; import upgrades older ones.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/graph.h"
#include "tile/builder.h"

namespace ge {

// What inference sees of a node: facts in, facts out.
class InferContext {
 public:
  InferContext(Graph& g, Node& n) : graph(g), node(n) {}
  Graph& graph;
  Node& node;

  int NumInputs() const { return static_cast<int>(node.inputs.size()); }
  int NumOutputs() const { return static_cast<int>(node.outputs.size()); }
  bool Has(int i) const { return i < NumInputs() && node.inputs[i] != kNone; }
  bool Wants(int o) const { return o < NumOutputs() && node.outputs[o] != kNone; }
  const TensorType& In(int i) const;  // GE_CHECKs Has(i)
  const Value& InValue(int i) const;
  const std::vector<Expr>* Elems(int i) const;  // known elements, or null (also if absent)
  const Constant* Const(int i) const;           // constant bytes, or null
  void Out(int o, DType dtype, std::vector<Expr> dims);
  void OutElems(int o, std::vector<Expr> elems);  // ignored if over 64
  Expr Fresh(std::string_view prefix, int64_t lo = 0, int64_t hi = INT64_MAX, int64_t hint = 0);
  void Check(Expr condition,
             std::string message);  // a run-time check; constant false is returned by Infer
  int64_t Int(std::string_view attr, int64_t otherwise) const {
    return AttrOr<int64_t>(node, attr, otherwise);
  }
  float Float(std::string_view attr, float otherwise) const {
    return AttrOr<float>(node, attr, otherwise);
  }
  std::string Str(std::string_view attr, std::string otherwise) const {
    return AttrOr<std::string>(node, attr, otherwise);
  }
  std::vector<int64_t> Ints(std::string_view attr) const {
    return AttrOr<std::vector<int64_t>>(node, attr, {});
  }
  Status Fault(std::string message) const { return Invalid(std::move(message)); }
  const std::string& failed_check() const { return failed_check_; }  // read by Infer

 private:
  size_t num_fresh_ = 0;
  std::string failed_check_;
};

using Index = std::vector<Expr>;

// What an element or lower function sees. Implemented in lower/; `b` builds the kernel.
class Lowering {
 public:
  Lowering(const Graph& g, const Node& n, tile::Builder& builder) : graph(g), node(n), b(builder) {}
  virtual ~Lowering() = default;
  const Graph& graph;
  const Node& node;
  tile::Builder& b;

  bool Has(int i) const {
    return i < static_cast<int>(node.inputs.size()) && node.inputs[i] != kNone;
  }
  const TensorType& In(int i) const { return graph.value(node.inputs[i]).type; }
  const TensorType& Out(int o) const { return graph.value(node.outputs[o]).type; }
  const std::vector<Expr>* Elems(int i) const;
  const Constant* Const(int i) const { return Has(i) ? graph.ConstantOf(node.inputs[i]) : nullptr; }
  int64_t Int(std::string_view attr, int64_t otherwise) const {
    return AttrOr<int64_t>(node, attr, otherwise);
  }
  float Float(std::string_view attr, float otherwise) const {
    return AttrOr<float>(node, attr, otherwise);
  }
  std::string Str(std::string_view attr, std::string otherwise) const {
    return AttrOr<std::string>(node, attr, otherwise);
  }
  std::vector<int64_t> Ints(std::string_view attr) const {
    return AttrOr<std::vector<int64_t>>(node, attr, {});
  }

  // Element of an input, in its compute type. The index must be in range (guard with LoadOr).
  virtual tile::Val Load(int input, const Index& idx) = 0;
  // The same under numpy broadcasting to a rank-r index of the output.
  tile::Val LoadBroadcast(int input, const Index& out_idx);
  // valid ? input[idx] : otherwise, where idx is clamped so that the load is always in range.
  virtual tile::Val LoadOr(int input, const Index& idx, tile::Val otherwise);
  // lower only: element idx of output o has this value (each exactly once, any order). Stores it,
  // or what the fused consumers make of it.
  virtual void Yield(int output, const Index& idx, tile::Val value) = 0;
  // lower only: a parallel loop nest over `extents` (vectorised over the last if it pays and
  // `vector`), all of them flattened into the kernel's grid.
  virtual void ForEach(const std::vector<Expr>& extents, bool vector,
                       const std::function<void(const Index&)>& body) = 0;
};

enum class Fusion : uint8_t {
  kPointwise,  // element: out[idx] reads inputs at (broadcast) idx only: cheap anywhere
  kView,    // element: reads one input element per output element, other index (transpose, slice)
  kGather,  // element: data-dependent or several reads; not worth recomputing
  kNever,
};

// What becomes of f16 where the numbers between nodes may be f32 (pass widen).
enum class Halves : uint8_t {
  kRound,   // results are rounded to f16
  kWiden,   // all float operands and results are f32 instead
  kFollow,  // elements are only moved: those of a widened operand stay f32
};

struct OpDef {
  std::string name;
  std::string domain;                  // "" = ai.onnx
  int min_inputs = 1, max_inputs = 1;  // max -1: variadic
  int min_outputs = 1, max_outputs = 1;
  Status (*infer)(InferContext&) = nullptr;

  tile::Val (*element)(Lowering&, int output, const Index& idx) = nullptr;
  void (*lower)(Lowering&) = nullptr;
  bool (*expand)(Graph&, NodeId) = nullptr;  // false: not applicable, keep the node
  std::string host;                          // host kernel name
  bool control = false;

  Fusion fusion = Fusion::kNever;
  bool in_place = false;    // element 0 may share the buffer of input 0
  bool by_element = false;  // y[i] depends on the (broadcast) operands at i alone, and not on i
  Halves halves = Halves::kRound;
  double flops_per_element = 1;  // for the cost model
  // Text IR of node uses, for the generic tester: "(f32[2,3], f32[3]) {axis=1}".
  std::vector<std::string> samples;
  double tolerance = 1e-5;  // between backends, relative
};

// Registration: `static const OpDef& kRelu = Register({...});` at namespace scope in ops/. Sorted
// by (domain, name); order of registration has no meaning.
const OpDef& Register(OpDef def);
const OpDef* FindOp(std::string_view domain, std::string_view name);
std::vector<const OpDef*> AllOps();

// Runs inference of one node: fills types and facts of its outputs. Errors name what was given and
// allowed; the caller adds the node's name.
Status Infer(Graph& g, Node& n);

}  // namespace ge
