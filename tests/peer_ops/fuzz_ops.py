"""Kinds of nodes for fuzz.py: pointwise, reductions, shapes, indices. Each draws one node (or a few) on a Draw."""

import numpy as np
from onnx import TensorProto as T
from onnx import helper

import fuzz_heavy
from draw import B, F16, F32, F64, FLOATS, I8, I16, I32, I64, INTS, U8, U16, U32, U64, Stale, exact

ANY = (F32, F32, F32, F16, F64, I64, I32, I8, U8, B)
NUMBERS = (F32, F32, F32, F16, F64, I64, I32)

SMOOTH = ["Relu", "Sigmoid", "Tanh", "Erf", "Softplus", "Softsign", "Identity", "Atan", "Cos", "Sin", "HardSwish",
          "Mish", "Neg", "Abs", "Exp", "Selu", "Sinh", "Cosh", "Asinh"]
NARROW = {"Acos": (-1, 1), "Asin": (-1, 1), "Atanh": (-0.9, 0.9), "Acosh": (1, 5), "Log": (0.1, 9), "Sqrt": (0, 9),
          "Reciprocal": (0.2, 5), "Tan": (-1, 1)}
WITH = {"LeakyRelu": ["alpha"], "Elu": ["alpha"], "HardSigmoid": ["alpha", "beta"], "Celu": ["alpha"],
        "Selu": ["alpha", "gamma"]}
REDUCE = ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceProd",
          "ReduceLogSum", "ReduceLogSumExp"]


def number(d):
    return float(np.float32(d.rng.uniform(0.1, 2)))


def smooth(d):
    x = d.value()
    if d.chance(0.3):
        op = d.pick(sorted(WITH))
        d.emit(op, [x], **{a: number(d) for a in WITH[op]})
    elif d.chance(0.1):
        d.opsets(20)
        d.emit("Gelu", [x], **({"approximate": "tanh"} if d.chance(0.3) else {}))
    elif d.chance(0.1):
        d.opsets(24)
        d.emit("Swish", [x], **({"alpha": 0.5} if d.chance(0.3) else {}))
    else:
        d.emit(d.pick(SMOOTH), [x])


def narrow(d):
    op = d.pick(sorted(NARROW))
    d.emit(op, [d.input(d.shape(), d.pick(FLOATS), *NARROW[op])])


def stepwise(d):
    op = d.pick(["Floor", "Ceil", "Round", "Sign", "ThresholdedRelu", "Shrink", "IsNaN", "IsInf"])
    x = d.value(is_exact=True)
    attrs = {}
    if op == "ThresholdedRelu":
        attrs = {"alpha": d.pick([0.5, 1.0])}
    if op == "Shrink":
        attrs = {"lambd": 0.5, "bias": d.pick([0.0, 0.25])}
    if op == "IsInf":
        attrs = {"detect_positive": d.int(0, 1), "detect_negative": d.int(0, 1)}
    d.emit(op, [x], **attrs)


def whole_numbers(d):
    x = d.value(INTS)
    d.emit(d.pick(["Abs", "Neg", "Sign", "BitwiseNot", "Relu"]), [x])


def pair(d, x):
    two = [x, d.like(x)]
    return two[::-1] if d.chance(0.3) else two


def binary(d):
    d.emit(d.pick(["Add", "Sub", "Mul", "Max", "Min"]), pair(d, d.value(NUMBERS + (I8, U8, U32, U64))))


def divide(d):
    x = d.value(NUMBERS)
    dtype = d.values[x].dtype.type
    low = 1 if dtype in INTS else None
    other = d.like(x, dtype, low, 5 if low else None)
    if dtype in INTS or not (d.special or np.all(d.values[other])):
        if not np.all(d.values[other]):
            raise Stale
    d.emit("Div", [x, other])


def modulo(d):
    x = d.value((I64, I32, I8, U8, F32, F32), is_exact=True, is_finite=True)
    dtype = d.values[x].dtype.type
    y = d.const(d.pick([2, 3, 5]) * np.ones(d.pick([(), (1,)]), dtype))
    if dtype in (I64, I32, I8) and d.chance(0.3):
        y = d.const(np.array(-3, dtype))
    d.emit("Mod", [x, y], fmod=1 if dtype == F32 or d.chance(0.3) else 0)


