// PlanBuilder: the tables of a plan under construction: size expressions, symbols, buffers, weights.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/graph.h"
#include "ir/lowered.h"
#include "plan/planner.h"

namespace ge {

class PlanBuilder {
 public:
  explicit PlanBuilder(Planned& out) : plan_(out.plan), out_(out) {}
  om::Plan& plan() { return plan_; }

  // The size expression of e (shared by equal ones). Its symbols must be bound by the time it is
  // evaluated; Finish reports those that nothing binds.
  om::SizeRef Size(Expr e);
  std::vector<om::SizeRef> Sizes(const std::vector<Expr>& e);
  // The plan's number of a symbol, bound by a dim of an input or (input = -1) by a task.
  int32_t BindSymbol(Expr symbol, int32_t input, int32_t dim);
  bool IsBound(Expr symbol) const;
  // Symbols of these Exprs that nothing binds yet, in order of first use.
  std::vector<Expr> Unbound(const std::vector<Expr>& exprs) const;

  // A buffer of a kind, for a value's type (bytes with halo and pad lanes) or for plain bytes.
  int32_t AddBuffer(om::BufferKind kind, const Value& v);
  int32_t AddBytes(const std::string& name, Expr bytes);
  int32_t AddScalar(const std::string& name, DType dtype);  // an arena buffer of rank 0
  int32_t AddSlot(const std::string& name, DType dtype);
  int32_t Constant(const Graph& g, ValueId v, const Pack* pack);

  om::Task& AddTask(om::TaskKind kind, const std::string& name);
  int32_t NextTask() const { return static_cast<int32_t>(plan_.tasks.size()); }
  om::Task& AddHost(const std::string& host, const std::string& name, std::vector<int32_t> args,
                    std::vector<int32_t> outs);
  // symbols[i] = value of exprs[i]; all are evaluated before any is assigned.
  void AddBinds(const std::string& name, const std::vector<Expr>& symbols,
                const std::vector<Expr>& exprs);

  // Buffers whose size depends on a task's symbol become kPool. A fault if a symbol is not bound.
  Status Finish();

 private:
  int32_t SymbolIndex(Expr symbol);
  void EmitCode(Expr e);

  om::Plan& plan_;
  Planned& out_;
  std::map<std::pair<const ExprNode*, int64_t>, om::SizeRef> sizes_;
  std::unordered_map<const ExprNode*, int32_t> symbols_;
  std::vector<bool> bound_;
  std::map<std::pair<const void*, std::string>, int32_t> constants_;
};

Expr StorageBytes(const Value& v);

}  // namespace ge
