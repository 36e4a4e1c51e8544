// The geometry of one convolution, and its input as the loops see it: padded, perhaps blocked.
#pragma once

#include "lower/cube_gemm.h"
#include "ops/window.h"

namespace ge {

// Rank 3 and 4 alike: a missing height is 1.
struct ConvShape {
  Expr n, c, h, w, o, oh, ow;
  int64_t kh = 1, kw = 1, sh = 1, sw = 1, dh = 1, dw = 1, group = 1;
  Expr pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
  // A transposed convolution as a forward one (ops/window.h, PhaseWindow): output (y, x) stands for
  // up_h * up_w outputs from (y * up_h - cut_h, x * up_w - cut_w) on, each with weights of its own.
  // h, w, kh, kw, oh, ow are those of the forward form.
  bool transposed = false;
  int64_t up_h = 1, up_w = 1, cut_h = 0, cut_w = 0;
  // Groups of few channels that count as one, with zeros for the weights between them; `group` is
  // the number of what is left.
  int64_t fold = 1;
  int rank = 4;
  bool turned = false;  // h and w stand for each other: images one pixel wide are rows
  bool has_bias = false;
  bool over = false;  // the result is to lie where the input does (driver/write_over.cc)
  ValueId x = kNone, weights = kNone, bias = kNone, y = kNone;
  DType type = DType::kF32;    // of the padded input: f32, bf16, or the bytes of a ConvInteger
  int64_t zero = 0;            // what pads count as
  ValueId zero_value = kNone;  // the same where it is known at run time only: one element
  int64_t ChannelsPerGroup() const { return c.value() / group; }
  int64_t Phases() const { return up_h * up_w; }
  // Logical index of an image element.
  Index At(Expr n, Expr c, Expr h, Expr w) const;
};
// How many groups of c to o channels are computed as one, so that whole vectors of channels are
// read; 0: no number of them will do.
int64_t GroupsTogether(int64_t group, int64_t c, int64_t o);
// nullopt if the node is no convolution that the cube engine can do (rank, symbolic channels, ...).
std::optional<ConvShape> ConvShapeOf(const Graph& g, const Node& node);

// The weight of output channel o and channel c of its group at (i, j) of the window, in one phase.
// `source`: the dims of the weights as the model has them.
float WeightAt(const ConvShape& s, const Constant& w, int64_t o, int64_t c, int64_t i, int64_t j,
               int64_t phase = 0);

// Element (n, c1, y, x, c0) of the padded input lies at base + sum of coordinate * stride; y = 0 is
// row -pad_top, x = 0 column -pad_left. Channels are c1 * c0_extent + c0.
struct PaddedInput {
  int temp = -1;  // temporary that holds it; -1: the value itself
  int64_t c0 = 1;
  // Steps of k in one row of the window and one block of channels, where they are read as one run:
  // with those that fill the last group of k, whose weights are zero. 0: pixel by pixel.
  int64_t row_depth = 0;
  Expr c1, height, width;      // extents; of the buffer
  Expr base, sn, sc1, sy, sx;  // the stride of c0 is 1
  Expr elements;
  // The buffer has no rows (columns) for the pads: windows are to be cut at the edges.
  bool cut_rows = false, cut_columns = false;
};
// The input where it lies, or a copy that a kernel of `build` makes.
// `cuts`: the kernel can cut its windows, so a halo is not needed.
PaddedInput PadInput(CubeBuild& build, const ConvShape& s, bool cuts = false);
// Kernels make channels beside each other, but a result of rank 3 in ND has pixels beside each
// other: it is written to a temporary as it comes, which another kernel turns, with what is fused.
// Where that does not pay, all goes to the result at once.
class TurnedOutput {
 public:
  TurnedOutput(CubeBuild& build, const ConvShape& s);
  void Declare(LoweringContext& c);  // in the kernel that makes the values
  void Yield(LoweringContext& c, Expr n, Expr channel, Expr y, Expr x, tile::Val value) const;
  void Finish();  // after it

