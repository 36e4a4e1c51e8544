// BrGemm: C[r, c] = sum_batch sum_k A[r, k] B[k, c] with m x n/W named accumulators.
//
// One step of k loads n/W vectors of B once and broadcasts m elements of A; two steps are unrolled.
// The epilogue follows while the tile is in registers: unrolled when it is short, else over rows of
// a copy in the stack. Nothing between the first and the last step of k touches memory other than A
// and B. A vector of doubles takes two registers: halves, half64.
#include "base/check.h"
#include "emit/printer.h"

namespace ge::emit {

using tile::BrGemm;
using tile::Stmt;

namespace {

constexpr int kUnroll = 2;
constexpr size_t kShortEpilogue =
    200;  // value nodes times cells: longer ones are printed once per row, not once per cell

std::string Cell(const std::string& acc, int row, int v) {
  return fmt::format("{}_{}_{}", acc, row, v);
}

bool IsShort(const tile::Kernel& k, const std::vector<Stmt>& body, int cells) {
  std::unordered_set<tile::ExprId> nodes;
  CollectNodes(k, body, nodes);
  if (HasSlowOp(k, nodes)) return false;
  return nodes.size() * static_cast<size_t>(cells) <= kShortEpilogue;
}

}  // namespace

void KernelPrinter::PrintGemm(const Stmt& s) {
  const BrGemm& g = s.gemm;
  const std::string acc = Fresh('c');
  if (OnTiles(g)) return PrintGemmTiles(s, acc);
  const std::string_view type = ge::Name(GemmType(g));
  const bool doubles = GemmType(g) == DType::kF64;
  GE_CHECK(!doubles || g.n % (lanes_ / 2) == 0, "a panel of doubles that ends within a register");
  Open();
  PrintStarts(s, acc);
  for (int r = 0; r < g.m; ++r) {
    for (int v = 0; v < GemmRegisters(g); ++v)
      Line("{} {} = {};", doubles ? "half64" : fmt::format("v{}", type), Cell(acc, r, v),
           started_ < 0 ? "{}" : fmt::format("{}S{}", acc, v));
  }
  g.k_group > 1 ? PrintGemmGroups(g, acc) : PrintGemmLoops(g, acc);
  if (OneFlow(g.col, s.body) && !doubles) {
    PrintEpilogue(s, acc);
  } else if (OneFlow(g.col, s.body)) {
    const std::string q = StoreTile(g, acc);
    if (g.n_valid.IsConst(g.n) && g.n % lanes_ == 0)
      PrintEpilogueRows(s, q, "");
    else
      PrintEpilogueRows(s, q, Index(g.n_valid));
  } else {
    PrintEpilogueScalar(s, StoreTile(g, acc));
  }
  started_ = -1;
  Close();
}

Expr AtRow(const BrGemm& g, int r) {
  if (!DependsOn(g.a, g.row)) return g.a;
  return Substitute(
      g.a, [&](Expr symbol) { return symbol == g.row ? std::optional<Expr>(r) : std::nullopt; });
}

std::string KernelPrinter::RowOffset(const BrGemm& g, int r, int element) {
  if (!DependsOn(g.a, g.row)) return fmt::format("{}L * {}", r, Index(g.a_row * element));
  return Index((AtRow(g, r) - AtRow(g, 0) + r * g.a_row) * element);
}

void KernelPrinter::PrintGemmLoops(const BrGemm& g, const std::string& acc) {
  for (const auto& [symbol, extent] : g.batch) {
    OpenFor(symbol, "0", Index(extent));
  }
  const int64_t a_bytes = BytesFor(kernel_.buffers[g.a_buffer].dtype, 1);
  const int64_t b_bytes = BytesFor(kernel_.buffers[g.b_buffer].dtype, 1);
  Line("const char* const {}A = b{} + {} * {};", acc, g.a_buffer, Index(AtRow(g, 0)), a_bytes);
  Line("const char* const {}B = b{} + {} * {};", acc, g.b_buffer, Index(g.b), b_bytes);
  Line("const si64 {}K = {};", acc, Index(g.k));
  const bool fixed = g.k.IsConst();
  Line("si64 {}k = 0;", acc);
  if (!fixed || g.k.value() >= kUnroll) {
    Line("for (; {0}k + {1} <= {0}K; {0}k += {1}) {{", acc, kUnroll);
    ++indent_;
    for (int u = 0; u < kUnroll; ++u) PrintGemmStep(g, acc, fmt::format("({}k + {})", acc, u));
    Close();
  }
  if (!fixed || g.k.value() % kUnroll != 0) {
    Line("for (; {0}k < {0}K; {0}k++) {{", acc);
    ++indent_;
    PrintGemmStep(g, acc, acc + "k");
    Close();
  }
  for (size_t i = 0; i < g.batch.size(); ++i) CloseFor();
}

// What is far ahead comes into the second cache.
void KernelPrinter::PrintPrefetch(const BrGemm& g, const std::string& acc, const std::string& at) {
  constexpr int64_t kFar = 8 << 10;
  const int64_t ahead = BytesFor(kernel_.buffers[g.b_buffer].dtype, g.prefetch);
  Line("__builtin_prefetch({}B + {} + {}, 0, {});", acc, at, ahead, ahead < kFar ? 3 : 2);
}

void KernelPrinter::PrintGemmStep(const BrGemm& g, const std::string& acc, const std::string& k) {
  const DType type = GemmType(g);
  const std::string_view t = ge::Name(type);
  const DType a = kernel_.buffers[g.a_buffer].dtype, b = kernel_.buffers[g.b_buffer].dtype;
  const bool doubles = type == DType::kF64,
             fixed = doubles || (a == DType::kF32 && b == DType::kF32);
  const std::string reg = doubles ? "half64" : fmt::format("v{}", t);
  const std::string_view kind = doubles ? "64" : "";
  const int width = doubles ? lanes_ / 2 : lanes_;
  Open();
  for (int v = 0; v < GemmRegisters(g); ++v) {
    const int left = g.n - v * width;
    std::string at = fmt::format("{} * {} + {}", k, Index(g.b_k), v * width);
    if (g.prefetch > 0) PrintPrefetch(g, acc, fmt::format("({}) * {}", at, BytesFor(b, 1)));
    if (left < width) {
      Line("const v{} B{} = v_ldn_{}({}B, {}, {});", t, v, ge::Name(b), acc, at, left);
    } else if (fixed) {
      Line("{} B{}; GEMM_LOAD{}(B{}, {}B, {});", reg, v, kind, v, acc, at);
    } else {
      Line("const v{} B{} = v_ld_{}({}B, {});", t, v, ge::Name(b), acc, at);
    }
  }
  for (int r = 0; r < g.m; ++r) {
    std::string at = fmt::format("{} + {} * {}", RowOffset(g, r, 1), k, Index(g.a_k));
    if (fixed) {
      Line("{} A{}; GEMM_BROADCAST{}(A{}, {}A, {});", reg, r, kind, r, acc, at);
    } else {
      Line("const v{0} A{1} = v_bc_{0}(s_ld_{2}({3}A, {4}));", t, r, ge::Name(a), acc, at);
    }
    for (int v = 0; v < GemmRegisters(g); ++v) {
      std::string c = Cell(acc, r, v);
      if (fixed) {
        Line("GEMM_FMA{}({}, A{}, B{});", kind, c, r, v);
      } else if (type == DType::kF32) {
        Line("{0} = v_fma(A{1}, B{2}, {0});", c, r, v);
      } else {
        Line("{0} = {0} + A{1} * B{2};", c, r, v);
      }
    }
  }
  Close();
}

// The scope of vector v of a tile's columns.
void KernelPrinter::OpenCell(const BrGemm& g, int v, const std::string& count) {
  Expr lane = g.col.node()->arena->Symbol(fmt::format("lane_of_{}", lanes_),
                                          {.lo = 0, .hi = lanes_ - 1, .extent = lanes_});
  Open();
  OpenScope();
  Bind(lane, "0L");
  vector_ = VectorScope{lane, "0L", count, g.col, lane + v * lanes_};
}

void KernelPrinter::CloseCell() {
  vector_.reset();
  varying_symbols_.clear();
  CloseFor();
}

// `row` is negative inside a loop over rows.
void KernelPrinter::PrintEpilogueCell(const Stmt& s, const std::string& acc, int row, int v,
                                      const std::string& count) {
  const BrGemm& g = s.gemm;
  OpenCell(g, v, count);
  vars_[g.acc] = {acc, true};
  if (row >= 0) vector_->row = g.row, vector_->row_value = row;
  PrintBody(s.body);
  CloseCell();
}

void KernelPrinter::PrintEpilogue(const Stmt& s, const std::string& acc) {
  const BrGemm& g = s.gemm;
  const bool whole = g.n_valid.IsConst(g.n) && g.n % lanes_ == 0;
  if (!whole) {
    Line("const si64 {}N = {};", acc, Index(g.n_valid));
    Line("if ({}N >= {} && {} % W == 0) {{", acc, g.n, g.n);
    ++indent_;
  }
  if (IsShort(kernel_, s.body, g.m * GemmVectors(g))) {
    for (int r = 0; r < g.m; ++r) {
      for (int v = 0; v < GemmVectors(g); ++v) PrintEpilogueCell(s, Cell(acc, r, v), r, v, "");
    }
  } else {
    PrintEpilogueRows(s, StoreTile(g, acc), "");
  }
  if (whole) return;
  Close();
  Line("else {{");
  ++indent_;
  PrintEpilogueRows(s, StoreTile(g, acc), acc + "N");
  Close();
}

// The tile copied to the stack, row by row.
std::string KernelPrinter::StoreTile(const BrGemm& g, const std::string& acc) {
  const int nv = GemmVectors(g);
  const std::string q = Fresh('q');
  Line("v{} {}[{}];", ge::Name(GemmType(g)), q, g.m * nv);
  const bool doubles = GemmType(g) == DType::kF64;
  for (int r = 0; r < g.m; ++r) {
    for (int v = 0; v < GemmRegisters(g); ++v)
      Line("{}[{}] = {};", doubles ? fmt::format("((half64*){})", q) : q,
           r * nv * (doubles ? 2 : 1) + v, Cell(acc, r, v));
  }
  return q;
}

// The epilogue of what lies in `q` by `print`, which takes the number of columns that there are:
// empty for a whole tile.
void KernelPrinter::PrintStored(const BrGemm& g,
                                const std::function<void(const std::string& valid)>& print) {
  if (g.n_valid.IsConst(g.n)) return print("");
  const std::string valid = Fresh('n');
  Line("const si64 {} = {};", valid, Index(g.n_valid));
  Line("if ({} >= {}) {{", valid, g.n);
  ++indent_;
  print("");
  Close();
  Line("else {{");
  ++indent_;
  print(valid);
  Close();
}

// The epilogue once, in a loop over the rows of `q`. `valid` = columns there are, empty if all.
void KernelPrinter::PrintEpilogueRows(const Stmt& s, const std::string& q,
                                      const std::string& valid) {
  const BrGemm& g = s.gemm;
  OpenFor(g.row, "0", std::to_string(g.m));
  PrintEpilogueRow(s, q, valid);
  CloseFor();
}

// The row that g.row is bound to.
void KernelPrinter::PrintEpilogueRow(const Stmt& s, const std::string& q,
                                     const std::string& valid) {
  const BrGemm& g = s.gemm;
  const int nv = GemmVectors(g);
  const std::string row = symbols_[g.row.node()];
  for (int v = 0; v < nv; ++v) {
    std::string count;
    if (!valid.empty()) {
      count = Fresh('n');
      Line("const si64 {} = ge_min({} - {}, W);", count, valid, v * lanes_);
      Line("if ({} > 0) {{", count);
      ++indent_;
    }
    std::string cell = Fresh('x');
    Line("const v{} {} = {}[{} * {} + {}];", ge::Name(GemmType(g)), cell, q, row, nv, v);
    PrintEpilogueCell(s, cell, -1, v, count);
    if (!valid.empty()) Close();
  }
}

// An epilogue whose control flow differs between columns: one element at a time.
void KernelPrinter::PrintEpilogueScalar(const Stmt& s, const std::string& q) {
  const BrGemm& g = s.gemm;
  const std::string_view type = ge::Name(GemmType(g));
  std::string row = Fresh('i'), col = Fresh('i'), cell = Fresh('x');
  Line("for (si64 {0} = 0; {0} < {1}; {0}++)", row, g.m);
  Line("for (si64 {0} = 0; {0} < ge_min({1}, {2}); {0}++) {{", col, Index(g.n_valid), g.n);
  ++indent_;
  Line("const s{0} {1} = {2}[{3} * {4} + {5} / W][{5} % W];", type, cell, q, row, GemmVectors(g),
       col);
  symbols_[g.row.node()] = row;
  symbols_[g.col.node()] = col;
  vars_[g.acc] = {cell, false};
  PrintBody(s.body);
  Close();
}

}  // namespace ge::emit