def power(d):
    if d.chance(0.3):
        x = d.value((I32, I64), fits=lambda v: v.size == 0 or np.abs(v).max() < 20)
        return d.emit("Pow", [x, d.const(np.array(d.int(0, 3), d.pick([I32, I64, F32])))])
    x = d.input(d.shape(), d.pick([F32, F32, F64]), 0.2, 4)
    exponent = d.const(np.array(d.pick([0, 0.5, 1, 2, 3, -1, -0.5, 2.5]), d.pick([F32, F32, F64])))
    d.emit("Pow", [x, exponent])


def several(d):
    x = d.value()
    d.emit(d.pick(["Sum", "Mean", "Max", "Min"]), [x, *[d.like(x) for _ in range(d.int(0, 3))]])


def compare(d):
    op = d.pick(["Less", "Greater", "Equal", "LessOrEqual", "GreaterOrEqual"])
    x = d.value((F32, F32, F64, I64, I32, F16), is_exact=True)
    y = d.like(x)
    if not exact(d.values[y]):
        raise Stale
    d.emit(op, [x, y])


def logic(d):
    if d.chance(0.3):
        return d.emit("Not", [d.value((B,))])
    d.emit(d.pick(["And", "Or", "Xor"]), pair(d, d.value((B,))))


def bits(d):
    op = d.pick(["BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitShift"])
    x = d.value((U8, U16, U32, U64) if op == "BitShift" else INTS)
    if op == "BitShift":
        return d.emit(op, [x, d.const(d.data((), d.values[x].dtype.type, 0, 3))], direction=d.pick(["LEFT", "RIGHT"]))
    d.emit(op, pair(d, x))


def where(d):
    x = d.value(ANY)
    d.emit("Where", [d.like(x, B), *pair(d, x)])


def prelu(d):
    x = d.value(rank=(1, 5))
    d.emit("PRelu", [x, d.operand((1,), d.values[x].dtype.type)])


def clip(d):
    x = d.value((F32, F32, F64, F16, I32, I64, U8, I8))
    dtype = d.values[x].dtype.type
    bound = lambda v: d.const(np.array(v, dtype)) if d.chance(0.7) else ""
    d.emit("Clip", [x, bound(0 if dtype in (U8,) else -1), bound(3)])


def cast(d):
    x = d.value(ANY + (U16, I16), is_exact=True)
    v = d.values[x]
    to = d.pick([F32, F64, F16, I64, I32, I8, U8, B, I16, U16, U32, U64])
    if np.dtype(to).kind in "iu" and v.dtype.kind == "f":
        if not np.all(np.isfinite(v)) or np.any(np.abs(v) > 100) or (np.dtype(to).kind == "u" and np.any(v < 0)):
            to = d.pick([F32, F64, F16, B])
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(to))
    if d.chance(0.2):
        return d.emit("CastLike", [x, d.const(np.zeros(1, to))])
    d.emit("Cast", [x], to=kind)


def small_types(d):
    """Through a type that Python's arrays do not hold."""
    x = d.value((F32,), is_exact=True, is_finite=True)
    kinds = [T.BFLOAT16, T.FLOAT8E4M3FN, T.FLOAT8E5M2, T.FLOAT8E4M3FNUZ, T.FLOAT8E5M2FNUZ, T.INT4, T.UINT4]
    kind = d.pick(kinds)
    a, b, c = d.name("v"), d.name("v"), d.name("v")
    rank = d.values[x].ndim
    middle = helper.make_node(*d.pick([("Transpose", [a], [b]), ("Identity", [a], [b]), ("Flatten", [a], [b])]))
    if kind in (T.INT4, T.UINT4) or rank == 0:
        middle = helper.make_node("Identity", [a], [b])
    d.chain([helper.make_node("Cast", [x], [a], to=kind), middle, helper.make_node("Cast", [b], [c], to=T.FLOAT)], [c])
    d.loose = True


def axes_input(d, rank):
    axes = [a for a in range(rank) if d.chance(0.5)]
    axes = [a - rank if d.chance(0.3) else a for a in axes]
    return axes[::-1] if d.chance(0.2) else axes


