// BrGemm of small types on a matrix unit (AMX): C tiles of up to 16 rows x 16 columns stay in tile
// registers over the whole sum; A is read in place, B in the groups of k that vector code reads
// too.
//
// One step takes up to 64 bytes of k: a tile of A meets a tile of B. Depths and rows are split
// evenly; what is left of a depth has two tiles of its own. Tiles of rows are equally high: where
// they do not divide m, the last one begins earlier and computes some rows again, which only
// overwrites equal numbers in the buffer that the epilogue reads. Shapes are set when they change,
// and the unit is released when the function ends.
//
// In a loop over blocks the epilogue of each runs row by row between the steps of the next, so that
// the vector unit works while the matrix unit does; one more turn of the loop does the last.
//
// Invariant: nothing of A or B is read beyond what vector code would read.
//
// With SocSpec::amx_in_c the instructions are C functions that do what Intel's manual says of them,
// so that whole kernels can be run and compared where there is no such unit.
#include <algorithm>

#include "emit/prelude.h"
#include "emit/printer.h"

namespace ge::emit {

using tile::BrGemm;
using tile::Stmt;
using tile::StmtKind;

namespace {

constexpr int kRows = 16, kRowBytes = 64, kRegisters = 8, kGroupBytes = 4;
constexpr int kGroups = kRowBytes / kGroupBytes;  // of k in one step

constexpr const char* kInstructions = R"c(
#define TILE_UNIT
#define ge_tile_config(c) __asm__ volatile("ldtilecfg %0" : : "m"(*(const struct { su8 b[64]; }*)(c)))
#define ge_tile_release() __asm__ volatile("tilerelease" : :)
#define ge_tile_zero(t) __asm__ volatile("tilezero %%tmm" #t : :)
#define ge_tile_load(t, p, s) __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #t : : "r"(p), "r"((si64)(s)))
#define ge_tile_store(t, p, s) __asm__ volatile("tilestored %%tmm" #t ", (%0,%1,1)" : : "r"(p), "r"((si64)(s)) : "memory")
#define ge_tile_dpbf16ps(c, a, b) __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #c : :)
#define ge_tile_dpbusd(c, a, b) __asm__ volatile("tdpbusd %%tmm" #b ", %%tmm" #a ", %%tmm" #c : :)
#define ge_tile_dpbssd(c, a, b) __asm__ volatile("tdpbssd %%tmm" #b ", %%tmm" #a ", %%tmm" #c : :)
#define TILE_FENCE() __asm__ volatile("" : : : "memory")
)c";

// What the instructions do, a trap where they would fault. Floats: DAZ and FTZ are those of the
// run, which sets both. Even and odd elements of a row are summed apart, then added to C.
constexpr const char* kModel = R"(
typedef struct { si32 rows[8], bytes[8]; vi32 row[8][16]; } tile_unit;
#define MODEL static __attribute__((noinline, unused)) void
#define TILE_CHECK(ok) do { if (!(ok)) __builtin_trap(); } while (0)
MODEL tile_clear(tile_unit* u) {
  for (int t = 0; t < 8; t++) {
    u->rows[t] = u->bytes[t] = 0;
    for (int r = 0; r < 16; r++) u->row[t][r] = (vi32){};
  }
}
MODEL tile_config(tile_unit* u, const su8* c) {
  tile_clear(u);
  TILE_CHECK(c[0] == 1 && c[1] == 0);
  for (int i = 2; i < 16; i++) TILE_CHECK(c[i] == 0);
  for (int t = 0; t < 8; t++) {
    u->rows[t] = c[48 + t];
    u->bytes[t] = c[16 + 2 * t] + 256 * c[17 + 2 * t];
    TILE_CHECK(u->rows[t] <= 16 && u->bytes[t] <= 64 && u->bytes[t] % 4 == 0 && (u->rows[t] == 0) == (u->bytes[t] == 0));
  }
}
MODEL tile_zero(tile_unit* u, int t) {
  TILE_CHECK(u->rows[t] > 0);
  for (int r = 0; r < 16; r++) u->row[t][r] = (vi32){};
}
MODEL tile_load(tile_unit* u, int t, const char* p, si64 stride) {
  tile_zero(u, t);
  for (int r = 0; r < u->rows[t]; r++) u->row[t][r] = (vi32)v_ld4n(p + r * stride, u->bytes[t] / 4);
}
MODEL tile_store(tile_unit* u, int t, char* p, si64 stride) {
  TILE_CHECK(u->rows[t] > 0);
  for (int r = 0; r < u->rows[t]; r++) v_st4n(p + r * stride, (vu32)u->row[t][r], u->bytes[t] / 4);
}
FN void tile_fit(tile_unit* u, int c, int a, int b) {
  TILE_CHECK(c != a && c != b && a != b && u->rows[c] > 0 && u->rows[c] == u->rows[a] && u->bytes[c] == u->bytes[b] && u->bytes[a] == 4 * u->rows[b]);
}
MODEL tile_dpbf16ps(tile_unit* u, int c, int a, int b) {
  tile_fit(u, c, a, b);
  for (int m = 0; m < u->rows[c]; m++) {
    vf32 even = {}, odd = {};
    for (int k = 0; k < u->rows[b]; k++) {
      const vi32 x = v_bc_i32(u->row[a][m][k]), y = u->row[b][k];
      even = v_fma(low_half(x), low_half(y), even);
      odd = v_fma(high_half(x), high_half(y), odd);
    }
    u->row[c][m] = (vi32)((vf32)u->row[c][m] + (even + odd));
  }
}
FN void tile_bytes(tile_unit* u, int c, int a, int b, int is_signed) {
  tile_fit(u, c, a, b);
  for (int m = 0; m < u->rows[c]; m++) {
    vu32 sum = (vu32)u->row[c][m];
    for (int k = 0; k < u->rows[b]; k++) {
      for (int i = 0; i < 4; i++) {
        const si32 x = u->row[a][m][k] << (24 - 8 * i);
        sum += (vu32)(v_bc_i32(is_signed ? x >> 24 : (si32)((su32)x >> 24)) * (u->row[b][k] << (24 - 8 * i) >> 24));
      }
    }
    u->row[c][m] = (vi32)sum;
  }
}
MODEL tile_dpbusd(tile_unit* u, int c, int a, int b) { tile_bytes(u, c, a, b, 0); }
MODEL tile_dpbssd(tile_unit* u, int c, int a, int b) { tile_bytes(u, c, a, b, 1); }
#define TILE_UNIT tile_unit unit; tile_clear(&unit);
#define ge_tile_config(c) tile_config(&unit, c)
#define ge_tile_release() tile_clear(&unit)
#define ge_tile_zero(t) tile_zero(&unit, t)
#define ge_tile_load(t, p, s) tile_load(&unit, t, p, s)
#define ge_tile_store(t, p, s) tile_store(&unit, t, (char*)(p), s)
#define ge_tile_dpbf16ps(c, a, b) tile_dpbf16ps(&unit, c, a, b)
#define ge_tile_dpbusd(c, a, b) tile_dpbusd(&unit, c, a, b)
#define ge_tile_dpbssd(c, a, b) tile_dpbssd(&unit, c, a, b)
#define TILE_FENCE()
)";

