// KernelPrinter: one kernel as C text. Statements recurse; values are printed as temporaries.
//
// A value is uniform (one scalar, prefix s) or varying (one element per lane of the current vector
// loop, prefix v). What does not depend on the loop's symbol stays uniform, and is broadcast where
// it meets a varying value. Invariant: outside a vector scope every value is uniform.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "emit/quotient.h"
#include "soc/soc.h"
#include "tile/tile.h"

namespace ge::emit {

// A C expression and whether it has one value per lane.
struct CValue {
  std::string text;
  bool varying = false;
};

// The vector loop being printed: lanes are symbol = base + 0..W-1, or `count` of them if not empty.
struct VectorScope {
  Expr symbol;
  std::string base;
  std::string count;
  // A cell of a BrGemm: `column` stands for column_base + symbol, so that tiles of the column's
  // axis are seen through. Constant 0: none.
  Expr column = 0, column_value = 0;
  Expr row = 0, row_value = 0;  // the same for an unrolled row
};

// Where A's rows start, less the distance of row r from the first.
Expr AtRow(const tile::BrGemm& g, int r);

class KernelPrinter {
 public:
  KernelPrinter(const tile::Kernel& kernel, const SocSpec& soc);
  std::string Print(const std::string& symbol);

 private:
  // printer.cc: statements
  void PrintBuffers();
  void PrintStmt(const tile::Stmt& s);
  void PrintBody(const std::vector<tile::Stmt>& body);
  void PrintLoop(const tile::Stmt& s);
  void PrintSerialLoop(const tile::Stmt& s, const std::string& from, const std::string& to);
  void PrintUnrolled(const tile::Stmt& s);
  void PrintVectorLoop(const tile::Stmt& s);
  void HoldInvariants(const tile::Stmt& loop);
  void PrintIf(const tile::Stmt& s);
  void PrintLet(const tile::Stmt& s);
  void PrintStore(const tile::Stmt& s);
  void PrintAlloc(const tile::Stmt& s);
  // prefetch.cc
  struct Fetch {
    int buffer;
    Expr index;
    int64_t ahead;  // bytes
    bool written;
  };
  void PlanFetches(const tile::Stmt& rows);
  void PrintFetches(const tile::Stmt& loop);
  std::vector<Fetch> StreamsOf(const tile::Stmt& loop, bool written,
                               const std::vector<tile::Stmt>& body) const;
  bool FromMemory(int buffer) const;
  bool IsSlowLoop(const tile::Stmt& s) const;
  // reduce.cc
  void PrintReduce(const tile::Stmt& s);
  void PrintReduceLanes(const tile::Stmt& s);
  void CombineLanes(const tile::Stmt& s, const std::string& r, const std::string& result);
  void OpenAxes(const tile::Stmt& s, size_t count);
  void Accumulate(const tile::Stmt& s, const std::string& acc, bool varying);
  bool ReducesInLanes(const tile::Stmt& s) const;
  // brgemm.cc
  void PrintGemm(const tile::Stmt& s);
  void PrintGemmLoops(const tile::BrGemm& g, const std::string& acc);
  void PrintPrefetch(const tile::BrGemm& g, const std::string& acc, const std::string& at);
  void PrintGemmStep(const tile::BrGemm& g, const std::string& acc, const std::string& k);
  // How much farther row r of A lies than row 0, in units of `element`.
  std::string RowOffset(const tile::BrGemm& g, int r, int element);
  void PrintGemmGroups(const tile::BrGemm& g, const std::string& acc);  // brgemm_int8.cc
  void PrintGemmPairsStep(const tile::BrGemm& g, const std::string& acc, const std::string& group);
  void PrintGemmBytesStep(const tile::BrGemm& g, const std::string& acc, const std::string& group);
  // brgemm_amx.cc
  bool OnTiles(const tile::BrGemm& g) const;
  void PrintGemmTiles(const tile::Stmt& s, const std::string& acc);
  void SetTileShapes(const tile::BrGemm& g);
  void InsertTileShapes(size_t at);
  void PrintTileLoops(const tile::BrGemm& g, const std::string& acc, const std::string& live,
                      const std::function<void()>& each);
  void BeginTiles(const tile::BrGemm& g);
  bool IsPipeline(const tile::Stmt& loop) const;
  void PrintTilePipeline(const tile::Stmt& loop);
  void PrintTileStep(const tile::BrGemm& g, const std::string& acc, const std::string& step,
                     bool rest);
  void PrintTileStores(const tile::BrGemm& g, const std::string& q);
  // brgemm.cc
  void PrintEpilogue(const tile::Stmt& s, const std::string& acc);
  std::string StoreTile(const tile::BrGemm& g, const std::string& acc);
  void PrintStored(const tile::BrGemm& g,
                   const std::function<void(const std::string& valid)>& print);
  void PrintEpilogueRows(const tile::Stmt& s, const std::string& q, const std::string& valid);
  void PrintEpilogueRow(const tile::Stmt& s, const std::string& q, const std::string& valid);
  void OpenCell(const tile::BrGemm& g, int v, const std::string& count);
  void CloseCell();
  void PrintEpilogueCell(const tile::Stmt& s, const std::string& acc, int row, int v,
                         const std::string& count);
  void PrintEpilogueScalar(const tile::Stmt& s, const std::string& q);
  int GemmVectors(const tile::BrGemm& g) const { return (g.n + lanes_ - 1) / lanes_; }
  int GemmRegisters(const tile::BrGemm& g) const {  // of a row
    return GemmType(g) == DType::kF64 ? g.n / (lanes_ / 2) : GemmVectors(g);
  }
  DType GemmType(const tile::BrGemm& g) const {
    return ComputeType(kernel_.buffers[g.a_buffer].dtype);
  }
  // turned.cc
  std::vector<tile::ExprId> TurnedLoads(const tile::Stmt& s) const;
  void PrintTurned(const tile::Stmt& s, const std::vector<tile::ExprId>& loads);
  // loads.cc
  CValue PrintIndexValue(const tile::ValueNode& n);
  CValue PrintLoad(const tile::ValueNode& n);
  std::optional<Expr> LoadChoice(Expr index) const;
  CValue PrintLoadChoice(const tile::ValueNode& n, Expr condition);
  // Prints `lane_text(offset)` for each active lane into a new varying value.
  CValue ByLanes(DType type, Expr offset, const std::string& load);
  bool HasGather(int buffer) const;
  // A load whose elements mostly lie side by side.
  std::optional<CValue> PrintPieces(const tile::ValueNode& n);
  // e of each lane as a vector of i32; nullopt if it may be too large.
  std::optional<std::string> SpellLanes(Expr e);
  // values.cc
  CValue Value(tile::ExprId id);
  CValue PrintNode(const tile::ValueNode& n);
  CValue PrintConst(const tile::ValueNode& n);
  CValue PrintUnary(const tile::ValueNode& n);
  std::string PrintQuotient(const std::string& x, float reciprocal, float rest);
  std::string PrintQuantised(const tile::ValueNode& n);
  // values_bytes.cc
  const std::optional<Saturated>& SaturatedOf(tile::ExprId narrow);
  bool PrintSaturatedStore(const tile::Stmt& s);
  void PrintStarts(const tile::Stmt& s, const std::string& acc);
  CValue PrintBinary(const tile::ValueNode& n);
  CValue PrintSelect(const tile::ValueNode& n);
  CValue PrintFma(const tile::ValueNode& n);
  std::string As(const CValue& v, DType type, bool varying);  // broadcasts if it must
  CValue Name(DType type, bool varying, const std::string& text);
  // index.cc
  std::string Index(Expr e, const std::string& lane = "");
  std::string Spell(Expr e, const std::string& lane);
  std::string SpellNode(Expr e, const std::string& lane);
  // What does not change in the innermost scope is computed once, in the scope where it is
  // complete.
  std::string Hoisted(Expr e, int depth);
  int DepthOf(Expr e) const;
  int CurrentDepth() const {
    return spell_depth_ >= 0 ? spell_depth_ : static_cast<int>(scopes_.size()) - 1;
  }
  std::string IndexNary(Expr e, const std::string& lane);
  Expr Resolved(Expr e) const;  // with the column of a BrGemm cell replaced
  bool Varying(Expr e) const;
  // e = 1 or c (constant) times the vector symbol plus a uniform rest; nullopt otherwise.
  std::optional<int64_t> LaneStride(Expr e) const;
  // vectorize.cc: may W iterations run at once?
  bool CanVectorize(const tile::Stmt& loop) const;
  bool OneFlow(Expr symbol, const std::vector<tile::Stmt>& body) const;

