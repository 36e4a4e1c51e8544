// ConvTranspose with groups or dilations: weights get zeros where there are none.
//   dilations  W [c, o, k] -> [c, o, (k - 1) * d + 1], zeros between the taps
//   groups     some groups together are one ConvTranspose, with zeros between them, so that it has
//              channels enough for whole vectors; these are concatenated
// The dots of what results are much faster than loops over single channels, or over taps of which
// most meet no input, even though they multiply by zeros. Weights are constants, so all is done
// when the model is compiled.
#include "ops/conv_dense.h"

#include <algorithm>

#include "ir/expand.h"
#include "ops/window.h"

namespace ge {

namespace {

constexpr int64_t kMostParts = 64, kMostTogether = 16, kMostReach = 32;

// W with dilations[i] - 1 zeros behind each tap of axis i but the last.
ValueId Dilated(ExpandBuilder& e, ValueId weights, const std::vector<int64_t>& dilations) {
  const std::vector<Expr> w = e.Dims(weights);
  std::vector<Expr> apart = {w[0], w[1]}, joined = {w[0], w[1]}, reach, from, axes;
  std::vector<int64_t> pads = {0, 0};
  for (size_t i = 0; i < dilations.size(); ++i) {
    apart.insert(apart.end(), {w[2 + i], 1});
    pads.insert(pads.end(), {0, dilations[i] - 1});
    joined.push_back(w[2 + i] * dilations[i]);
    reach.push_back((w[2 + i] - 1) * dilations[i] + 1);
    from.push_back(0), axes.push_back(static_cast<int64_t>(2 + i));
  }
  pads.insert(pads.begin(), pads.size(), 0);
  const ValueId padded = e.Op("Pad", {e.Reshape(weights, apart), e.Ints(pads)});
  return e.Op("Slice", {e.Reshape(padded, joined), e.Exprs(from), e.Exprs(reach), e.Exprs(axes)});
}

// W [groups * c, o, ..] -> [groups * c, together * o, ..], zero but for the outputs of the own
// group.
ValueId Joined(ExpandBuilder& e, ValueId weights, int64_t groups, int64_t together) {
  if (together == 1) return weights;
  const std::vector<Expr> w = e.Dims(weights);
  std::vector<double> own(static_cast<size_t>(together * together), 0);
  for (int64_t i = 0; i < together; ++i) own[static_cast<size_t>(i * together + i)] = 1;
  Expr window = 1;
  for (size_t i = 2; i < w.size(); ++i) window *= w[i];
  const ValueId apart =
      e.Reshape(weights, {groups / together, together, FloorDiv(w[0], groups), 1, w[1], window});
  const ValueId placed =
      e.Op("Mul", {apart, e.Constant(e.Type(weights), {1, together, 1, together, 1, 1}, own)});
  std::vector<Expr> dims = w;
  dims[1] = w[1] * together;
  return e.Reshape(placed, dims);
}

// How many of `groups` with c input channels are computed together: whole vectors of channels, else
// as many as there may be; 0: not worth it.
int64_t GroupsTogether(int64_t groups, int64_t c) {
  constexpr int64_t kFewChannels = 4;
  int64_t most = 0;
  for (int64_t f = 1; f <= std::min(groups, kMostTogether); ++f) {
    if (groups % f != 0 || groups / f > kMostParts) continue;
    if (f * c % kMostTogether == 0) return f;
    most = f;
  }
  return most * c < kFewChannels ? 0 : most;
}

ValueId Part(ExpandBuilder& e, ValueId v, int64_t axis, int64_t part, int64_t parts) {
  if (v == kNone || parts == 1) return v;
  const Expr size = FloorDiv(e.Dims(v)[axis], parts);
  return e.Op("Slice", {v, e.Exprs({size * part}), e.Exprs({size * (part + 1)}), e.Ints({axis})});
}

}  // namespace

bool ExpandConvTransposeWithGaps(Graph& g, NodeId id) {
  ExpandBuilder e(g, id);
  const std::vector<Expr> x = e.Dims(e.In(0)), w = e.Dims(e.In(1));
  const bool small = x.size() == 3 || x.size() == 4;
  if (!small || w.size() != x.size() || e.Const(e.In(1)) == nullptr || !x[1].IsConst())
    return false;
  std::vector<int64_t> dilations = e.Ints("dilations");
  dilations.resize(x.size() - 2, 1);
  int64_t groups = e.Int("group", 1), together = 1;
  const bool dilated =
      std::any_of(dilations.begin(), dilations.end(), [](auto d) { return d > 1; });
  for (size_t i = 0; i < dilations.size(); ++i)
    if ((w[2 + i].value() - 1) * dilations[i] >= kMostReach) return false;
  if (groups > 1) together = GroupsTogether(groups, w[0].value() / groups);
  if (together == 0 || (groups == 1 && !dilated)) return false;
  ValueId weights = dilated ? Dilated(e, e.In(1), dilations) : e.In(1);
  weights = Joined(e, weights, groups, together);
  Attrs attrs = e.node().attrs;
  attrs.erase("dilations");
  attrs.erase("kernel_shape");
  attrs.erase("group");
  const int64_t parts = groups / together;
  std::vector<ValueId> results;
  for (int64_t p = 0; p < parts; ++p) {
    std::vector<ValueId> inputs = {Part(e, e.In(0), 1, p, parts), Part(e, weights, 0, p, parts)};
    if (e.Has(2)) inputs.push_back(Part(e, e.In(2), 0, p, parts));
    results.push_back(e.Op("ConvTranspose", inputs, attrs));
  }
  if (parts == 1) return e.Done(results);
  return e.Done({e.Op("Concat", results, {{"axis", int64_t{1}}})});
}

}  // namespace ge