// How one BrGemm is cut.
struct Cut {
  int mt, nt, rows;       // tiles of C, rows of each
  int64_t steps;          // of whole depth
  int groups, rest;       // of k in a step, and in the last one if it has less
  bool keeps_b, keeps_a;  // all tiles of B (or A) of a step are in registers at once
};

Cut CutOf(const BrGemm& g) {
  Cut c{};
  c.mt = (g.m + kRows - 1) / kRows, c.nt = g.n / kRows;
  c.rows = (g.m + c.mt - 1) / c.mt;
  const int64_t groups = g.k.value() / g.k_group, steps = (groups + kGroups - 1) / kGroups;
  c.groups = static_cast<int>((groups + steps - 1) / steps);
  c.rest = static_cast<int>(groups % c.groups);
  c.steps = groups / c.groups;
  const int taken = c.mt * c.nt + (c.rest > 0 ? 2 : 0);
  c.keeps_b = c.mt >= c.nt && taken + c.nt + 1 <= kRegisters;
  c.keeps_a = !c.keeps_b && taken + c.mt + 1 <= kRegisters;
  return c;
}

// Registers: C, then A and B of a step, the last two for the rest of a depth.
struct Registers {
  int a, b, rest_a = kRegisters - 2, rest_b = kRegisters - 1;
};
Registers RegistersOf(const Cut& c) {
  const int first = c.mt * c.nt;
  return {first + (c.keeps_b ? c.nt : 0), c.keeps_b ? first : first + (c.keeps_a ? c.mt : 1)};
}

