// What matrix products and convolutions share: register tiles, row loops,
// operands in memory, packing, and the kernels of one region under
// construction.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "lower/cube.h"
#include "lower/lowering_context.h"

namespace ge {

// a / b, rounded up, of positive numbers.
inline int64_t CeilOf(int64_t a, int64_t b) { return (a + b - 1) / b; }

// m rows times nv vectors of columns, all accumulators in registers.
struct GemmTile {
  int m = 1, nv = 1;
};
// The largest m for nv vectors that leaves registers for one row of B and one
// element of A.
int MaxRows(const SocSpec& soc, int nv);
// The tile with the fewest cycles over all of rows x cols (hints where
// symbolic). `cols_per_panel` = 0, or a multiple of the vector width that
// panels must divide. `most_rows`: if not 0, tiles are no taller. `narrow`: the
// last of several panels is one vector wide where that is enough.
GemmTile ChooseTile(int64_t rows, int64_t cols, const SocSpec& soc, int64_t cols_per_panel = 0,
                    int most_rows = 0, bool narrow = false);
bool HasNarrowPanel(int64_t cols, int nv, const SocSpec& soc);

// ChooseTile's, with as many rows as registers allow where their number is not
// known.
GemmTile TileFor(Expr rows, int64_t cols, const SocSpec& soc, int64_t cols_per_panel, bool narrow);
bool FitsRegisters(const SocSpec& soc, int m, int nv, int64_t cols_per_panel);
// Cycles of one step of k for `rows` rows of one panel, in tiles of at most m rows.
double TileCycles(int64_t rows, int m, int nv, const SocSpec& soc);
// Tiles of rows whose number is not known are no taller: the rest goes in halves of it.
inline constexpr int kMostSymbolicRows = 16;

// A dot whose tiling is open, at hint sizes: `lines` times `line` rows (a convolution's tiles end
// with a line of pixels, and its tasks are lines) times `cols`.
struct OpenDot {
  int64_t line = 1, lines = 1, cols = 1, depth = 1;
  int64_t element_bytes = 4, cols_per_panel = 0;
  int height = 0;       // of tiles, where the number of rows is not known; else 0
  bool blocks = false;  // can the depth go in blocks?
};
// A few other choices that fit the chip, the best by the cost model first.
std::vector<DotChoice> RankChoices(const OpenDot& dot, const DotChoice& chosen, const SocSpec& soc);

// The same for k in groups on a chip whose matrix unit multiplies such (lower/cube_tiles.cc).
bool OnMatrixUnit(const SocSpec& soc, int k_group);
int MostUnitRows(int nv);  // beside each other nv tiles
GemmTile ChooseUnitTile(int64_t rows, int64_t cols, const SocSpec& soc);
GemmTile UnitTileFor(Expr rows, int64_t cols, const SocSpec& soc);
bool FitsUnit(int m, int nv);
// All other forms that fit, for `rows` rows.
std::vector<DotChoice> UnitChoices(Expr rows, int64_t cols, const DotChoice& chosen);

// Channels of a block that convolutions of this type read best: those of a step of a matrix unit.
int64_t BlockChannels(const SocSpec& soc, DType type, int64_t channels);

// body(first row, m) over tiles that cover rows [0, rows) exactly, m at most
// `max_m`. Constant rows are split evenly; symbolic ones into whole tiles and
// powers of two.
void ForRowTiles(tile::Builder& b, Expr rows, int max_m,
                 const std::function<void(Expr, int)>& body);
// Symbolic rows are split evenly too, by one loop whose body is there once for each m.
void ForEvenRowTiles(tile::Builder& b, Expr rows, int max_m,
                     const std::function<void(Expr, int)>& body);

// Where an operand's element (row, k) lies: base + row * row_stride + k *
// k_stride.
struct Operand {
  int buffer = -1;
  Expr base, row_stride, k_stride;
};
// The operand that `value` (a Load) is, as a function of the two symbols;
// nullopt if it is no load of this type or not linear.
std::optional<Operand> AsOperand(const tile::Builder& b, tile::Val value, Expr row, Expr k,
                                 DType type = DType::kF32);

// Elements to the next panel of weights, if it is worth fetching while several tiles use this one:
// weights that come from memory, and room for two panels in the L2 cache. Else 0.
int PanelAhead(const SocSpec& soc, int64_t panel, int64_t panels, int64_t element_bytes);
// The same for a matrix product; of a panel that is too large for that, what lies a little ahead.
int WeightsAhead(const SocSpec& soc, int64_t panel, int64_t panels, int64_t element_bytes);

// The index over `dims` of flat element `flat`.
Index SplitIndex(const std::vector<Expr>& dims, Expr flat);

// Float elements of a constant, whatever its dtype.
float FloatAt(const Constant& c, int64_t i);
bool IsSmallFloat(DType t);  // computed in f32

// Builds kernels of one region. Temporaries and packs are numbered in order of
// creation.
class CubeBuild {
 public:
  CubeBuild(const Graph& g, const Region& region, const SocSpec& soc)
      : g(g), region(region), soc(soc) {}
  const Graph& g;
  const Region& region;
  const SocSpec& soc;
  Lowered lowered;