  template <class... Args>
  void Line(fmt::format_string<Args...> format, Args&&... args) {
    out_.append(static_cast<size_t>(indent_) * 2, ' ');
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
    out_ += '\n';
  }
  // A scope binds symbols; named index expressions stand at its beginning.
  void OpenScope() { scopes_.push_back({std::exchange(out_, {}), {}, indent_, {}}); }
  void CloseScope() {
    Scope& s = scopes_.back();
    out_ = std::move(s.outer) + s.header + out_;
    scopes_.pop_back();
  }
  void Bind(Expr symbol, const std::string& text) {
    symbols_[symbol.node()] = text;
    depth_[symbol.node()] = static_cast<int>(scopes_.size()) - 1;
  }
  // for (symbol = from; symbol < to; symbol++) {
  void OpenFor(Expr symbol, const std::string& from, const std::string& to) {
    std::string name = Fresh('i');
    Line("for (si64 {0} = {1}; {0} < {2}; {0}++) {{", name, from, to);
    ++indent_;
    OpenScope();
    Bind(symbol, name);
  }
  void CloseFor() { CloseScope(), Close(); }
  void Open() { Line("{{"), ++indent_; }
  void Close() { --indent_, Line("}}"); }
  std::string Fresh(char prefix) { return fmt::format("{}{}", prefix, next_++); }
  DType TypeOf(tile::ExprId id) const { return kernel_.values[id].type; }