bool Stores(const std::vector<Stmt>& body, int32_t buffer) {
  return std::any_of(body.begin(), body.end(), [&](const Stmt& s) {
    return (s.kind == StmtKind::kStore && s.buffer == buffer) || Stores(s.body, buffer) ||
           Stores(s.orelse, buffer);
  });
}

int FirstRow(const BrGemm& g, const Cut& c, int i) { return std::min(i * c.rows, g.m - c.rows); }

// The 64 bytes of ldtilecfg.
std::string ShapesOf(const BrGemm& g) {
  const Cut c = CutOf(g);
  const Registers r = RegistersOf(c);
  int rows[kRegisters] = {}, bytes[kRegisters] = {};
  auto set = [&](int t, int height, int width) { rows[t] = height, bytes[t] = width; };
  for (int t = 0; t < c.mt * c.nt; ++t) set(t, c.rows, kRowBytes);
  if (c.steps > 0) {
    for (int i = 0; i < (c.keeps_a ? c.mt : 1); ++i) set(r.a + i, c.rows, c.groups * kGroupBytes);
    for (int j = 0; j < (c.keeps_b ? c.nt : 1); ++j) set(r.b + j, c.groups, kRowBytes);
  }
  if (c.rest > 0) set(r.rest_a, c.rows, c.rest * kGroupBytes), set(r.rest_b, c.rest, kRowBytes);
  std::string text = "{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0";
  for (int t = 0; t < kRegisters; ++t) text += fmt::format(", {}, 0", bytes[t]);
  for (int t = 0; t < kRegisters; ++t) text += ", 0, 0";
  for (int t = 0; t < kRegisters; ++t) text += fmt::format(", {}", rows[t]);
  return text + ", 0, 0, 0, 0, 0, 0, 0, 0}";
}

}  // namespace

std::string PreludeTiles(const SocSpec& soc) {
  return !soc.amx ? "" : soc.amx_in_c ? kModel : kInstructions;
}

bool KernelPrinter::OnTiles(const BrGemm& g) const {
  const bool flips = kernel_.buffers[g.a_buffer].dtype == DType::kI8 && !g.signed_a;
  return amx_ && !flips && !DependsOn(g.a, g.row) && g.k_group > 1 && g.k.IsConst() &&
         g.k.value() > 0 && g.n % kRows == 0 && (g.m + kRows - 1) / kRows * (g.n / kRows) <= 4;
}

// Before the function's body: the shapes of tiles that it uses, and which of them are set.
void KernelPrinter::InsertTileShapes(size_t at) {
  if (tile_shapes_.empty()) return;
  std::string text = "  static const su8 shapes[][64] = {\n";
  for (const std::string& shape : tile_shapes_) text += "    " + shape + ",\n";
  out_.insert(at, text + "  };\n  TILE_UNIT\n  int shape = -1;\n");
  Line("if (shape >= 0) ge_tile_release();");
}

void KernelPrinter::SetTileShapes(const BrGemm& g) {
  const std::string wanted = ShapesOf(g);
  auto it = std::find(tile_shapes_.begin(), tile_shapes_.end(), wanted);
  const auto number = it - tile_shapes_.begin();
  if (it == tile_shapes_.end()) tile_shapes_.push_back(wanted);
  Line("if (shape != {0}) {{ shape = {0}; ge_tile_config(shapes[{0}]); }}", number);
}