 private:
  CubeBuild& build_;
  const ConvShape& s_;
  int temp_ = -1, arg_ = -1;
  int64_t pitch_ = 0;  // elements of a pixel
};

// Can the region's only result take the place of the input: the same bytes for the same elements,
// read by the convolution alone?
bool MayWriteOver(const CubeBuild& build, const ConvShape& s, const PaddedInput& in);
// Says so of the last kernel: see LoweredKernel::over.
void NoteWritesOver(CubeBuild& build, const ConvShape& s);
// A loop that copies `count` elements of one buffer to another.
void CopySpan(tile::Builder& b, int from_buffer, Expr from, int to_buffer, Expr to, Expr count);

int PaddedArg(LoweringContext& c, const ConvShape& s, const PaddedInput& in);

// Rows too short for tiles of a matrix unit: all of an image's are one run of pixels, as wide as
// the padded input, of which those beyond the output's width are dropped. The width, or 0: by rows.
int64_t RunPitch(const SocSpec& soc, int k_group, const ConvShape& s, const PaddedInput& in);

// How many lines of an image a register tile takes. Of short ones it takes several where it reads
// its weights (`panel_bytes`) from beyond L1, so that they are read fewer times.
int64_t LinesOfTile(const CubeBuild& build, const ConvShape& s, const GemmTile& tile, int k_group,
                    int most_rows, int64_t panel_bytes);
// body(first line, how many), `lines` at a time, for those of one task: [first, first + chunk).
void ForLines(tile::Builder& b, const ConvShape& s, Expr first, int64_t chunk, int64_t lines,
              const std::function<void(Expr, int64_t)>& body);
// The rows of `g` are pixels of `lines` lines of the output.
void SpreadOverLines(LoweringContext& c, const ConvShape& s, const PaddedInput& in, int64_t lines,
                     tile::BrGemm* g);

// The constant zero point of a ConvInteger's input; false if it is none.
bool ConstantZero(const Graph& g, const Node& node, int operand, int64_t* zero);

// Pad lanes of outputs without a halo are zeroed by the kernel that writes the last block; the
// others wait for CubeBuild::AddBorders.
void ZeroPadLanes(LoweringContext& c, const ConvShape& s, Expr n, Expr y, Expr x);

// Larger depthwise windows are loops over copied inputs, one column at a time.
constexpr int64_t kMostTaps = 49;
Lowered LowerDepthwise(const Graph& g, const Region& region, const SocSpec& soc,
                       const Policy& policy, const ConvShape& s);
// The name under which a tuning file knows all convolutions of this kind and size.
std::string ConvProblem(const Graph& g, const ConvShape& s);
// Is F(4x4, 3x3) possible and allowed by the tolerance; and faster by the cost model?
bool AllowsWinograd(const ConvShape& s, const Policy& policy);
bool PrefersWinograd(const ConvShape& s, const SocSpec& soc, const Policy& policy);
Lowered LowerWinograd(const Graph& g, const Region& region, const SocSpec& soc,
                      const Policy& policy, const ConvShape& s);
// The same for windows of one row: F(4, 3) or F(2, 5).
bool AllowsWinogradRow(const ConvShape& s, const Policy& policy);
bool PrefersWinogradRow(const ConvShape& s, const SocSpec& soc, const Policy& policy);
Lowered LowerWinogradRow(const Graph& g, const Region& region, const SocSpec& soc,
                         const Policy& policy, const ConvShape& s);
// Should chunks that follow each other be panels of the same rows, not rows of the same panel? A
// worker claims neighbours: it then reads mostly what it wrote itself, and few lines of activations
// are in the caches of two workers, from where they are slow to write again. But each worker reads
// all the weights.
bool RowsOutside(const SocSpec& soc, double weight_bytes, const ConvShape& s);
// Chunk p of images x panels x parts of the rows, in the one order or the other.
struct ChunkPlace {
  Expr n, panel, part;
};
ChunkPlace PlaceOfChunk(Expr p, Expr images, Expr panels, Expr parts, bool rows_outside);
// Output rows of a chunk that do enough work for one worker's turn.
int64_t RowsPerChunk(const SocSpec& soc, double ns_per_row, int64_t rows, double other_chunks);

}  // namespace ge