def reduce(d):
    d.never_empty()  # the peer gives no shape of what reduces nothing
    op = d.pick(REDUCE)
    x = d.value((F32, F32, F32, F64, I32, I64) if op in REDUCE[:4] else (F32, F64), rank=(1, 5),
                is_finite=d.special)
    if op in ("ReduceLogSum", "ReduceLogSumExp", "ReduceProd"):
        x = d.input(d.shape(1, 4), F32, 0.3, 1.6)
    axes = axes_input(d, d.values[x].ndim)
    attrs = {"keepdims": d.int(0, 1)} if d.chance(0.8) else {}
    if 0 in d.values[x].shape:
        raise Stale
    given = d.opset >= 18 or (op == "ReduceSum" and d.opset >= 13)
    if given and d.chance(0.3):
        attrs["noop_with_empty_axes"] = d.int(0, 1)
    if not given:
        if axes:
            attrs["axes"] = axes
        return d.emit(op, [x], **attrs)
    d.emit(op, [x, d.const(np.array(axes, I64))] if d.chance(0.85) else [x], **attrs)


def arg(d):
    x = d.value((F32, F32, I32, F64), rank=(1, 4), is_exact=True, is_finite=True)
    d.never_empty()
    if 0 in d.values[x].shape:
        raise Stale  # the peer gives the shape of x
    d.emit(d.pick(["ArgMax", "ArgMin"]), [x], axis=d.axis(x, 1), keepdims=d.int(0, 1), select_last_index=d.int(0, 1))


def softmax(d):
    x = d.value((F32, F32, F64, F16), rank=(1, 4), is_finite=True)
    if d.values[x].dtype == F64:
        d.plain()  # there the peer goes past NaN
    d.emit(d.pick(["Softmax", "LogSoftmax"]), [x], axis=d.axis(x))


def hardmax(d):
    d.plain()  # the peer loses NaN
    x = d.value((F32,), rank=(1, 4), is_exact=True, is_finite=True)
    d.emit("Hardmax", [x], axis=d.axis(x, 1))


def cumulate(d):
    x = d.value((F32, F64, I32, I64), rank=(1, 4))
    axis = d.const(np.array(d.axis(x), d.pick([I64, I32])))
    op = "CumSum" if d.chance(0.7) else "CumProd"
    if op == "CumProd":
        d.opsets(26)
    d.emit(op, [x, axis], exclusive=d.int(0, 1), reverse=d.int(0, 1))


def topk(d):
    x = d.value((F32, F32, I32, I64, F64), rank=(1, 4), is_exact=True, is_finite=True)
    axis = d.axis(x, 1)
    k = d.int(0 if d.chance(0.1) else 1, d.values[x].shape[axis])
    d.emit("TopK", [x, d.ints(k)], 2, axis=axis, largest=d.int(0, 1))


# Shapes.
def transpose(d):
    x = d.value(ANY, rank=(0, 5))
    n = d.values[x].ndim
    d.emit("Transpose", [x], **({"perm": d.perm(n)} if d.chance(0.9) and n else {}))


def reshape(d):
    x = d.value(ANY)
    shape = list(d.values[x].shape)
    if shape and d.chance(0.5):
        at = d.int(0, len(shape))
        shape = [*shape[:at], 1, *shape[at:]]
    elif shape:
        at = d.int(0, len(shape))
        shape = [int(np.prod(shape[:at])), int(np.prod(shape[at:]))]
    attrs = {}
    if 0 in shape:
        d.opsets(14)
        attrs["allowzero"] = 1
    elif shape and d.chance(0.6):
        at = d.int(0, len(shape) - 1)
        shape[at] = -1
        if d.chance(0.3) and at > 0 and at <= d.values[x].ndim and shape[0] == d.values[x].shape[0]:
            shape[0] = 0
    d.emit("Reshape", [x, d.ints(*shape)], **attrs)


def flatten(d):
    x = d.value(ANY)
    n = d.values[x].ndim
    d.emit("Flatten", [x], axis=d.int(-n, n))


def squeeze(d):
    x = d.value(ANY)
    v = d.values[x]
    if d.chance(0.5):
        n = v.ndim + 1
        return d.emit("Unsqueeze", [x, d.ints(d.int(-n, n - 1))])
    ones = [i - (v.ndim if d.chance(0.3) else 0) for i, s in enumerate(v.shape) if s == 1]
    if d.chance(0.3) or not ones:
        d.symbolic = False  # the rank would depend on the sizes
        return d.emit("Squeeze", [x])
    d.emit("Squeeze", [x, d.ints(*ones)])