  const tile::Kernel& kernel_;
  const int lanes_;
  const bool masks_, vnni_, bf16_, amx_;
  const int64_t l2_bytes_;
  std::unordered_map<const tile::Stmt*, std::vector<Fetch>> fetches_;  // by the loop that does them
  tile::ScratchPlan scratch_;
  std::string out_;
  int indent_ = 0;
  int next_ = 0;
  std::unordered_map<const ExprNode*, std::string> symbols_;  // C text of each bound symbol
  std::unordered_set<const ExprNode*> varying_symbols_;       // index symbols of varying Lets
  std::vector<CValue> vars_;                                  // by VarId
  std::unordered_map<tile::ExprId, CValue> memo_;             // during one statement
  std::unordered_map<tile::ExprId, CValue> held_;  // computed before the vector loop at hand
  std::optional<VectorScope> vector_;
  struct Scope {
    std::string outer, header;  // text before the scope; the names at its beginning
    int indent;
    std::unordered_map<const ExprNode*, std::string> names;
  };
  std::vector<Scope> scopes_;
  std::unordered_map<const ExprNode*, int> depth_;  // the scope that binds a symbol
  int spell_depth_ = -1;                  // the scope for which text is spelled; -1: the innermost
  std::vector<std::string> tile_shapes_;  // of the matrix unit, each used by some BrGemm
  bool masked_reduce_ = false;            // in the tail of lanes of a Reduce
  std::unordered_map<tile::ExprId, std::optional<Saturated>> saturated_;
  // The sum with which the accumulators of a BrGemm began, and their variable.
  tile::ExprId started_ = -1;
  tile::VarId started_acc_ = -1;
};

// Value nodes of all statements.
void CollectNodes(const tile::Kernel& k, const std::vector<tile::Stmt>& body,
                  std::unordered_set<tile::ExprId>& seen);
// Is one of them an exponential or the like?
bool HasSlowOp(const tile::Kernel& k, const std::unordered_set<tile::ExprId>& nodes);

// How an accumulator starts and combines: the identity of `op` and "acc op x" as C.
std::string ReduceIdentity(tile::ReduceOp op, DType type);
std::string ReduceCombine(tile::ReduceOp op, DType type, char mode, const std::string& a,
                          const std::string& b);

}  // namespace ge::emit
