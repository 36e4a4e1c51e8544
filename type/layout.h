// Layout: the memory order of a tensor, as a value. A list of physical dims from outermost to
// innermost; each names a logical axis and the number of logical elements that one step spans.
//
//   ND (row-major)     {}  (empty list: every axis once, in order)
//   NHWC of rank 4     {(0,1) (2,1) (3,1) (1,1)}
//   NC1HWC0, C0 = 16   {(0,1) (1,16) (2,1) (3,1) (1,1)}
//
// An axis that occurs twice is tiled: c -> (c / 16, c % 16). The last tile may be ragged: physical
// extents round up and the lanes past the end are pad lanes (the producer writes zeros there).
// Text form: "nd", "nc1hwc0:16" (rank 3: nc1wc0, 5: nc1dhwc0), "nhwc" (nwc, ndhwc), or the list
// "[0:1 1:16 2:1 3:1 1:1]".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/text.h"
#include "expr/expr.h"

namespace ge {

struct LayoutDim {
  int axis = 0;
  int64_t tile = 1;
  friend bool operator==(const LayoutDim&, const LayoutDim&) = default;
};

struct Layout {
  std::vector<LayoutDim> dims;
  bool IsNd() const { return dims.empty(); }
  friend bool operator==(const Layout&, const Layout&) = default;
};

Layout Nd();
Layout Nc1hwc0(int rank, int64_t c0);  // rank 3, 4 or 5: N, C, spatial...
Layout ChannelsLast(int rank);         // NHWC and kin
std::string ToString(const Layout& layout);
Result<Layout> ParseLayout(std::string_view text);
Result<Layout> ParseLayout(TextReader& reader);  // inside a larger text

// Rows before and after an axis (one that is not tiled) that a buffer holds beyond the tensor; the
// producer fills them with `fill`, as stored (all halos of one buffer have one fill).
struct Halo {
  int axis = 0;
  int64_t lo = 0, hi = 0;
  int64_t fill = 0;
  friend bool operator==(const Halo&, const Halo&) = default;
};

// How the elements of a logical tensor lie in a buffer. Strides and offset count elements.
struct View {
  Layout layout;
  std::vector<Expr> dims;        // logical
  std::vector<Expr> extents;     // physical, halo included
  std::vector<Expr> strides;     // physical
  std::vector<LayoutDim> order;  // layout.dims, or the identity for ND: one per physical dim
  std::vector<int64_t> modulo;   // per physical dim: index = (axis / tile) % modulo; 0 = no modulo
  std::vector<int64_t> halo_lo, halo_hi;  // per physical dim
  Expr offset = 0;

  // Element offset of a logical index. Indices in the halo (-lo .. dim+hi-1) are allowed.
  Expr Offset(const std::vector<Expr>& index) const;
  // Physical coordinates of a logical index, halo offset added; and back (for loops over storage).
  std::vector<Expr> Physical(const std::vector<Expr>& index) const;
  std::vector<Expr> Logical(const std::vector<Expr>& physical) const;
  Expr Elements() const;     // size of a dense buffer: product of extents
  bool HasPadLanes() const;  // a tiled axis that its tile does not divide
  bool HasHalo() const;
};

// A dense view.
View DenseView(const Layout& layout, const std::vector<Expr>& dims,
               const std::vector<Halo>& halo = {});

}  // namespace ge
