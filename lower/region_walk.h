// Loops over the storage of a region's outputs: physical order, pad lanes, halos, collapsed axes.
#pragma once

#include "lower/loops.h"
#include "lower/lowering_context.h"

namespace ge {

// body(logical index) for every element of a tensor that lies as `view` says, in the order of
// storage. Pad lanes run the body with a clamped index (stores to outputs of this view are zero
// there); halos of `outputs` that have this view are filled with zero.
void WalkStorage(LoweringContext& context, const View& view, const std::vector<ValueId>& outputs,
                 const LoopPolicy& policy, const std::function<void(const Index&)>& body,
                 LoopReport* report);
// Adjacent physical dims that every operand of a pointwise region walks as one, as (first, last).
std::vector<std::pair<int, int>> CollapsedDims(LoweringContext& context, const View& view);
// A kernel of its own that zeroes pad lanes and halos of `outputs`, which have one view.
void FillBorders(LoweringContext& context, const std::vector<ValueId>& outputs,
                 const LoopPolicy& policy, LoopReport* report);

bool HasBorder(const View& view);
bool SameStorage(const View& a, const View& b);

}  // namespace ge
