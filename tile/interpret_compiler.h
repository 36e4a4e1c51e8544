// The interpreter's compiler: a kernel to steps. Private to tile/interpret*.cc; Exprs and values
// are in interpret_values.cc, statements in interpret_compile.cc.
//
// Invariant: a value is uniform if it is the same for all lanes; it is then computed once, in lane
// 0 of its row, and spread only where a varying operation needs it. Rows of a statement's
// intermediate values are reused by the next statement; rows of variables and constants are their
// own.
#pragma once

#include <unordered_map>
#include <vector>

#include "tile/interpret_plan.h"
#include "tile/interpret_steps.h"

namespace ge::tile::interpret {

class Compiler {
 public:
  explicit Compiler(const Kernel& k) : k_(k), vars_(k.vars.size()) {}
  CompiledKernel Run();

 private:
  struct VarPlace {
    int row = -1;
    bool varying = false;
  };
  // Where a value of the current statement is.
  struct Place {
    int uniform = -1, varying = -1;  // rows
    bool owned = true;               // its rows return to the free list after the last use
    int uses = 0;
  };

  // Exprs.
  Expr Flat(Expr e) const;
  int Slot(Expr symbol);
  bool Varies(Expr e) const;
  bool Linearise(Expr e, int64_t scale, ExprCode& out);
  bool Precomputed(Expr e, int64_t scale, ExprCode& out);
  void Post(Expr e, ExprCode& out);
  ExprCode Uniform(Expr e);
  bool Affine(Expr e, ExprCode& base, ExprCode& stride);
  int RowOf(Expr e, Code& code, bool& owned);
  Access AccessOf(int buffer, Expr index, Code& code);

  // Values.
  int NewRow();
  void Free(int row) { (keep_rows_ ? kept_ : free_).push_back(row); }
  int ConstantRow(ExprId id);
  void CountUses(ExprId id);
  Place& Compute(ExprId id, Code& code);
  int Operand(ExprId id, bool varying, Code& code);
  void Release(ExprId id);
  int Emit(Code& code, RowFn fn, bool uniform, int a = -1, int b = -1, int c = -1, int dst = -1);
  // Computes the root of a statement; its row is valid until the next statement.
  int Root(ExprId id, Code& code, bool want_varying, bool* uniform);
  void Finish(ExprId id);

  // Statements.
  Steps Body(const std::vector<Stmt>& body);
  std::unique_ptr<Step> Compile(const Stmt& s);
  std::unique_ptr<Step> CompileLoop(const Stmt& s);
  std::unique_ptr<Step> CompileNest(const FlatNest& nest);
  std::unique_ptr<Step> CompileStore(const Stmt& s);
  std::unique_ptr<Step> CompileCopy(const Stmt& s);
  std::unique_ptr<Step> CompileLet(const Stmt& s);
  std::unique_ptr<Step> CompileReduce(const Stmt& s);
  void HoistReduce(const Stmt& s, ReduceStep& step);
  std::unique_ptr<Step> CompileGemm(const Stmt& s);
  template <class F>
  void InLanes(Expr lane, F&& f);
  void BindVar(VarId var, bool varying, int row, int& slot);
  bool in_lanes() const { return lane_.IsSymbol(); }

  const Kernel& k_;
  CompiledKernel out_;
  std::unordered_map<const ExprNode*, int> slots_;
  std::unordered_map<const ExprNode*, int> symbol_rows_;  // index symbols that vary over lanes
  // Scopes of the sizes (0) and of the open loops: where each symbol is bound, what is computed
  // there.
  std::unordered_map<const ExprNode*, size_t> depth_;
  std::vector<std::vector<SlotValue>> scopes_;
  std::unordered_map<const ExprNode*, int> precomputed_;
  std::vector<VarPlace> vars_;
  std::unordered_map<ExprId, int> constant_rows_;
  std::unordered_map<ExprId, Place> places_;
  std::vector<int> free_, kept_;
  std::vector<int> pending_;                    // index rows, free after their access
  std::vector<std::pair<ExprId, int>> spread_;  // spread rows of variables
  Expr lane_;
  const FlatNest* flat_ = nullptr;  // the nest whose loops are lanes, if several are
  bool keep_rows_ = false;          // no row of an intermediate value is reused
};

}  // namespace ge::tile::interpret
