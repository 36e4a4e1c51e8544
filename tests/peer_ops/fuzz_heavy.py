"""Kinds of nodes for fuzz.py: products, windows, norms, recurrent cells, quantised forms, signals, pictures, losses."""

import numpy as np
from onnx import TensorProto as T
from onnx import helper

from draw import B, F16, F32, F64, I8, I32, I64, U8, Stale


def floats(d):
    return d.pick([F32, F32, F32, F16, F64])


# Products.
def matmul(d):
    x = d.value((F32, F32, F16, F64), rank=(1, 4))
    v = d.values[x]
    k, n = v.shape[-1], d.size()
    if k == 0:
        d.symbolic = False  # there the peer does not broadcast
    shape = d.pick([(k, n), (k,), (*v.shape[:-2], k, n), (1, k, n)])
    if shape[0] == 1 and v.ndim > 2:
        d.symbolic = False  # two symbols in a batch are taken to agree
    d.emit("MatMul", [x, d.operand(shape, v.dtype.type)])


def integer_matmul(d):
    x = d.value((I32, I64), rank=(2, 3))
    v = d.values[x]
    d.emit("MatMul", [x, d.operand((v.shape[-1], d.size()), v.dtype.type)])


def gemm(d):
    m, n, k = d.size(), d.size(), max(d.size(), 1)  # of no products the peer gives C without beta
    ta, tb = d.int(0, 1), d.int(0, 1)
    dtype = floats(d)
    c = d.pick([None, (n,), (m, n), (m, 1), (1,), ()])
    a = d.operand((k, m) if ta else (m, k), dtype)
    b = d.operand((n, k) if tb else (k, n), dtype)
    d.emit("Gemm", [a, b] if c is None else [a, b, d.operand(c, dtype)], transA=ta, transB=tb,
           alpha=d.pick([1.0, 0.5]), beta=d.pick([1.0, -2.0]))


def einsum(d):
    d.symbolic = False  # the peer broadcasts labels of one size
    sizes = {c: d.int(1, 5) for c in "abcij"}
    text = d.pick(["ij,jk->ik", "bij,bjk->bik", "ii->i", "ij->ji", "ij->", "i,j->ij", "bhid,bhjd->bhij", "...i->...",
                   "ab,bc", "aij,aj->ai", "i,i->"])
    sizes = {c: d.int(1, 5) for c in "abcdhijk"}
    parts = text.split("->")[0].replace("...", "ab").split(",")
    d.emit("Einsum", [d.operand(tuple(sizes[c] for c in p), d.pick([F32, F64])) for p in parts], equation=text)


def window(d, dims, dilate=True):
    """Attributes of a window over `dims` spatial axes, and the sizes of an input that it fits into."""
    d.never_smaller()
    k = [d.pick([1, 2, 3, 3]) for _ in range(dims)]
    attrs = {"kernel_shape": k, "strides": [d.pick([1, 1, 2, 3]) for _ in k]}
    dilations = [d.pick([1, 1, 1, 2]) if dilate else 1 for _ in k]
    if any(x > 1 for x in dilations):
        attrs["dilations"] = dilations
    how = d.pick(["none", "pads", "pads", "SAME_UPPER", "SAME_LOWER", "VALID"])
    if how == "pads":
        attrs["pads"] = [d.int(0, (a - 1) * b) for a, b in list(zip(k, dilations)) * 2]
    elif how != "none":
        attrs["auto_pad"] = how
    return attrs, [d.int((a - 1) * b + 1, 10) for a, b in zip(k, dilations)]


