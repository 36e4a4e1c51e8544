// PlanBuilder: the planner's state while tasks are written. Internal to plan/.
//
// Values of all graphs (root and subgraphs) get buffers here; memory is decided at the end: buffers
// that must share memory are joined (same_, slices), then some that may (in place, copies), then
// lifetimes and offsets. Invariant: tasks stand in execution order; every symbol is bound by an
// input dim or by a task before its first use on each path.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "plan/planner.h"

namespace ge {

class PlanBuilder {
 public:
  PlanBuilder(const Graph& root, const RegionMap& regions, const LoweredMap& lowered,
              const Policy& policy)
      : root_(root), regions_(regions), lowered_(lowered), policy_(policy) {}
  Result<Planned> Run();

 private:
  struct Loop;        // what Loop and Scan have in common
  struct NativeLoop;  // a loop that becomes one kernel

  // needs.cc: which values are read as memory; which nodes bind symbols.
  void Need(const Graph& g, const std::vector<bool>& wanted);
  void NeedRegion(const Graph& g, size_t region);
  void NeedControl(const Graph& g, const Node& n);
  void NeedLoop(const Graph& g, const Node& n);
  bool FindBinders(const Graph& g);
  bool NeedsValue(const Graph& g, ValueId v) const;
  std::vector<bool>& NeedsOf(const Graph& g);
  void MarkNeeded(const Graph& g, ValueId v);

  // sizes.cc: Exprs to size code, symbols, checks.
  om::SizeRef Size(Expr e);
  void Encode(Expr e, std::vector<om::SizeCode>& code);
  std::vector<om::SizeRef> Sizes(const std::vector<Expr>& dims);
  int32_t SymbolIndex(Expr symbol);  // declares it as late if new
  bool IsBound(Expr symbol) const { return bound_.contains(symbol.node()); }
  bool DependsOnLate(Expr e);
  Status BindInputDims();
  void AddChecks();
  Status CheckAllBound() const;

  // buffers.cc
  Expr StorageBytes(const Value& v) const;
  int NewBuffer(std::string name, DType dtype, const std::vector<Expr>& dims, Expr bytes);
  int NewLike(const Value& v, std::string name);  // storage for a value of this type
  int NewSlice(int of, const Value& like, Expr offset);
  int WeightBuffer(const Graph& g, ValueId v, const Pack* pack);
  std::vector<int>& BuffersOf(const Graph& g);
  Result<int> Readable(const Graph& g, ValueId v);  // buffer of a value that some task reads
  int Writable(const Graph& g, ValueId v);          // buffer of a value that a task makes
  int Find(int buffer);                             // the buffer whose memory it is at offset 0
  int RootOf(int buffer);                           // the same through slices
  void Join(int buffer, int root);
  bool IsSlot(int buffer) const { return plan_.buffers[buffer].kind == om::BufferKind::kSlot; }

  // tasks.cc
  Status EmitGraph(const Graph& g);
  Status EmitRegion(const Graph& g, const Region& r, const Lowered& lowered);
  Status EmitKernels(const Graph& g, const Region& r, const Lowered& lowered,
                     const std::vector<ValueId>& placed);
  Status EmitHost(const Graph& g, const Node& n);
  Result<bool> EmitAlias(const Graph& g, const Node& n);
  Result<int> EmitKnown(const Graph& g, ValueId v);
  void UseLabel(const Graph& g, const Region& r, int32_t kernel);
  om::Task& AddTask(om::TaskKind kind, std::string name);
  void AddHost(std::string name, std::string host, std::vector<int32_t> args,
               std::vector<int32_t> outs);
  void AddSizes(std::string name, const std::vector<Expr>& values, int out);
  void AddCopy(std::string name, int from, int to);
  void AddBind(Expr symbol, Expr value);
  int AddJump(int condition);  // condition -1: always. Returns the task, to be given a target
  void SetTarget(int jump) { plan_.tasks[jump].target = static_cast<int32_t>(plan_.tasks.size()); }

  // alias.cc
  bool CanMove(int buffer) const;
  void LeaveOut(const Graph& g, const Node& n);
  size_t WholeRun(const Graph& g, const Node& n, size_t i);
  std::vector<ValueId> PlaceParts(const Graph& g, const Node& n);  // inputs of a Concat
  Result<std::vector<ValueId>> SliceOutputs(const Graph& g, const Node& n);