// The tiles of C, summed, if `live` holds (empty: always). `each` is printed after each step.
void KernelPrinter::PrintTileLoops(const BrGemm& g, const std::string& acc, const std::string& live,
                                   const std::function<void()>& each) {
  const Cut c = CutOf(g);
  const int element = kGroupBytes / g.k_group;
  for (const auto& [symbol, extent] : g.batch) OpenFor(symbol, "0", Index(extent));
  Line("const char* const {}A = b{} + {} * {};", acc, g.a_buffer, Index(g.a), element);
  Line("const char* const {}B = b{} + {} * {};", acc, g.b_buffer, Index(g.b), element);
  auto step = [&](const std::string& at, bool rest) {
    if (!live.empty()) Line("if ({}) {{", live), ++indent_;
    PrintTileStep(g, acc, at, rest);
    if (!live.empty()) Close();
    each();
  };
  if (c.steps > 0) {
    Line("for (si64 {0}k = 0; {0}k < {1}; {0}k++) {{", acc, c.steps);
    ++indent_;
    step(acc + "k", false);
    Close();
  }
  if (c.rest > 0) {
    step(fmt::format("{}L", c.steps), true);
  }
  for (size_t i = 0; i < g.batch.size(); ++i) CloseFor();
}

void KernelPrinter::PrintTileStep(const BrGemm& g, const std::string& acc, const std::string& step,
                                  bool rest) {
  const Cut c = CutOf(g);
  const Registers r = RegistersOf(c);
  const int element = kGroupBytes / g.k_group;
  const std::string a_row = Index(g.a_row * element), b_row = Index(g.b_k * element);
  const bool keeps_a = c.keeps_a && !rest, keeps_b = c.keeps_b && !rest;
  auto load_a = [&](int i, int to) {
    Line("ge_tile_load({}, {}A + {}L * {} + {} * {}, {});", to, acc, FirstRow(g, c, i), a_row, step,
         c.groups * kGroupBytes, a_row);
  };
  auto load_b = [&](int j, int to) {
    Line("ge_tile_load({}, {}B + {} * {} * {} + {}, {});", to, acc, step, c.groups, b_row,
         j * kRowBytes, b_row);
  };
  for (int line = 0; g.prefetch > 0 && !rest && line < c.groups * c.nt; ++line)
    PrintPrefetch(g, acc,
                  fmt::format("({} * {} + {}) * {} + {}", step, c.groups, line / c.nt, b_row,
                              line % c.nt * kRowBytes));
  const char* dot = g.k_group == 2 ? "bf16ps" : g.signed_a ? "bssd" : "busd";
  for (int i = 0; keeps_a && i < c.mt; ++i) load_a(i, r.a + i);
  for (int j = 0; keeps_b && j < c.nt; ++j) load_b(j, r.b + j);
  auto meet = [&](int i, int j) {
    const int a = rest ? r.rest_a : r.a + (keeps_a ? i : 0);
    const int b = rest ? r.rest_b : r.b + (keeps_b ? j : 0);
    if (!keeps_b) load_b(j, b);
    Line("ge_tile_dp{}({}, {}, {});", dot, i * c.nt + j, a, b);
  };
  if (keeps_a) {
    for (int j = 0; j < c.nt; ++j) {
      load_b(j, r.b);
      for (int i = 0; i < c.mt; ++i)
        Line("ge_tile_dp{}({}, {}, {});", dot, i * c.nt + j, r.a + i, r.b);
    }
    return;
  }
  for (int i = 0; i < c.mt; ++i) {
    load_a(i, rest ? r.rest_a : r.a);
    for (int j = 0; j < c.nt; ++j) meet(i, j);
  }
}

