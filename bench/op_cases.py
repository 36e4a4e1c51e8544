"""The single-operator models of bench/ops: CASES is {name: (model, {input: array maker})}.

An input is (type, shape) or (type, shape, values): values is the exclusive end of small whole numbers, or a function of a
random generator. Without it numbers are normal, truth values even, bytes uniform.
"""
import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper

F, D, H, I, I32, U8, B = T.FLOAT, T.DOUBLE, T.FLOAT16, T.INT64, T.INT32, T.UINT8, T.BOOL
CASES = {}
_rng = np.random.default_rng(0)


def weights(*shape):
    return _rng.standard_normal(shape).astype(np.float32)


def maker(kind, shape, values=None):
    if callable(values):
        return values
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    if kind in (F, D, H):
        return lambda rng: rng.standard_normal(shape).astype(dtype)
    if kind == B:
        return lambda rng: rng.random(shape) < 0.5
    first, end = (0, 255) if kind == U8 else (1, values or 1000)
    return lambda rng: rng.integers(first, end, shape).astype(dtype)


def nodes(name, body, inputs, outputs, constants=None, opset=17):
    graph = helper.make_graph(body, name, [helper.make_tensor_value_info(n, i[0], i[1]) for n, i in inputs.items()],
                              [helper.make_tensor_value_info(n, t, None) for n, t in outputs.items()],
                              [numpy_helper.from_array(np.asarray(v), k) for k, v in (constants or {}).items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 8
    CASES[name] = (model, {n: maker(*i) for n, i in inputs.items()})


def one(name, op, inputs, constants=None, outputs=None, opset=17, order=None, **attributes):
    outputs = outputs or {"y": F}
    order = order or [*inputs, *(constants or {})]
    nodes(name, [helper.make_node(op, order, list(outputs), **attributes)], inputs, outputs, constants, opset)


IMAGE = (F, [1, 64, 56, 56])


def pointwise():
    for op in ("Relu Sigmoid Tanh Exp Log Sqrt Erf Softplus Sin Cos Tan Asin Acos Atan Sinh Cosh Asinh Acosh Atanh Abs Neg Floor Round "
               "Softsign Elu Selu Sign Reciprocal HardSwish LeakyRelu").split():
        one("u_" + op, op, {"x": IMAGE})
    one("u_Mish", "Mish", {"x": IMAGE}, opset=18)
    one("u_Gelu", "Gelu", {"x": (F, [128, 3072])}, opset=20)
    one("u_Not", "Not", {"x": (B, [1, 64, 56, 56])}, outputs={"y": B})
    for op in "Add Mul Div Pow Max Mod".split():
        how = {"fmod": 1} if op == "Mod" else {}
        one("b_" + op, op, {"a": IMAGE, "b": IMAGE}, **how)
        one("bb_" + op, op, {"a": IMAGE, "b": (F, [56])}, **how)
    for op in ("Greater", "Equal"):
        one("c_" + op, op, {"a": IMAGE, "b": IMAGE}, outputs={"y": B})
    for op in ("Add", "Div", "Mod"):
        for label, kind in (("I64", I), ("I32", I32)):
            one(op + label, op, {"a": (kind, [512, 512]), "b": (kind, [512, 512])}, outputs={"y": kind})
    one("Where", "Where", {"c": (B, [64, 3136]), "a": (F, [64, 3136]), "b": (F, [64, 1])})
    for op in ("Sum", "Mean"):
        one(op + "3", op, {k: (F, [64, 3136]) for k in "abc"})
    one("PRelu", "PRelu", {"x": IMAGE}, {"s": weights(64, 1, 1)})
    one("Clip", "Clip", {"x": IMAGE}, {"a": np.float32(0), "b": np.float32(6)})
    one("Dropout", "Dropout", {"x": IMAGE})
    for label, a, b in (("I", F, I), ("H", F, H), ("FromH", H, F), ("D", F, D), ("FromI", I, F), ("FromU8", U8, F)):
        one("Cast" + label, "Cast", {"x": (a, [1, 64, 56, 56])}, outputs={"y": b}, to=b)
    scale = {"s": np.float32(.02), "z": np.uint8(128)}
    one("QL", "QuantizeLinear", {"x": IMAGE}, scale, {"y": U8})
    one("DQL", "DequantizeLinear", {"x": (U8, [1, 64, 56, 56])}, scale)
    one("DQuant", "DynamicQuantizeLinear", {"x": (F, [128, 768])}, outputs={"y": U8, "a": F, "b": U8})


def reductions():
    for op in "ReduceSum ReduceMean ReduceMax ReduceProd ReduceL2 ReduceLogSumExp".split():
        for label, axes in (("last", [3]), ("mid", [1]), ("all", [0, 1, 2, 3]), ("hw", [2, 3])):
            as_input = op == "ReduceSum"
            one("r_%s_%s" % (op, label), op, {"x": (F, [4, 64, 56, 56])}, {"ax": np.array(axes)} if as_input else None,
                **({} if as_input else {"axes": axes}))
    for axis in (1, 3):
        one("ArgMax_%d" % axis, "ArgMax", {"x": (F, [4, 64, 56, 56])}, outputs={"y": I}, axis=axis)
    for axis in (0, 1):
        one("CumSum_%d" % axis, "CumSum", {"x": (F, [512, 1024])}, {"ax": np.array(axis)})
    one("Softmax_l", "Softmax", {"x": (F, [512, 1000])}, axis=-1)
    one("Softmax_1", "Softmax", {"x": (F, [1, 21, 128, 128])}, axis=1)
    one("Softmax_s", "Softmax", {"x": (F, [4096, 12])}, axis=-1)
    one("LogSoftmax", "LogSoftmax", {"x": (F, [512, 1000])}, axis=-1)
    one("Hardmax", "Hardmax", {"x": (F, [512, 1000])})
    one("LayerNorm", "LayerNormalization", {"x": (F, [512, 768])}, {"s": weights(768), "b": weights(768)})
    two = (F, [2, 64, 56, 56])
    one("InstNorm", "InstanceNormalization", {"x": two}, {"s": weights(64), "b": weights(64)})
    one("GroupNorm", "GroupNormalization", {"x": two}, {"s": weights(64), "b": weights(64)}, opset=21, num_groups=8)
    one("BatchNorm", "BatchNormalization", {"x": two}, {"s": weights(64), "b": weights(64), "m": weights(64), "v": abs(weights(64))})
    one("MVN", "MeanVarianceNormalization", {"x": two})
    one("LRN", "LRN", {"x": IMAGE}, size=5)
    one("LpNorm", "LpNormalization", {"x": (F, [512, 768])}, axis=-1)
    one("Det", "Det", {"x": (F, [1000, 4, 4])})


def windows():
    large = {"x": (F, [1, 64, 112, 112])}
    padded = dict(kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    one("MaxPool", "MaxPool", large, **padded)
    one("AvgPool", "AveragePool", large, **padded)
    one("MaxPool5", "MaxPool", {"x": (F, [1, 256, 20, 20])}, kernel_shape=[5, 5], strides=[1, 1], pads=[2] * 4)
    one("MaxPool2", "MaxPool", large, kernel_shape=[2, 2], strides=[2, 2])
    one("MaxPool1d", "MaxPool", {"x": (F, [1, 128, 4000])}, kernel_shape=[3], strides=[2], pads=[1, 1])
    one("MaxPool3d", "MaxPool", {"x": (F, [1, 32, 16, 28, 28])}, kernel_shape=[2] * 3, strides=[2] * 3)
    one("GAP", "GlobalAveragePool", {"x": (F, [4, 512, 14, 14])})
    one("GMP", "GlobalMaxPool", {"x": (F, [4, 512, 14, 14])})

    def conv(name, x, w, op="Conv", bias=True, **attributes):
        out = w[1] if op == "ConvTranspose" else w[0]
        one(name, op, {"x": (F, x)}, {"w": weights(*w), **({"b": weights(out)} if bias else {})}, **attributes)

    conv("Conv1d", [1, 80, 3000], [384, 80, 3], pads=[1, 1])
    conv("Conv1dL", [1, 1, 16000], [512, 1, 10], bias=False, strides=[5])
    conv("Conv3d", [1, 16, 16, 28, 28], [32, 16, 3, 3, 3], pads=[1] * 6)
    conv("ConvG", [1, 128, 56, 56], [128, 4, 3, 3], pads=[1] * 4, group=32)
    conv("ConvDil", [1, 64, 56, 56], [64, 64, 3, 3], pads=[2] * 4, dilations=[2, 2])
    conv("ConvDw5s2", [1, 96, 56, 56], [96, 1, 5, 5], pads=[2] * 4, strides=[2, 2], group=96)
    conv("ConvDw1d", [1, 256, 1000], [256, 1, 31], pads=[15, 15], group=256)
    conv("ConvPatch", [1, 3, 224, 224], [384, 3, 16, 16], strides=[16, 16])
    conv("ConvSmallC", [1, 1, 256, 256], [8, 1, 3, 3], pads=[1] * 4)
    conv("ConvOC3", [1, 64, 128, 128], [3, 64, 3, 3], pads=[1] * 4)
    conv("ConvT", [1, 64, 56, 56], [64, 32, 2, 2], "ConvTranspose", strides=[2, 2])
    conv("ConvT4", [1, 128, 32, 32], [128, 64, 4, 4], "ConvTranspose", strides=[2, 2], pads=[1] * 4)
    conv("ConvT1d", [1, 256, 400], [256, 128, 16], "ConvTranspose", strides=[8], pads=[4, 4])


def movements():
    x4, wide = {"x": (F, [4, 64, 56, 56])}, (F, [512, 1024])
    for label, perm in (("nchw_nhwc", [0, 2, 3, 1]), ("nhwc_nchw", [0, 3, 1, 2]), ("0213", [0, 2, 1, 3]), ("rev", [3, 2, 1, 0])):
        one("Tr_" + label, "Transpose", x4, perm=perm)
    one("Tr_2d", "Transpose", {"x": (F, [1000, 1000])}, perm=[1, 0])
    one("Tr_u8", "Transpose", {"x": (U8, [4, 64, 56, 56])}, outputs={"y": U8}, perm=[0, 2, 3, 1])
    one("Concat1", "Concat", {"a": IMAGE, "b": IMAGE}, axis=1)
    one("ConcatL", "Concat", {"a": (F, [1, 64, 56, 20]), "b": (F, [1, 64, 56, 36])}, axis=3)
    one("Split", "Split", {"x": IMAGE}, outputs={"y": F, "z": F}, axis=1)
    one("Slice", "Slice", {"x": IMAGE}, {"st": np.array([0, 0]), "en": np.array([56, 56]), "ax": np.array([2, 3]), "sp": np.array([2, 2])})
    one("SliceNeg", "Slice", {"x": IMAGE}, {"st": np.array([-1]), "en": np.array([-1000]), "ax": np.array([3]), "sp": np.array([-1])})
    one("Gather0", "Gather", {"i": (I, [512], 30000)}, {"w": weights(30000, 256)}, order=["w", "i"], axis=0)
    one("Gather1", "Gather", {"x": wide, "i": (I, [256], 1024)}, axis=1)
    one("GatherEl", "GatherElements", {"x": wide, "i": (I, [512, 1024], 1024)}, axis=1)
    one("GatherND", "GatherND", {"x": (F, [64, 64, 256]), "i": (I, [1024, 2], 64)})
    one("ScatterEl", "ScatterElements", {"x": wide, "i": (I, [512, 100], lambda r: np.argsort(r.random((512, 1024)), 1)[:, :100].copy()),
                                         "u": (F, [512, 100])}, axis=1)
    one("ScatterND", "ScatterND", {"x": (F, [1024, 256]), "i": (I, [200, 1], lambda r: r.permutation(1024)[:200].reshape(200, 1)),
                                   "u": (F, [200, 256])})
    border = {"p": np.array([0, 0, 2, 2, 0, 0, 2, 2])}
    one("Pad", "Pad", {"x": IMAGE}, border)
    one("PadRefl", "Pad", {"x": IMAGE}, border, mode="reflect")
    one("PadEdge", "Pad", {"x": IMAGE}, border, mode="edge")
    one("Tile", "Tile", {"x": (F, [1, 64, 28, 28])}, {"p": np.array([1, 1, 2, 2])})
    one("Expand", "Expand", {"x": (F, [1, 64, 1, 56])}, {"p": np.array([4, 64, 56, 56])})
    one("D2S", "DepthToSpace", {"x": IMAGE}, blocksize=2)
    one("S2D", "SpaceToDepth", {"x": (F, [1, 16, 112, 112])}, blocksize=2)
    one("Trilu", "Trilu", {"x": (F, [8, 512, 512])})
    one("ReverseSeq", "ReverseSequence", {"x": (F, [64, 32, 256]), "l": (I, [32], 64)})
    one("OneHot", "OneHot", {"i": (I, [4096], 100)}, {"d": np.array(100), "v": np.array([0, 1], np.float32)})
    for mode, transform in (("nearest", "asymmetric"), ("linear", "half_pixel"), ("cubic", "half_pixel"), ("linear", "align_corners")):
        how = {"nearest_mode": "floor"} if mode == "nearest" else {}
        nodes("Resize_%s_%s" % (mode, transform),
              [helper.make_node("Resize", ["x", "", "s"], ["y"], mode=mode, coordinate_transformation_mode=transform, **how)],
              {"x": (F, [1, 64, 40, 40])}, {"y": F}, {"s": np.array([1, 1, 2, 2], np.float32)})
    nodes("Resize_odd", [helper.make_node("Resize", ["x", "", "", "s"], ["y"], mode="linear", coordinate_transformation_mode="half_pixel")],
          {"x": (F, [1, 3, 300, 400])}, {"y": F}, {"s": np.array([1, 3, 224, 224])})
    one("GridSample", "GridSample", {"x": (F, [1, 32, 64, 64]), "g": (F, [1, 64, 64, 2])})


def regions(rng):
    corner = abs(rng.standard_normal((100, 2))) * 10
    return np.concatenate([corner, corner + 10 + abs(rng.standard_normal((100, 2))) * 10], 1).astype(np.float32)


def boxes(rng):
    corner = abs(rng.standard_normal((1, 2000, 2)))
    return np.concatenate([corner, corner + .5], 2).astype(np.float32)


def selections():
    one("RoiAlign", "RoiAlign", {"x": (F, [1, 64, 50, 50]), "r": (F, [100, 4], regions), "b": (I, [100], lambda r: np.zeros(100, np.int64))},
        output_height=7, output_width=7)
    one("TopK", "TopK", {"x": (F, [512, 1000])}, {"k": np.array([10])}, {"y": F, "i": I})
    one("TopKbig", "TopK", {"x": (F, [1, 25200])}, {"k": np.array([1000])}, {"y": F, "i": I})
    one("NonZero", "NonZero", {"x": (B, [512, 512])}, outputs={"y": I})
    one("NMS", "NonMaxSuppression", {"b": (F, [1, 2000, 4], boxes), "s": (F, [1, 8, 2000], lambda r: r.random((1, 8, 2000)).astype(np.float32))},
        {"m": np.array([100]), "t": np.array([.5], np.float32), "q": np.array([.2], np.float32)}, {"y": I})
    one("Unique", "Unique", {"x": (I, [20000], 3000)}, outputs={"y": I, "a": I, "b": I, "c": I})


def products():
    for name, a, b in (("MM_1", [1, 1024], [1024, 4096]), ("MM_sq", [512, 512], [512, 512]), ("MM_odd", [197, 77], [77, 131])):
        one(name, "MatMul", {"a": (F, a)}, {"w": weights(*b)})
    for name, a, b in (("MM_dyn", [12, 128, 64], [12, 64, 128]), ("MM_dynbig", [384, 384], [384, 384]), ("MM_small", [1000, 4, 4], [1000, 4, 4]),
                       ("MM_vec", [1000, 256], [256])):
        one(name, "MatMul", {"a": (F, a), "b": (F, b)})
    one("MM_f64", "MatMul", {"a": (D, [128, 256]), "b": (D, [256, 128])}, outputs={"y": D})
    one("MMInt8", "MatMulInteger", {"a": (U8, [128, 768])}, {"w": _rng.integers(-128, 127, (768, 768)).astype(np.int8)}, {"y": I32})
    one("Gemm_T", "Gemm", {"a": (F, [64, 1024])}, {"w": weights(1000, 1024), "b": weights(1000)}, transB=1)
    one("Einsum", "Einsum", {"a": (F, [2, 128, 8, 64]), "b": (F, [2, 128, 8, 64])}, equation="bqhd,bkhd->bhqk")

    def cell(name, op, gates, steps, batch, size, hidden, sides, **attributes):
        shapes = {"w": (sides, gates * hidden, size), "r": (sides, gates * hidden, hidden), "b": (sides, 2 * gates * hidden)}
        one(name, op, {"x": (F, [steps, batch, size])}, {k: weights(*s) * .1 for k, s in shapes.items()}, hidden_size=hidden, **attributes)

    for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        cell(op, op, gates, 64, 4, 128, 256, 1)
    cell("LSTM_bi", "LSTM", 4, 100, 1, 64, 64, 2, direction="bidirectional")
    one("STFT", "STFT", {"x": (F, [1, 16000, 1])}, {"st": np.array(160), "w": weights(400)}, order=["x", "st", "w"])


for family in (pointwise, reductions, windows, movements, selections, products):
    family()
