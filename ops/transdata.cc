// ge.TransData   y = x, element by element: the same tensor in another memory order.
// The layout of y is set by who inserts it; see fuse/layouts.cc.
#include "ops/shapes.h"

namespace ge {
namespace {

Status InferTransData(InferContext& c) {
  CopyType(c, 0, 0);
  return {};
}

tile::Val TransData(Lowering& l, int, const Index& i) { return l.Load(0, i); }

const OpDef& kTransData = Register({.name = "TransData",
                                    .domain = "ge",
                                    .infer = InferTransData,
                                    .element = TransData,
                                    .fusion = Fusion::kPointwise,
                                    .flops_per_element = 0,
                                    .samples = {"(f32[2,3,4])"}});

}  // namespace
}  // namespace ge
