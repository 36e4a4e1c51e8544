"""Kinds of nodes for fuzz.py: several operators that belong together. Sizes computed from shapes, quantised values
around operators of many families, ints and bools that choose, what has no elements, numbers without axes."""

import numpy as np
from onnx import TensorProto as T

from draw import B, F16, F32, F64, I8, I32, I64, U8, Stale, exact


def dim(d, x):
    """One size of x as an i64 of shape [1]: its name and its axis."""
    axis = d.axis(x) % d.values[x].ndim
    shape = d.one("Shape", [x])
    if d.chance(0.5):
        return d.one("Gather", [shape, d.ints(axis)], axis=0), axis
    return d.one("Slice", [shape, d.ints(axis), d.ints(axis + 1), d.ints(0)]), axis


def computed_reshape(d):
    x = d.value((F32, F32, I64, B), rank=(2, 4), fits=lambda v: v.size)
    d.never_empty()
    size, axis = dim(d, x)
    kind = d.int(0, 2)
    if kind == 0:
        to = d.one("Concat", [size, d.ints(-1)], axis=0)
    elif kind == 1:
        to = d.one("Concat", [d.ints(-1), size, d.ints(1)], axis=0)
    else:
        rest, _ = dim(d, x)
        product = d.one("ReduceProd", [d.one("Shape", [x])], keepdims=1)
        to = d.one("Concat", [rest, d.one("Div", [product, rest])], axis=0)
    d.emit("Reshape", [x, to])


def computed_slice(d):
    x = d.value((F32, F32, I64, B, F16), rank=(1, 4))
    size, axis = dim(d, x)
    start = d.one("Div", [size, d.ints(d.int(2, 3))]) if d.chance(0.5) else d.ints(d.int(-3, 3))
    end = d.one(d.pick(["Sub", "Add", "Max"]), [size, d.ints(d.int(0, 2))])
    step = d.int(1, 3)
    if d.chance(0.3):
        start, end, step = end, start, -step
    d.emit("Slice", [x, start, end, d.ints(axis), d.ints(step)])


def computed_fill(d):
    x = d.value((F32, F32, I64), rank=(1, 3))
    shape = d.one("Shape", [x])
    kind = d.int(0, 3)
    if kind == 0:
        filled = d.one("ConstantOfShape", [shape])
        return d.emit("Add", [filled, d.one("Cast", [x], to=T.FLOAT)])
    if kind == 1:
        return d.emit("Expand", [d.operand(d.pick([(), (1,), (1, 1)]), d.values[x].dtype.type), shape])
    size, _ = dim(d, x)
    last = d.one("Squeeze", [size, d.ints(0)])
    run = d.one("Range", [d.const(np.array(d.int(-1, 0), I64)), last, d.const(np.array(d.int(1, 2), I64))])
    if kind == 2:
        return d.emit("Cast", [run], to=d.pick([T.FLOAT, T.INT32, T.BOOL, T.FLOAT16]))
    column = d.one("Unsqueeze", [run, d.ints(1)])
    return d.emit("LessOrEqual", [column, run])


def computed_tile(d):
    d.symbolic = False
    x = d.value((F32, I64, B), rank=(1, 3))
    shape = d.one("Shape", [x])
    d.emit("Tile", [x, d.one("Min", [shape, d.ints(2)])])


def grid_value(d, shape):
    """Exact in any quarter."""
    grid, d.grid = d.grid, True
    special, d.special = d.special, False
    name = d.operand(shape)
    d.grid, d.special = grid, special
    return name


def through_bytes(d, x, kind=None):
    kind = kind or d.pick([U8, I8])
    scale, zero = d.const(F32(d.pick([0.125, 0.25, 0.5]))), d.const(np.array(d.int(0, 9), kind))
    return d.one("DequantizeLinear", [d.one("QuantizeLinear", [x, scale, zero]), scale, zero])


