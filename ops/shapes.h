// Pieces that the inference and lowering of many operators share: broadcasting, axes, integer
// facts, linear indices. No operator is defined here.
//
// Invariant: what an operator's inference assumed about axes and shapes, its lowering reads through
// the same function, so that the two cannot disagree.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/opdef.h"

namespace ge {

using Dims = std::vector<Expr>;

// numpy broadcasting of two shapes. Different symbolic dims get a run-time check and a Select.
Result<Dims> Broadcast(InferContext& ctx, const Dims& a, const Dims& b);
// Of all present inputs in [first, last).
Result<Dims> BroadcastInputs(InferContext& ctx, int first, int last);
// `from` must broadcast one way to `to`: a fault or run-time checks if not.
Status CheckBroadcastsTo(InferContext& ctx, const Dims& from, const Dims& to);
// The element of `dims`-shaped facts that lies at a broadcast position of `out` (both constant
// shapes).
int64_t BroadcastPosition(int64_t out_position, const Dims& out, const Dims& in);
// a and b must be equal at run time; a fault if they never are. Returns the better known one.
Result<Expr> SameDim(InferContext& ctx, Expr a, Expr b, std::string_view what);

// -r <= axis < r to 0 <= axis < r.
Result<int> NormaliseAxis(int64_t axis, int rank);
Result<std::vector<int>> NormaliseAxes(const std::vector<int64_t>& axes,
                                       int rank);  // no repetition
// For lowerings, where inference has checked: aborts if out of range.
int AxisOf(int64_t axis, int rank);

// All elements of an integer operand as constants: from its bytes or facts. nullopt: not known (or
// absent, or operand < 0).
std::optional<std::vector<int64_t>> IntsOf(const Graph& g, const Node& n, int operand);
// Elements of a constant as int64 or double, whatever its dtype.
std::vector<int64_t> IntElements(const Constant& c);
std::vector<double> FloatElements(const Constant& c);
double FloatElement(const Constant& c, int64_t i);
// The number of a constant one-element operand, else nullopt.
std::optional<double> ScalarOf(const Graph& g, const Node& n, int operand);
// Axes given as operand or, where that is absent, as attribute. ok but nullopt: neither is there.
// A fault if the operand is there but not constant.
Result<std::optional<std::vector<int64_t>>> AxesOf(const Graph& g, const Node& n, int operand,
                                                   std::string_view attr);

// Faults. Dtypes of all present inputs in [first, last) must be equal.
Status CheckSameType(const InferContext& ctx, int first, int last);
Status CheckRank(const InferContext& ctx, int operand, int rank);
Status CheckMinRank(const InferContext& ctx, int operand, int rank);
std::string ShapeText(const Dims& dims);

// Inference functions.
Status InferSameAsInput(InferContext& ctx);  // output 0: type and shape of input 0
Status InferBroadcast(InferContext& ctx);    // all inputs of one dtype, broadcast to output 0
void CopyType(InferContext& ctx, int output, int input);

// Row-major position of an index, and back.
Expr Linear(const Index& index, const Dims& dims);
Index Unlinear(Expr position, const Dims& dims);
// The index in a tensor of shape `from` of the element that lies at `idx` of its reshape `to`. Axes
// that are split, joined or kept are mapped group by group, so that few divisions are left.
Index ReshapedIndex(const Index& idx, const Dims& to, const Dims& from);
// Constant dims as numbers; nullopt if one is symbolic.
std::optional<std::vector<int64_t>> ConstDims(const Dims& dims);

// Pieces for element functions.
// 0 <= i < dim as a condition; constant true where bounds prove it.
tile::Val InRange(tile::Builder& b, Expr i, Expr dim);
tile::Val BoolConst(tile::Builder& b, bool v);
tile::Val Less(tile::Val a, tile::Val b);
tile::Val LessEqual(tile::Val a, tile::Val b);
tile::Val Equal(tile::Val a, tile::Val b);
tile::Val NotEqual(tile::Val a, tile::Val b);
tile::Val And(tile::Val a, tile::Val b);
tile::Val Or(tile::Val a, tile::Val b);
tile::Val Min(tile::Val a, tile::Val b);
tile::Val Max(tile::Val a, tile::Val b);
// A constant of v's type.
tile::Val Like(tile::Val v, double x);
// Operand `i` (a scalar or one-element tensor), or `otherwise` of compute type `t` if absent.
tile::Val ScalarOr(Lowering& l, int operand, DType t, double otherwise);
// An integer fact or run-time value of operand `i` at a constant position, as an index Expr within
// [lo, hi]: the fact if there is one, else loaded and bound with LetIndex.
Expr IndexOperand(Lowering& l, int operand, int64_t position, int64_t lo, int64_t hi);

}  // namespace ge