  // control.cc, loop.cc
  Status EmitControl(const Graph& g, const Node& n);
  Status EmitIf(const Graph& g, const Node& n);
  Status EmitBranch(const Graph& g, const Node& n, const Graph& branch);
  Status Capture(const Graph& g, const Node& n, size_t first_input, const Graph& sub,
                 size_t first_sub);
  Status EmitLoop(const Graph& g, const Node& n);
  Status EmitScan(const Graph& g, const Node& n);
  Status StartCarried(const Graph& g, const Node& n, Loop& loop);
  Status EndIteration(Loop& loop);
  void StartScans(const Graph& g, const Node& n, Loop& loop);
  Status EmitScans(const Graph& g, const Node& n, Loop& loop);
  Status FinishLoop(const Graph& g, const Node& n, Loop& loop);
  Status RunLoop(const Graph& g, const Node& n, Loop& loop);

  // native_loop.cc
  bool PlaceInLoop(int buffer, DType dtype, bool written, NativeLoop& native,
                   std::pair<int32_t, Expr>* place);
  bool AddPart(size_t task, ExprArena& arena, Expr iter, NativeLoop& native);
  bool MakeNative(const std::string& name, ExprArena& arena, Expr iter, Expr limit, size_t first);

  // memory.cc
  void PromoteOutputs();
  void MeasureUnaliased();
  void MeasureValues();
  void ComputeLives();
  void ExtendOverLoops();
  void JoinInPlace();
  void DropCopies();
  Status PlaceArena();
  void FinishBuffers();

  const Graph& root_;
  const RegionMap& regions_;
  const LoweredMap& lowered_;
  const Policy& policy_;
  Planned out_;
  om::Plan& plan_ = out_.plan;

  std::unordered_map<const Graph*, std::vector<bool>> needs_;
  std::unordered_set<const Node*> binders_;
  std::unordered_set<const ExprNode*> seen_symbols_;

  std::unordered_map<const ExprNode*, int32_t> symbol_index_;
  std::unordered_set<const ExprNode*> bound_;
  std::unordered_map<const ExprNode*, om::SizeRef> size_of_node_;
  std::unordered_map<int64_t, om::SizeRef> size_of_value_;
  Status fault_;  // the first size that cannot be encoded
  std::unordered_map<size_t, std::vector<Expr>> size_values_;  // of the tasks that are Sizes
  std::unordered_set<int32_t> native_kernels_;
  std::map<std::string, int32_t> lane_of_label_;
  std::unordered_map<int32_t, int32_t> lane_of_kernel_;  // of labelled nodes

  std::unordered_map<const Graph*, std::vector<int>> buffer_of_;
  std::vector<Expr> bytes_;    // per buffer
  std::vector<int> same_;      // per buffer: shares the memory of; -1 = a root or a slice
  std::vector<int> slice_of_;  // per buffer: lies in; -1 = none
  std::vector<Expr> slice_offset_;
  std::map<std::tuple<const void*, int64_t, std::string>, int> weight_of_;  // into out_.weights
  std::map<std::tuple<int, int, std::string>, int> weight_buffer_;

  struct Life {
    int32_t first = -1, last = -1;
  };
  std::vector<Life> life_;          // per root buffer
  std::vector<int> output_buffer_;  // per graph output
  // Copies that aliases made needless: {the task that follows, a buffer that it had}.
  std::vector<std::pair<int32_t, int>> left_out_;
};

// The pairs (read argument, written argument) of a kernel that may be one buffer: the kernel reads
// the first only at the element that it writes next.
std::vector<std::pair<int, int>> InPlaceArgs(const LoweredKernel& kernel);
// "name=type:value" lines for the runtime's HostAttrs.
std::string EncodeAttrs(const Node& n);
std::string EncodeStrings(const Constant& c);  // attributes of the host kernel ConstantStrings
bool IsPlain(const Value& v);                  // a tensor, dense in row-major order
bool IsObject(const Value& v);                 // lives in a slot
// Same bytes in another shape.
bool IsReshape(const Node& n);

}  // namespace ge