def quantised(d):
    """What quantisers of models make: bytes before and behind each operator."""
    d.plain()
    d.never_smaller()
    kind = d.pick(["Conv", "MatMul", "Gemm", "Add", "Mul", "Concat", "MaxPool", "AveragePool", "Transpose", "Relu", "Clip",
                   "ReduceMean", "Resize", "Pad", "Where"])
    c, h, w = d.int(1, 9), d.int(2, 6), d.int(2, 6)
    bytes_of = d.pick([U8, I8])
    x = through_bytes(d, grid_value(d, (d.int(1, 2), c, h, w)), bytes_of)
    weights = lambda *shape: through_bytes(d, d.const(d.rng.integers(-8, 9, shape).astype(F32) / 4), I8)
    if kind == "Conv":
        k = d.int(1, 2)
        y = d.one("Conv", [x, weights(d.pick([1, 4, 17]), c, k, k)], pads=[k - 1] * 4)
    elif kind == "MatMul":
        y = d.one("MatMul", [x, weights(w, d.pick([1, 5, 16]))])
    elif kind == "Gemm":
        y = d.one("Gemm", [d.one("Flatten", [x]), weights(5, c * h * w)], transB=1)
    elif kind in ("Add", "Mul"):
        y = d.one(kind, [x, through_bytes(d, grid_value(d, (1, c, 1, 1)))])
    elif kind == "Concat":
        y = d.one("Concat", [x, through_bytes(d, x), x], axis=d.int(1, 3))
    elif kind == "MaxPool":
        y = d.one("MaxPool", [x], kernel_shape=[2, 2], pads=[d.int(0, 1)] * 4)
    elif kind == "AveragePool":
        y = d.one("AveragePool", [x], kernel_shape=[2, 2], strides=[d.int(1, 2)] * 2)
    elif kind == "Transpose":
        y = d.one("Transpose", [x], perm=d.perm(4))
    elif kind == "Clip":
        y = d.one("Clip", [x, d.const(F32(-0.5)), d.const(F32(1.5))])
    elif kind == "Relu":
        y = d.one("Relu", [x])
    elif kind == "ReduceMean":
        d.opsets(18)
        x = through_bytes(d, grid_value(d, (2, 3, 4, 2)), bytes_of)
        y = d.one("ReduceMean", [x, d.ints(2, 3)], keepdims=d.int(0, 1))
    elif kind == "Resize":
        y = d.one("Resize", [x, "", d.const(np.array([1, 1, 2, 2], F32))], mode="nearest",
                  coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    elif kind == "Pad":
        y = d.one("Pad", [x, d.ints(0, 0, 1, 0, 0, 0, 0, 2)])
    else:
        y = d.one("Where", [d.operand((1, 1, h, w), B), x, through_bytes(d, x)])
    if not exact(d.values[y]):
        raise Stale
    through_bytes(d, y, bytes_of)


def choices(d):
    """Comparisons that choose positions, sums of bools, bytes beside i64."""
    x = d.value((F32, I64, U8, I32), rank=(1, 3), is_exact=True, is_finite=True, fits=lambda v: v.size)
    d.never_empty()  # the peer keeps an axis without elements that is to be summed
    v = d.values[x]
    hit = d.one(d.pick(["Greater", "Less", "Equal"]), [x, d.like(x)])
    kind = d.int(0, 4)
    if kind == 0:
        d.emit("CumSum", [d.one("Cast", [hit], to=d.pick([T.INT32, T.INT64])), d.const(np.array(d.axis(hit), I64))])
    elif kind == 1:
        found = d.one("NonZero", [hit])
        d.emit("Gather", [found, d.const(np.array(d.int(0, d.values[hit].ndim - 1), I64))], axis=0)
    elif kind == 2:
        d.emit("ReduceSum", [d.one("Cast", [hit], to=T.INT64), d.ints(d.axis(hit))], keepdims=d.int(0, 1))
    elif kind == 3:
        d.emit("Where", [hit, d.const(np.array(3, v.dtype)), x])
    else:
        at = d.one("ArgMax", [d.one("Cast", [hit], to=T.INT32)], axis=0, keepdims=1) if d.values[hit].shape[0] else None
        if at is None:
            raise Stale
        d.emit("Cast", [at], to=d.pick([T.UINT8, T.FLOAT, T.BOOL]))


def numbers(d):
    """Without axes."""
    d.symbolic = False  # the rank of a Squeeze without axes is fixed
    x = d.operand((), d.pick([F32, F64, I64, I32, F16]))
    for _ in range(d.int(1, 4)):
        op = d.pick(["Add", "Mul", "Min", "Max", "Sub"])
        x = d.one(op, [x, d.operand(d.pick([(), (), (1,)]), d.values[x].dtype.type)])
    if d.chance(0.5):
        x = d.one("Reshape", [x, d.const(np.array([1, 1], I64))])
        d.emit("Concat", [x, x], axis=d.int(0, 1))
    elif d.values[x].ndim:
        d.emit("Squeeze", [x])


def nothing(d):
    """Axes without elements, through operators that give some."""
    x = d.input(d.pick([(0,), (2, 0), (0, 3), (2, 0, 3)]), d.pick([F32, I64, B]))
    v = d.values[x]
    kind = d.int(0, 4)
    if kind == 0 and v.dtype != B:
        d.emit("ReduceSum", [x, d.ints(int(np.argmin(v.shape)))], keepdims=d.int(0, 1))
    elif kind == 1:
        axis = int(np.argmin(v.shape))
        part = tuple(2 if i == axis else s for i, s in enumerate(v.shape))
        d.emit("Concat", [x, d.operand(part, v.dtype.type)], axis=axis)
    elif kind == 2:
        d.emit("Pad", [x, d.ints(*[1] * (2 * v.ndim))])
    elif kind == 3:
        d.emit("NonZero", [x])
    elif v.dtype == F32 and v.shape[-1] == 0:
        d.emit("MatMul", [x, d.const(np.zeros((0, 4), F32))])
    else:
        d.emit("Transpose", [x], perm=d.perm(v.ndim))


KINDS = [computed_reshape, computed_slice, computed_fill, computed_tile, quantised, quantised, quantised, choices, choices,
         numbers, nothing]