def slices(d):
    x = d.value(ANY, rank=(1, 5))
    shape = d.values[x].shape
    axes = d.perm(len(shape))[:d.int(1, min(2, len(shape)))]
    far = lambda: d.pick([d.int(-20, 20), d.int(-3, 3), np.iinfo(I64).max, np.iinfo(I64).min + 1])
    starts, ends = [far() for _ in axes], [far() for _ in axes]
    steps = [d.pick([1, 1, 2, -1, -2, 3]) for _ in axes]
    if any(e == np.iinfo(I64).max and s < 0 for e, s in zip(ends, steps)):
        raise Stale  # the peer takes such an end for the last element
    inputs = [x, d.ints(*starts), d.ints(*ends), d.ints(*axes), d.ints(*steps)]
    d.emit("Slice", inputs if d.chance(0.9) else [x, d.ints(0), d.ints(3)])


def concat(d):
    d.never_empty()  # the peer does not check the other axes of what is empty
    x = d.value(ANY, rank=(1, 5))
    v = d.values[x]
    axis = d.axis(x)
    parts = [x]
    for _ in range(d.int(0, 3)):
        part = list(v.shape)
        part[axis] = d.int(1 if d.symbolic else 0, 4)
        parts.append(d.operand(tuple(part), v.dtype.type) if d.chance(0.7) else x)
    d.emit("Concat", parts, axis=axis)


def split(d):
    x = d.value(ANY, rank=(1, 4))
    axis = d.axis(x)
    n = d.values[x].shape[axis]
    parts = d.int(1, 4)
    if d.chance(0.5):
        cuts = sorted(d.int(0, n) for _ in range(parts - 1))
        sizes = np.diff([0, *cuts, n])
        return d.emit("Split", [x, d.ints(*sizes)], parts, axis=axis)
    d.emit("Split", [x], parts, axis=axis, **({"num_outputs": parts} if d.opset >= 18 else {}))


def pad(d):
    x = d.value((F32, F32, F64, I32, I64), rank=(1, 4))
    v = d.values[x]
    mode = d.pick(["constant", "constant", "edge", "reflect", "wrap"])
    pads = d.rng.integers(-1 if d.chance(0.3) else 0, 3, (2, v.ndim))
    if mode in ("reflect", "wrap"):  # the peer wraps once at most
        pads = np.minimum(pads, np.array(v.shape) - 1)
    inputs = [x, d.ints(*pads.ravel())]
    if mode == "constant" and d.chance(0.7):
        inputs.append(d.const(np.array(2, v.dtype)))
    if d.opset >= 18 and d.chance(0.3):
        some = d.perm(v.ndim)[:d.int(1, v.ndim)]
        inputs = [x, d.ints(*pads[:, some].ravel()), inputs[2] if len(inputs) > 2 else "", d.ints(*some)]
    if mode != "constant" and np.any(pads < 0):
        raise Stale  # the peer and the reference order the two steps differently
    d.emit("Pad", inputs, mode=mode)


def tile(d):
    d.symbolic = False  # sizes of one symbol, n and 2 n, would broadcast where n is 1
    x = d.value(ANY, rank=(1, 4))
    d.emit("Tile", [x, d.ints(*[d.int(0 if d.chance(0.1) else 1, 2) for _ in d.values[x].shape])])


def expand(d):
    x = d.value(ANY)
    shape = [s if s != 1 or d.chance(0.3) else d.int(1, 4) for s in d.values[x].shape]
    shape = [d.int(1, 3)] * d.int(0, 1) + [1 if d.chance(0.2) else s for s in shape]
    d.emit("Expand", [x, d.ints(*shape)])


def blocks(d):
    n = d.pick([1, 2, 3])
    c, h, w = d.int(1, 3), d.int(1, 3), d.int(1, 4)
    if d.chance(0.5):
        x = d.operand((d.int(0, 2), c, h * n, w * n))
        return d.emit("SpaceToDepth", [x], blocksize=n)
    d.emit("DepthToSpace", [d.operand((d.int(1, 2), c * n * n, h, w))], blocksize=n, mode=d.pick(["DCR", "CRD"]))


def trilu(d):
    d.opsets(14)
    x = d.value((F32, F64, I64, B, I32), rank=(2, 4))
    d.emit("Trilu", [x, d.const(np.array(d.int(-3, 3), I64))] if d.chance(0.7) else [x], upper=d.int(0, 1))


def eye(d):
    x = d.value((F32, I64, B), rank=(2, 2))
    d.emit("EyeLike", [x], k=d.int(-2, 2), **({"dtype": d.pick([T.FLOAT, T.INT32, T.BOOL])} if d.chance(0.5) else {}))