  int AddTemp(Expr bytes);
  int AddPack(Pack pack);
  // body is called twice: a trial that finds which values the kernel uses, then
  // the kernel.
  void AddKernel(const std::string& schedule, const std::function<void(LoweringContext&)>& body);
  // From now on `fixed` is what the policy says about the anchor or the problem.
  void Fix(const Policy& policy, const std::string& problem);
  DotChoice fixed;
  // A part of `fixed` cannot be: what, and what would be allowed.
  void Refuse(const std::string& what, const std::string& allowed);
  void RefuseForm(const std::string& form);  // unless it is the form at hand
  void NoConvolution();                      // refuses every form
  void KeepTileOnly(const std::string& of);  // refuses all other fields but the form
  GemmTile Tile(Expr rows, int64_t cols, int64_t cols_per_panel, bool narrow = false,
                int k_group = 1);
  int64_t TaskRows(int64_t by_model, Expr all);  // rows of the result in a task
  // The last kernel is of the problem: what was chosen for it, and what else would do.
  void NoteChoice(const DotChoice& chosen, std::vector<DotChoice> others);
  void NoteWinograd(const GemmTile& tile);
  // Zeroes pad lanes and halos of the region's outputs. `lanes_done`: the
  // kernel itself zeroed pad lanes where there is no halo.
  void AddBorders(bool lanes_done = false);

 private:
  std::string problem_;
  bool of_node_ = false;  // does `fixed` come from a line about the node?
};

// The same for bytes (lower/cube_byte_tiles.cc): the tallest tile, the one for `rows`, typically so
// many, and what else would do.
int MaxByteRows(const SocSpec& soc, int nv);
GemmTile ByteTile(CubeBuild& build, Expr rows, int64_t typical, int64_t cols);
std::vector<DotChoice> ByteChoices(Expr rows, OpenDot dot, const DotChoice& chosen,
                                   const SocSpec& soc);

Lowered LowerCubeMatMul(const Graph& g, const Region& region, const SocSpec& soc,
                        const Policy& policy);
Lowered LowerCubeAttend(const Graph& g, const Region& region, const SocSpec& soc,
                        const Policy& policy);
Lowered LowerCubeConv(const Graph& g, const Region& region, const SocSpec& soc,
                      const Policy& policy);
Lowered LowerCubeBytes(const Graph& g, const Region& region, const SocSpec& soc,
                       const Policy& policy);
Lowered LowerCubeRecurrent(const Graph& g, const Region& region, const SocSpec& soc);
Lowered LowerCubeNBits(const Graph& g, const Region& region, const SocSpec& soc);
bool SupportsNBits(const Graph& g, const Region& region, const SocSpec& soc);
bool SupportsRecurrent(const Graph& g, const Region& region);
bool SupportsBytes(const Graph& g, const Region& region);
bool SupportsMatMul(const Graph& g, const Region& region);
bool SupportsAttend(const Graph& g, const Region& region, const SocSpec& soc);
bool SupportsConv(const Graph& g, const Region& region, const SocSpec& soc);

}  // namespace ge