def conv(d):
    dims = d.pick([1, 2, 2, 2, 3])
    attrs, space = window(d, dims)
    group = d.pick([1, 1, 1, 2, 3])
    if group > 1:
        d.plain()  # small groups are computed together, with zeros between them
    cin, cout = group * d.size([1, 2, 3, 8]), group * d.size([1, 2, 5, 16])
    dtype = d.pick([F32, F32, F32, F16])
    x = d.operand((d.int(1, 2) if d.chance(0.9) else 0, cin, *space), dtype)
    w = d.operand((cout, cin // group, *attrs["kernel_shape"]), dtype)
    d.emit("Conv", [x, w] + ([d.operand((cout,), dtype)] if d.chance(0.5) else []), group=group, **attrs)


def conv_transpose(d):
    d.plain()  # whether weights meet the zeros between the pixels is not said
    dims = d.pick([1, 2, 2, 3])
    attrs, space = window(d, dims)
    if dims == 1 or any(s > k for s, k in zip(attrs["strides"], attrs["kernel_shape"])):
        attrs.pop("auto_pad", None)  # the peer does not keep to in * stride
    group = d.pick([1, 1, 2])
    cin, cout = group * d.size([1, 2, 3]), d.size([1, 2, 5])
    if d.chance(0.3) and "auto_pad" not in attrs:
        attrs["output_padding"] = [d.int(0, s - 1) for s in attrs["strides"]]
    x = d.operand((d.int(1, 2), cin, *[d.int(1, 6) for _ in space]))
    w = d.operand((cin, cout, *attrs["kernel_shape"]))
    d.emit("ConvTranspose", [x, w] + ([d.operand((cout * group,))] if d.chance(0.5) else []), group=group, **attrs)


def deform_conv(d):
    d.opsets(19)
    d.plain()  # whether what lies outside is weighted with 0 or left out is not said
    n, c, h, w, k = 1, 2, d.int(3, 6), d.int(3, 6), d.pick([1, 2, 3])
    x, weight = d.operand((n, c, h, w)), d.operand((3, c, k, k))
    offset = d.operand((n, 2 * k * k, h - k + 1, w - k + 1))
    extra = [d.operand((3,)) if d.chance(0.5) else "", d.operand((n, k * k, h - k + 1, w - k + 1))] if d.chance(0.5) else []
    d.emit("DeformConv", [x, weight, offset, *extra], kernel_shape=[k, k])


def pool(d):
    op = d.pick(["MaxPool", "AveragePool", "LpPool"])
    if op == "MaxPool":
        d.plain()  # the peer loses NaN
    dims = d.pick([1, 2, 2, 3])
    attrs, space = window(d, dims, d.opset >= 19 or op == "MaxPool")
    if "dilations" in attrs and attrs.get("auto_pad", "VALID") != "VALID":
        raise Stale  # the peer pads for a window without dilations
    dtype = d.pick([F32, F32, F64]) if op == "MaxPool" else F32
    x = d.operand((d.int(1, 2), d.int(1, 3), *space), dtype)
    if op != "LpPool" or d.opset >= 18:
        # The peer does not keep to the formula of VALID.
        attrs["ceil_mode"] = d.int(0, 1) if attrs.get("auto_pad") != "VALID" else 0
    if op == "AveragePool":
        attrs["count_include_pad"] = d.int(0, 1)
    if op == "LpPool":
        attrs["p"] = d.int(1, 3)
    d.emit(op, [x], 2 if op == "MaxPool" and d.chance(0.3) and not d.special else 1, **attrs)


def global_pool(d):
    x = d.value((F32,), rank=(3, 5), is_finite=True)
    op = d.pick(["GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"])
    if op == "GlobalMaxPool":
        d.plain()  # the peer loses NaN
    d.emit(op, [x])


def unpool(d):
    d.never_smaller()
    x = d.operand((1, d.int(1, 2), 2 * d.int(1, 3), 2 * d.int(1, 3)), F32, 0, 4)
    a, b = d.emit("MaxPool", [x], 2, kernel_shape=[2, 2], strides=[2, 2])
    d.emit("MaxUnpool", [a, b], kernel_shape=[2, 2], strides=[2, 2])


def regions(d):
    d.opsets(13, 21)
    d.plain()  # the peer loses NaN
    n, h, w, rois = d.int(1, 2), d.int(4, 8), d.int(4, 8), d.int(0 if d.chance(0.1) else 1, 3)
    x = d.operand((n, 2, h, w))
    corner = d.rng.integers(0, 3, (rois, 2))
    boxes = np.concatenate([corner, corner + d.rng.integers(1, 4, (rois, 2))], 1).astype(F32)
    batch = d.rng.integers(0, n, rois)
    if d.chance(0.3):
        rows = np.concatenate([batch[:, None], boxes], 1).astype(F32)
        return d.emit("MaxRoiPool", [x, d.const(rows)], pooled_shape=[d.int(1, 3), d.int(1, 3)])
    attrs = {"coordinate_transformation_mode": d.pick(["half_pixel", "output_half_pixel"])} if d.opset >= 16 else {}
    d.emit("RoiAlign", [x, d.const(boxes), d.const(batch.astype(I64))], output_height=d.int(1, 3), mode="avg",
           output_width=d.int(1, 3), sampling_ratio=d.int(0, 2), spatial_scale=d.pick([1.0, 0.5]), **attrs)


# Norms.
def batch_norm(d):
    d.plain()  # the peer subtracts infinities from each other
    x = d.value((F32, F32, F64), rank=(2, 4))
    c, dtype = d.values[x].shape[1], d.values[x].dtype.type
    stats = [d.operand((c,), dtype) for _ in range(3)] + [d.operand((c,), dtype, 0.25, 2)]
    d.emit("BatchNormalization", [x, *stats], epsilon=1e-3)


def instance_norm(d):
    d.plain()  # the peer subtracts infinities from each other
    x = d.value((F32,), rank=(3, 4), is_finite=True, fits=lambda v: v.size)
    c = d.values[x].shape[1]
    d.emit("InstanceNormalization", [x, d.operand((c,)), d.operand((c,))], epsilon=0.01)


def layer_norm(d):
    x = d.value((F32, F64), rank=(1, 4), is_finite=True, fits=lambda v: v.size)
    v = d.values[x]
    axis = d.int(0, v.ndim - 1)
    dtype = v.dtype.type
    scale = d.operand(v.shape[axis:], dtype)
    axis -= v.ndim if d.chance(0.3) else 0
    if d.chance(0.4):
        d.opsets(23)
        return d.emit("RMSNormalization", [x, scale], axis=axis, epsilon=0.01)
    d.opsets(17)
    d.emit("LayerNormalization", [x, scale] + ([d.operand(d.values[scale].shape, dtype)] if d.chance(0.6) else []),
           d.pick([1, 1, 3]), axis=axis, epsilon=0.01)


def group_norm(d):
    d.opsets(18)
    g = d.int(1, 3)
    c = g * d.int(1, 3)
    n = g if d.opset < 21 else c
    x = d.operand((d.int(1, 2), c, d.int(1, 5), d.int(1, 5)))
    low = lambda: d.const(d.data((n,)))
    d.emit("GroupNormalization", [x, low(), low()], num_groups=g, epsilon=0.01)


def other_norms(d):
    op = d.pick(["LpNormalization", "LRN", "MeanVarianceNormalization"])
    x = d.value((F32,), rank=(4, 4) if op != "LpNormalization" else (1, 4), is_finite=True, fits=lambda v: v.size)
    if op == "LRN":
        return d.emit(op, [x], size=d.pick([1, 3, 5]), alpha=0.01, bias=d.pick([1.0, 2.0]))
    if op == "LpNormalization":
        return d.emit(op, [x], axis=d.axis(x), p=d.int(1, 2))
    if np.prod([d.values[x].shape[a] for a in (0, 2, 3)]) < 4:
        raise Stale
    d.emit(op, [x])


# Recurrent cells.
def recurrent(d):
    d.opsets(14)
    d.plain()  # the peer loses NaN
    op = d.pick(["RNN", "GRU", "LSTM"])
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[op]
    seq, batch, size, hidden = d.int(1, 4), d.int(1, 3), d.int(1, 4), d.int(1, 5)
    way = d.pick(["forward", "reverse", "bidirectional"])
    n = 2 if way == "bidirectional" else 1
    layout = 0
    low = lambda shape: d.const(d.data(shape, F32, -0.5, 0.5))
    x = d.operand((seq, batch, size))
    have = lambda: d.chance(0.5)
    inputs = [x, low((n, gates * hidden, size)), low((n, gates * hidden, hidden)),
              low((n, 2 * gates * hidden)) if have() else "",
              d.const(d.rng.integers(1, seq + 1, batch).astype(I32)) if d.chance(0.3) else "",
              d.operand((n, batch, hidden)) if have() else ""]
    attrs = {"hidden_size": hidden, "direction": way, "layout": layout}
    if op == "LSTM":
        inputs += [d.operand((n, batch, hidden)) if have() else "", low((n, 3 * hidden)) if d.chance(0.3) else ""]
    if op == "GRU":
        attrs["linear_before_reset"] = d.int(0, 1)
    if d.chance(0.3):
        attrs["clip"] = 1.5
    if d.chance(0.3):
        names = {"RNN": [["Relu"], ["Sigmoid"]], "GRU": [["Sigmoid", "Relu"], ["HardSigmoid", "Tanh"]],
                 "LSTM": [["Sigmoid", "Tanh", "Relu"], ["HardSigmoid", "Softsign", "Tanh"]]}[op]
        attrs["activations"] = d.pick(names) * n
    while inputs[-1] == "":
        inputs.pop()
    d.emit(op, inputs, d.int(1, 3 if op == "LSTM" else 2), **attrs)


# Quantised forms: scales are powers of two, so that ties fall the same way.
def zero(d, dtype, shape=()):
    low, high = (0, 255) if dtype == U8 else (-20, 20)
    return d.const(d.data(shape, dtype, low, high))


def scale(d, shape=()):
    return d.const((2.0 ** d.rng.integers(-4, 1, shape)).astype(F32))


def quantize(d):
    x = d.value((F32,), rank=(1, 4), is_exact=True, is_finite=True)
    dtype = d.pick([U8, I8])
    shape, attrs = (), {}
    if d.chance(0.4):
        axis = d.axis(x)
        shape, attrs = (d.values[x].shape[axis],), {"axis": axis}
    s = scale(d, shape)
    q = d.one("QuantizeLinear", [x, s, zero(d, dtype, shape)], **attrs)
    if d.chance(0.6):
        d.emit("DequantizeLinear", [q, s, zero(d, dtype, shape)], **attrs)


def dequantize(d):
    x = d.value((U8, I8, I32))
    dtype = d.values[x].dtype.type
    d.emit("DequantizeLinear", [x, scale(d)] + ([zero(d, dtype)] if dtype != I32 else []))


def dynamic_quantize(d):
    x = d.input(d.shape(), F32)
    if d.special:
        raise Stale
    d.values[x] = np.rint(d.values[x])
    y = d.one("Clip", [x, d.const(F32(-4)), d.const(F32(4))])
    q, s, z = d.emit("DynamicQuantizeLinear", [y], 3)
    d.forget(q)  # ties after an inexact scale


def integer_dot(d):
    a, b = d.pick([U8, I8]), d.pick([U8, I8])
    if d.chance(0.5):
        m, k, n = d.size(range(1, 6)), d.size(range(1, 10)), d.size(range(1, 18))
        inputs = [d.operand((m, k), a), d.operand((k, n), b)]
        if d.chance(0.6):
            inputs += [zero(d, a), zero(d, b)]
        return d.emit("MatMulInteger", inputs)
    attrs, space = window(d, 2, False)
    c, o = d.int(1, 4), d.int(1, 5)
    inputs = [d.operand((1, c, *space), U8), d.operand((o, c, *attrs["kernel_shape"]), b)]
    if d.chance(0.6):
        inputs += [zero(d, U8), zero(d, b)]
    d.emit("ConvInteger", inputs, **attrs)


def quantised_dot(d):
    d.never_empty()  # the peer leaves out the zero point of an empty sum
    a, b = d.pick([U8, I8]), I8
    if d.chance(0.5):
        m, k, n = d.size(range(1, 6)), d.size(range(1, 10)), d.size(range(1, 18))
        return d.emit("QLinearMatMul", [d.operand((m, k), a), scale(d), zero(d, a), d.operand((k, n), b), scale(d),
                                        zero(d, b), scale(d), zero(d, a)])
    attrs, space = window(d, 2, False)
    c, o = d.int(1, 4), d.int(1, 5)
    w = d.const(d.data((o, c, *attrs["kernel_shape"]), b))
    each = (o,) if d.chance(0.5) else ()
    inputs = [d.operand((1, c, *space), a), scale(d), zero(d, a), w, scale(d, each), d.const(np.zeros(each, b)),
              scale(d), zero(d, a)]
    d.emit("QLinearConv", inputs + ([d.const(d.data((o,), I32))] if d.chance(0.5) else []), **attrs)


# Signals and pictures.
def windows(d):
    d.opsets(17)
    op = d.pick(["HannWindow", "HammingWindow", "BlackmanWindow", "MelWeightMatrix"])
    if op == "MelWeightMatrix":
        arrays = [np.array(v, I64) for v in (d.int(2, 6), 16, 8192)] + [F32(0), F32(4000)]
        return d.emit(op, [d.const(a) for a in arrays])
    d.emit(op, [d.const(np.array(d.int(1, 12), I64))], periodic=d.int(0, 1))


def dft(d):
    d.opsets(17)
    d.plain()
    d.symbolic = False
    n = d.pick([d.int(1, 9), d.int(1, 9), 530, 1031])
    d.loose |= n > 500  # the peer's angles are f32
    real = d.int(0, 1)
    x = d.operand((d.int(1, 2), n, 1 if real else 2))
    if d.chance(0.3):
        length = d.int(2, 5)
        x = d.operand((1, d.int(6, 12), 1))
        return d.emit("STFT", [x, d.const(np.array(d.int(1, 3), I64)), d.const(d.data((length,), F32, 0.1, 1))],
                      onesided=d.int(0, 1))
    attrs = {"onesided": 1 if real and d.chance(0.5) else 0}
    if not real and d.chance(0.5):
        attrs["inverse"] = 1
    inputs = [x, d.const(np.array(d.int(1, 9), I64)) if d.chance(0.4) else ""]
    if d.opset >= 20:
        inputs.append(d.const(np.array(1, I64)))
    else:
        attrs["axis"] = 1
    d.emit("DFT", inputs, **attrs)


def resize(d):
    d.plain()  # whether 0 * NaN is added is not said
    n, c, h, w = d.int(1, 2), d.int(1, 2), d.int(1, 6), d.int(1, 6)
    x = d.operand((n, c, h, w))
    mode = d.pick(["nearest", "nearest", "linear", "linear", "cubic"])
    attrs = {"mode": mode, "coordinate_transformation_mode": d.pick(
        ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])}
    if mode == "nearest":
        attrs["nearest_mode"] = d.pick(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
    if mode == "cubic":
        attrs["cubic_coeff_a"] = d.pick([-0.75, -0.5])
        attrs["exclude_outside"] = d.int(0, 1)
    if mode != "nearest" and d.opset >= 18 and d.chance(0.3):
        attrs["antialias"] = 1
    # With the corners aligned, the specification's length of the result may lie between two numbers, the peer's not.
    if d.chance(0.5) and attrs["coordinate_transformation_mode"] != "align_corners":
        s = d.const(np.array([1, 1, d.pick([0.5, 1, 2, 3]), d.pick([0.5, 1, 2, 1.5])], F32))
        return d.emit("Resize", [x, "", s], **attrs)
    d.emit("Resize", [x, "", "", d.ints(n, c, d.int(1, 9), d.int(1, 9))], **attrs)


def sample(d):
    d.opsets(16)
    if d.chance(0.3):
        d.opsets(20)
        n, corners = d.int(1, 2), d.int(0, 1)
        theta = d.operand((n, 2, 3))
        # One pixel between two corners: the peer and the reference differ.
        return d.emit("AffineGrid", [theta, d.ints(n, 1, *[d.int(1 + corners, 4) for _ in range(2)])],
                      align_corners=corners)
    n, h, w = d.int(1, 2), d.int(2, 5), d.int(2, 5)
    x = d.operand((n, 2, h, w))
    grid = d.const(d.data((n, d.int(1, 4), d.int(1, 4), 2), F32, -1.3, 1.3) * F32(0.97))
    modes = ["linear", "nearest", "cubic"] if d.opset >= 20 else ["bilinear", "nearest", "bicubic"]
    d.emit("GridSample", [x, grid], mode=d.pick(modes), align_corners=d.int(0, 1),
           padding_mode=d.pick(["zeros", "border", "reflection"]))


def col2im(d):
    d.opsets(18)
    k = [d.int(1, 3), d.int(1, 3)]
    image = [d.int(k[0], 5), d.int(k[1], 5)]
    count = (image[0] - k[0] + 1) * (image[1] - k[1] + 1)
    d.emit("Col2Im", [d.operand((1, 2 * k[0] * k[1], count)), d.ints(*image), d.ints(*k)])


def det(d):
    n = d.int(1, 4)
    d.emit("Det", [d.operand((*d.shape(0, 2), n, n))])


# Losses, choices, attention.
def loss(d):
    n, c = d.int(1, 4), d.int(2, 5)
    space = [d.int(1, 3) for _ in range(d.int(0, 2))]
    x = d.operand((n, c, *space))
    target = d.const(d.rng.integers(0, c, (n, *space)).astype(d.pick([I64, I32])))
    attrs = {"reduction": d.pick(["none", "mean", "sum"])}
    if d.chance(0.3):
        attrs["ignore_index"] = 1
    inputs = [x, target] + ([d.operand((c,), F32, 0.2, 1)] if d.chance(0.4) else [])
    d.symbolic = False  # the peer does not check that N is one number
    if d.chance(0.5):
        return d.emit("NegativeLogLikelihoodLoss", inputs, **attrs)
    if d.special:
        raise Stale
    d.emit("SoftmaxCrossEntropyLoss", inputs, d.int(1, 2), **attrs)


def suppression(d):
    n, c, boxes = d.int(1, 2), d.int(1, 2), d.int(1, 6)
    corner = d.rng.integers(0, 6, (n, boxes, 2))
    rows = np.concatenate([corner, corner + d.rng.integers(1, 5, (n, boxes, 2))], -1).astype(F32)
    scores = d.rng.permutation(n * c * boxes).reshape(n, c, boxes).astype(F32) / 64
    extra = [np.array([d.int(1, 4)], I64), np.array([d.pick([0.3, 0.6])], F32), np.array([0.05], F32)][:d.int(1, 3)]
    d.emit("NonMaxSuppression", [d.const(rows), d.const(scores), *[d.const(e) for e in extra]],
           center_point_box=d.int(0, 1))


def attention(d):
    d.opsets(23)
    d.symbolic = False  # numbers of heads
    b, h, kv, q, k, size = d.int(1, 2), 2, d.pick([1, 2]), d.int(1, 4), d.int(1, 5), d.pick([2, 4, 8])
    attrs = {"is_causal": d.int(0, 1)}
    if d.chance(0.5):
        shapes = [(b, h, q, size), (b, kv, k, size), (b, kv, k, size)]
    else:
        shapes = [(b, q, h * size), (b, k, kv * size), (b, k, kv * size)]
        attrs.update(q_num_heads=h, kv_num_heads=kv)
    if d.chance(0.3):
        attrs["scale"] = 0.25
    if d.chance(0.3):
        attrs["softcap"] = 2.0
    inputs = [d.operand(s) for s in shapes]
    if d.special or (attrs["is_causal"] and q > k):
        raise Stale
    if d.chance(0.3) and not attrs["is_causal"]:
        inputs.append(d.operand((q, k)))
    d.emit("Attention", inputs, **attrs)


def rotary(d):
    d.opsets(23)
    d.symbolic = False  # the peer takes heads of an odd size
    b, h, s, size = d.int(1, 2), d.int(1, 3), d.int(1, 4), d.pick([2, 4, 8])
    x = d.operand((b, h, s, size)) if d.chance(0.5) else d.operand((b, s, h * size))
    attrs = {"interleaved": d.int(0, 1)}
    if d.values[x].ndim == 3:
        attrs["num_heads"] = h
    if d.chance(0.5):
        caches = [d.operand((b, s, size // 2)), d.operand((b, s, size // 2))]
    else:
        caches = [d.operand((9, size // 2)), d.operand((9, size // 2)), d.const(d.rng.integers(0, 9, (b, s)))]
    d.emit("RotaryEmbedding", [x, *caches], **attrs)


def tensor_scatter(d):
    d.opsets(24)
    b, h, n, size = d.int(1, 2), d.int(1, 2), d.int(3, 6), d.int(1, 4)
    m = d.int(1, 3)
    cache, update = d.operand((b, h, n, size)), d.operand((b, h, m, size))
    mode = d.pick(["linear", "circular"])
    at = d.const(d.rng.integers(0, n - m + 1 if mode == "linear" else n, b))
    d.emit("TensorScatter", [cache, update, at], axis=-2, mode=mode)


def newest(d):
    """Operators of the newest opsets, in case the peer has them."""
    d.opsets(26)
    b, h, s, size = 1, 2, d.int(1, 4), 4
    if d.chance(0.5):
        x = d.operand((b, s * 2, 3 + s))
        return d.emit("CausalConvWithState", [x, d.operand((s * 2, 1, 3))], 2)
    d.emit("LinearAttention", [d.operand((b, s, h * size)) for _ in range(3)], 2, q_num_heads=h, kv_num_heads=h,
           update_rule="linear")


KINDS = [matmul, matmul, integer_matmul, gemm, einsum, conv, conv, conv, conv_transpose, deform_conv, pool, pool,
         global_pool, unpool, regions, batch_norm, instance_norm, layer_norm, group_norm, other_norms, recurrent,
         recurrent, quantize, dequantize, dynamic_quantize, integer_dot, quantised_dot, windows, dft, resize, resize,
         sample, col2im, det, loss, suppression, attention, rotary, tensor_scatter, newest]