def sizes(d):
    x = d.value(ANY)
    if d.chance(0.2):
        return d.emit("Size", [x])
    attrs = {"start": d.int(-3, 3), "end": d.int(-3, 4)} if d.chance(0.5) and d.opset >= 15 else {}
    shape = d.one("Shape", [x], **attrs)
    if d.chance(0.5):
        x = d.value((F32,))
        fill = helper.make_tensor("v", d.pick([T.FLOAT, T.INT64, T.BOOL]), [1], [1])
        d.emit("ConstantOfShape", [shape], **({"value": fill} if d.chance(0.7) else {}))


def ranges(d):
    dtype = d.pick([I64, I32, F32, F64, I16])
    start, step = d.int(-3, 3), d.pick([1, 2, -1, 3])
    end = start + step * d.int(-1, 6)
    scalar = lambda v: (d.input((), dtype, v, v) if dtype in (I64, I32) and d.chance(0.4) else d.const(np.array(v, dtype)))
    d.emit("Range", [scalar(start), scalar(end), scalar(step)])


def crop(d):
    d.opsets(18)
    x = d.value((F32, I64), rank=(1, 4))
    axes = d.perm(d.values[x].ndim)[:d.int(1, d.values[x].ndim)]
    d.emit("CenterCropPad", [x, d.ints(*[d.int(1, 9) for _ in axes])], axes=axes)


def bitcast(d):
    d.opsets(26)
    x = d.value((F32, I32, U32, I64, F64, U8, I8), is_exact=True)
    same = {4: [T.FLOAT, T.INT32, T.UINT32], 8: [T.DOUBLE, T.INT64, T.UINT64], 1: [T.INT8, T.UINT8]}
    d.emit("BitCast", [x], to=d.pick(same[d.values[x].dtype.itemsize][1:]))


# Indices.
def gather(d):
    x = d.value(ANY, rank=(1, 4))
    axis = d.axis(x, 1)
    n = d.values[x].shape[axis]
    shape = tuple(d.int(0 if d.chance(0.1) else 1, 4) for _ in range(d.int(0, 2)))
    index = d.rng.integers(-n, n, shape).astype(d.pick([I64, I32]))
    if d.chance(0.3):
        index = np.abs(index) % n
        name = d.input(index.shape, index.dtype.type, 0, 0)
        d.values[name][...] = index
        return d.emit("Gather", [x, name], axis=axis)
    d.emit("Gather", [x, d.const(index)], axis=axis)


def gather_elements(d):
    x = d.value(ANY, rank=(1, 4))
    v = d.values[x]
    axis = d.axis(x, 1)
    shape = [d.int(0 if d.chance(0.1) else 1, max(s, 1)) if s else 0 for s in v.shape]
    shape[axis] = d.int(1, 5)
    d.emit("GatherElements", [x, d.const(d.rng.integers(-v.shape[axis], v.shape[axis], shape))], axis=axis)


def tuples(d, v, batch=0):
    """Indices into leading axes of v."""
    depth = d.int(1, v.ndim - batch)
    if 0 in v.shape[batch:batch + depth]:
        raise Stale
    shape = [*v.shape[:batch], *[d.int(1, 3) for _ in range(d.int(1, 2))]]
    index = [d.rng.integers(-s, s, shape) for s in v.shape[batch:batch + depth]]
    return np.stack(index, -1).astype(I64)


def gather_nd(d):
    x = d.value(ANY, rank=(1, 4))
    v = d.values[x]
    batch = 1 if v.ndim > 1 and d.chance(0.3) else 0
    d.emit("GatherND", [x, d.const(tuples(d, v, batch))], batch_dims=batch)


def scatter_attrs(d, v):
    """Several writes to one place are only defined with a reduction."""
    choices = ["add", "mul"] + (["max", "min"] if d.opset >= 18 else [])
    return {"reduction": d.pick(choices)} if d.opset >= 16 and d.chance(0.5) and v.dtype != B else {}


def scatter_elements(d):
    x = d.value((F32, F32, I64, F64, I32, B), rank=(1, 4))
    v = d.values[x]
    axis = d.axis(x, 1)
    attrs = scatter_attrs(d, v)
    shape = [d.int(1, s) if s else 0 for s in v.shape]
    n = v.shape[axis]
    if attrs:
        index = d.rng.integers(-n, n, shape)
    else:
        order = np.argsort(d.rng.random([*shape[:axis % v.ndim], n, *shape[axis % v.ndim + 1:]]), axis=axis)
        index = np.take(order, range(shape[axis]), axis=axis)
    d.emit("ScatterElements", [x, d.const(index.astype(I64)), d.operand(tuple(shape), v.dtype.type)], axis=axis, **attrs)