void KernelPrinter::PrintTileStores(const BrGemm& g, const std::string& q) {
  const Cut c = CutOf(g);
  for (int i = 0; i < c.mt; ++i) {
    for (int j = 0; j < c.nt; ++j)
      Line("ge_tile_store({}, (char*){} + {}, {});", i * c.nt + j, q,
           (FirstRow(g, c, i) * c.nt + j) * kRowBytes, c.nt * kRowBytes);
  }
}

void KernelPrinter::PrintGemmTiles(const Stmt& s, const std::string& acc) {
  const BrGemm& g = s.gemm;
  const Cut c = CutOf(g);
  const std::string q = Fresh('q');
  Open();
  Line("v{} {}[{}];", ge::Name(GemmType(g)), q, g.m * c.nt);
  BeginTiles(g);
  PrintTileLoops(g, acc, "", [] {});
  PrintTileStores(g, q);
  if (OneFlow(g.col, s.body)) {
    PrintStored(g, [&](const std::string& valid) { PrintEpilogueRows(s, q, valid); });
  } else {
    PrintEpilogueScalar(s, q);
  }
  Close();
}

void KernelPrinter::BeginTiles(const BrGemm& g) {
  const Cut c = CutOf(g);
  Line("TILE_FENCE();");
  SetTileShapes(g);
  for (int t = 0; t < c.mt * c.nt; ++t) Line("ge_tile_zero({});", t);
}

// A loop whose turns do nothing but one product each, of which none reads what an epilogue writes.
bool KernelPrinter::IsPipeline(const Stmt& loop) const {
  if (!amx_ || loop.body.size() != 1 || loop.body[0].kind != StmtKind::kBrGemm) return false;
  const Stmt& s = loop.body[0];
  const BrGemm& g = s.gemm;
  return OnTiles(g) && OneFlow(g.col, s.body) && !Stores(s.body, g.a_buffer) &&
         !Stores(s.body, g.b_buffer) &&
         std::all_of(g.batch.begin(), g.batch.end(),
                     [](const auto& batch) { return batch.second.IsConst(); });
}

void KernelPrinter::PrintTilePipeline(const Stmt& loop) {
  const Stmt& s = loop.body[0];
  const BrGemm& g = s.gemm;
  const Cut c = CutOf(g);
  int64_t steps = c.steps + (c.rest > 0 ? 1 : 0);
  for (const auto& batch : g.batch) steps *= std::max<int64_t>(batch.second.value(), 1);
  const std::string q = Fresh('q'), acc = Fresh('c'), end = Fresh('e'), row = Fresh('r'),
                    turn = Fresh('i'), last = Fresh('i'), live = Fresh('l');
  Open();
  Line("v{} {}[{}];", ge::Name(GemmType(g)), q, g.m * c.nt);
  Line("const si64 {} = {};", end, Index(loop.extent));
  Line("si64 {} = {};", row, g.m);  // the next of the block before
  Line("for (si64 {0} = 0; {0} <= {1}; {0}++) {{", turn, end);
  ++indent_;
  OpenScope();
  Bind(loop.symbol, turn);
  const int depth = depth_[loop.symbol.node()];
  Line("const si64 {} = {} - 1;", last, turn);
  Line("const int {} = {} < {};", live, turn, end);
  Line("if ({}) {{", live);
  ++indent_;
  BeginTiles(g);
  Close();
  PrintTileLoops(g, acc, live, [&] {
    Line("for (const si64 {0}N = ge_min({0} + {1}, {2}); {0} < {0}N; {0}++) {{", row,
         (g.m + steps - 1) / steps, g.m);
    ++indent_;
    OpenScope();
    Bind(loop.symbol, last);
    Bind(g.row, row);
    PrintStored(g, [&](const std::string& valid) { PrintEpilogueRow(s, q, valid); });
    CloseFor();
    symbols_[loop.symbol.node()] = turn;
    depth_[loop.symbol.node()] = depth;
  });
  Line("if ({}) {{", live);
  ++indent_;
  PrintTileStores(g, q);
  Line("{} = 0;", row);
  Close();
  CloseFor();
  Close();
}

}  // namespace ge::emit
