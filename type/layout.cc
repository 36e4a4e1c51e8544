// Layouts and dense views. Physical dim p of a view holds (index[axis] / tile) % modulo + halo_lo.
#include "type/layout.h"

#include <algorithm>

#include "base/check.h"

namespace ge {
namespace {

struct Named {
  const char* name;
  int rank;
};
constexpr Named kBlocked[] = {{"nc1wc0", 3}, {"nc1hwc0", 4}, {"nc1dhwc0", 5}};
constexpr Named kLast[] = {{"nwc", 3}, {"nhwc", 4}, {"ndhwc", 5}};

// Every axis must be covered down to single elements, each tile splitting the one above it.
Status CheckDims(const std::vector<LayoutDim>& dims) {
  for (size_t i = 0; i < dims.size(); ++i) {
    const LayoutDim& d = dims[i];
    if (d.axis < 0 || d.axis > 63) return Invalid("layout: axis out of range");
    if (d.tile < 1) return Invalid("layout: tile below 1");
    int64_t finer = 0;
    for (size_t j = i + 1; j < dims.size() && !finer; ++j) {
      if (dims[j].axis == d.axis) finer = dims[j].tile;
    }
    if (finer ? (d.tile <= finer || d.tile % finer != 0) : d.tile != 1) {
      return Invalid("layout: the tiles of axis " + std::to_string(d.axis) +
                     " do not divide each other down to 1");
    }
  }
  return {};
}

}  // namespace

Layout Nd() { return {}; }

Layout Nc1hwc0(int rank, int64_t c0) {
  Layout l;
  l.dims = {{0, 1}, {1, c0}};
  for (int axis = 2; axis < rank; ++axis) l.dims.push_back({axis, 1});
  if (c0 > 1) l.dims.push_back({1, 1});
  return l;
}

Layout ChannelsLast(int rank) {
  Layout l;
  l.dims = {{0, 1}};
  for (int axis = 2; axis < rank; ++axis) l.dims.push_back({axis, 1});
  l.dims.push_back({1, 1});
  return l;
}

std::string ToString(const Layout& layout) {
  if (layout.IsNd()) return "nd";
  for (const Named& n : kLast) {
    if (layout == ChannelsLast(n.rank)) return n.name;
  }
  const int64_t c0 = layout.dims.size() > 1 ? layout.dims[1].tile : 1;
  for (const Named& n : kBlocked) {
    if (c0 > 1 && layout == Nc1hwc0(n.rank, c0))
      return std::string(n.name) + ":" + std::to_string(c0);
  }
  std::string out = "[";
  for (const LayoutDim& d : layout.dims) {
    if (out.size() > 1) out += " ";
    out += std::to_string(d.axis) + ":" + std::to_string(d.tile);
  }
  return out + "]";
}

Result<Layout> ParseLayout(TextReader& reader) {
  if (reader.Accept("nd")) return Nd();
  for (const Named& n : kLast) {
    if (reader.Accept(n.name)) return ChannelsLast(n.rank);
  }
  for (const Named& n : kBlocked) {
    if (!reader.Accept(n.name)) continue;
    GE_TRY(reader.Expect(":"));
    GE_ASSIGN(int64_t c0, reader.Int());
    if (c0 < 1) return reader.Fault("block size below 1");
    return Nc1hwc0(n.rank, c0);
  }
  Layout l;
  GE_TRY(reader.Expect("["));
  while (!reader.Accept("]")) {
    GE_ASSIGN(int64_t axis, reader.Int());
    GE_TRY(reader.Expect(":"));
    GE_ASSIGN(int64_t tile, reader.Int());
    if (axis < 0 || axis > 63) return reader.Fault("layout axis out of range");
    l.dims.push_back({static_cast<int>(axis), tile});
  }
  if (l.dims.empty()) return reader.Fault("an empty layout list");
  GE_TRY(CheckDims(l.dims));
  return l;
}

Result<Layout> ParseLayout(std::string_view text) {
  TextReader reader(text);
  GE_ASSIGN(Layout l, ParseLayout(reader));
  GE_TRY(reader.ExpectEnd());
  return l;
}

View DenseView(const Layout& layout, const std::vector<Expr>& dims, const std::vector<Halo>& halo) {
  View v;
  v.layout = layout;
  v.dims = dims;
  v.order = layout.dims;
  if (layout.IsNd()) {
    for (size_t i = 0; i < dims.size(); ++i) v.order.push_back({static_cast<int>(i), 1});
  }
  const size_t n = v.order.size();
  v.modulo.assign(n, 0);
  v.halo_lo.assign(n, 0);
  v.halo_hi.assign(n, 0);
  v.extents.resize(n);
  v.strides.resize(n);
  for (size_t p = 0; p < n; ++p) {
    const LayoutDim& d = v.order[p];
    GE_CHECK(d.axis < static_cast<int>(dims.size()),
             "layout " + ToString(layout) + " of rank " + std::to_string(dims.size()));
    for (size_t q = 0; q < p; ++q) {
      if (v.order[q].axis == d.axis) v.modulo[p] = v.order[q].tile / d.tile;
    }
    if (v.modulo[p] == 0) {
      for (const Halo& h : halo) {
        if (h.axis != d.axis) continue;
        GE_CHECK(d.tile == 1, "halo on a tiled axis");
        v.halo_lo[p] = h.lo;
        v.halo_hi[p] = h.hi;
      }
    }
    v.extents[p] = v.modulo[p] ? Expr(v.modulo[p])
                               : CeilDiv(dims[d.axis], d.tile) + v.halo_lo[p] + v.halo_hi[p];
  }
  Expr stride = 1;
  for (size_t p = n; p-- > 0;) {
    v.strides[p] = stride;
    stride = stride * v.extents[p];
  }
  return v;
}

std::vector<Expr> View::Physical(const std::vector<Expr>& index) const {
  GE_CHECK(index.size() == dims.size(), "index of another rank");
  std::vector<Expr> out;
  out.reserve(order.size());
  for (size_t p = 0; p < order.size(); ++p) {
    Expr i = FloorDiv(index[order[p].axis], order[p].tile);
    if (modulo[p]) i = Mod(i, modulo[p]);
    out.push_back(i + halo_lo[p]);
  }
  return out;
}

Expr View::Offset(const std::vector<Expr>& index) const {
  const std::vector<Expr> physical = Physical(index);
  Expr out = offset;
  for (size_t p = 0; p < physical.size(); ++p) out = out + physical[p] * strides[p];
  return out;
}

std::vector<Expr> View::Logical(const std::vector<Expr>& physical) const {
  GE_CHECK(physical.size() == order.size(), "physical coordinates of another rank");
  std::vector<Expr> out(dims.size(), Expr(0));
  for (size_t p = 0; p < order.size(); ++p) {
    out[order[p].axis] += (physical[p] - halo_lo[p]) * order[p].tile;
  }
  return out;
}

Expr View::Elements() const { return Product(extents); }

bool View::HasPadLanes() const {
  for (size_t p = 0; p < order.size(); ++p) {
    if (modulo[p] == 0 && order[p].tile > 1 && !DivisibleBy(dims[order[p].axis], order[p].tile))
      return true;
  }
  return false;
}

bool View::HasHalo() const {
  const auto positive = [](int64_t h) { return h > 0; };
  return std::any_of(halo_lo.begin(), halo_lo.end(), positive) ||
         std::any_of(halo_hi.begin(), halo_hi.end(), positive);
}

}  // namespace ge