def scatter_nd(d):
    x = d.value((F32, F32, I64, F64, I32), rank=(1, 4))
    v = d.values[x]
    attrs = scatter_attrs(d, v)
    index = tuples(d, v)
    flat = index.reshape(-1, index.shape[-1]) % np.array(v.shape[:index.shape[-1]])
    if not attrs and len(np.unique(flat, axis=0)) < len(flat):
        raise Stale
    shape = (*index.shape[:-1], *v.shape[index.shape[-1]:])
    d.emit("ScatterND", [x, d.const(index), d.operand(shape, v.dtype.type)], **attrs)


def one_hot(d):
    x = d.value((I64, I32), rank=(0, 3))
    hot = d.const(np.array([0, 1], d.pick([F32, I64, I32])))
    rank = d.values[x].ndim
    d.emit("OneHot", [x, d.const(np.array(d.pick([3, 5, 8]), I64)), hot], axis=d.int(-rank - 1, rank))


def compress(d):
    d.symbolic = False  # the peer lets a condition be longer than its axis
    x = d.value((F32, I64, B), rank=(1, 3))
    v = d.values[x]
    if not v.size:
        raise Stale
    if d.chance(0.3):
        return d.emit("Compress", [x, d.operand((d.int(1, v.size),), B)])
    axis = d.axis(x, 1)
    d.emit("Compress", [x, d.operand((d.int(1, v.shape[axis]),), B)], axis=axis)


def nonzero(d):
    x = d.value((F32, I64, B, I32), is_exact=True, rank=(1, 4))
    d.emit("NonZero", [x])


def unique(d):
    x = d.value((F32, I64, F64), rank=(1, 3), is_exact=True, is_finite=True)
    attrs = {"axis": d.axis(x, 1)} if d.chance(0.5) else {}
    d.emit("Unique", [x], d.int(1, 4), sorted=d.int(0, 1), **attrs)


def reverse_sequence(d):
    x = d.value((F32, I64), rank=(2, 4))
    batch = d.int(0, 1)
    s = d.values[x].shape
    if 0 in s:
        raise Stale
    lengths = d.const(d.rng.integers(1, s[1 - batch] + 1, s[batch]))
    d.emit("ReverseSequence", [x, lengths], batch_axis=batch, time_axis=1 - batch)


def chance_numbers(d):
    """Only the shape of random numbers is defined."""
    d.opsets(13, 21)
    x = d.value((F32,), rank=(2, 2), is_finite=True, fits=lambda v: v.size)
    y, s = d.name("v"), d.name("v")
    node = d.pick([
        lambda: helper.make_node("RandomNormalLike", [x], [y]), lambda: helper.make_node("RandomUniformLike", [x], [y]),
        lambda: helper.make_node("RandomNormal", [], [y], shape=[2, 3]),
        lambda: helper.make_node("RandomUniform", [], [y], shape=[2, 3]),
        lambda: helper.make_node("Multinomial", [x], [y], sample_size=3)])()
    if d.chance(0.2):
        p = d.input(d.shape(), F32, 0.01, 0.99)
        node = helper.make_node("Bernoulli", [p], [y])
    d.chain([node, helper.make_node("Shape", [y], [s])], [s])


def dropout(d):
    x = d.value((F32, F64))
    d.emit("Dropout", [x, d.const(F32(0.5))] if d.chance(0.5) else [x], d.int(1, 2))


POINTWISE = [smooth, narrow, stepwise, whole_numbers, binary, divide, modulo, power, several, compare, logic, bits,
             where, prelu, clip, cast, small_types, reduce, reduce, arg, softmax, hardmax, cumulate, topk, dropout]
SHAPES = [transpose, reshape, flatten, squeeze, slices, concat, split, pad, tile, expand, blocks, trilu, eye, sizes,
          ranges, crop, bitcast, gather, gather_elements, gather_nd, scatter_elements, scatter_nd, one_hot, compress,
          nonzero, unique, reverse_sequence, chance_numbers]
KINDS = POINTWISE + SHAPES + fuzz_heavy.KINDS
