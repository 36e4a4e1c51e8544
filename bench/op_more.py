"""More single-operator models for bench/ops: operators of com.microsoft, odd sizes and axes, halves, whole numbers, newer opsets.

Each is there because nobody had tried its like. Importing adds them to op_cases.CASES.
"""
import numpy as np
from onnx import helper
from op_cases import B, CASES, D, F, H, I, I32, IMAGE, U8, nodes, one, weights

MS = "com.microsoft"
_rng = np.random.default_rng(3)


def ms(name, op, inputs, constants=None, outputs=None, order=None, **attributes):
    outputs, order = outputs or {"y": F}, order or [*inputs, *(constants or {})]
    node = helper.make_node(op, order, list(outputs), domain=MS, **attributes)
    nodes(name, [node], inputs, outputs, constants)
    CASES[name][0].opset_import.append(helper.make_opsetid(MS, 1))


def words(*shape, most=100):
    return _rng.integers(-most, most, shape).astype(np.int8)


def language():
    k, n = 1024, 2048

    def bits(name, rows, width, block, zeros=False):
        packed = {"b": _rng.integers(0, 255, (n, k // block, block * width // 8)).astype(np.uint8),
                  "s": (_rng.random(n * k // block) * .02).astype(np.float32)}
        if zeros:
            packed["z"] = _rng.integers(0, 255, n * (k // block) * width // 8).astype(np.uint8)
        ms(name, "MatMulNBits", {"a": (F, [rows, k])}, packed, K=k, N=n, bits=width, block_size=block)

    bits("NBits_1", 1, 4, 32)
    bits("NBits_64", 64, 4, 32)
    bits("NBits_zp", 8, 4, 64, True)
    bits("NBits_8", 4, 8, 32)

    def grouped(name, steps, past, heads=8, shared=2, size=64):
        total = past + steps
        number = {"sl": (I32, [1], lambda r: np.array([total - 1], np.int32)), "tl": (I32, [], lambda r: np.array(total, np.int32))}
        cache = (F, [1, shared, past, size])
        ms(name, "GroupQueryAttention", {"q": (F, [1, steps, heads * size]), "k": (F, [1, steps, shared * size]),
                                         "v": (F, [1, steps, shared * size]), "pk": cache, "pv": cache, **number},
           outputs={"y": F, "k2": F, "v2": F}, num_heads=heads, kv_num_heads=shared)

    grouped("GQA_prefill", 128, 0)
    rows = (F, [1, 128, 768])
    ms("SkipLN", "SkipLayerNormalization", {"x": rows, "s": rows}, {"g": weights(768), "b": weights(768), "c": weights(768)})
    ms("SkipSLN", "SkipSimplifiedLayerNormalization", {"x": rows, "s": rows}, {"g": weights(768)})
    tables = {"w": weights(1000, 256), "p": weights(512, 256), "t": weights(2, 256), "g": weights(256), "b": weights(256)}
    ms("EmbedLN", "EmbedLayerNormalization", {"i": (I32, [1, 128], 1000), "s": (I32, [1, 128], 2)}, tables, {"y": F, "m": I32})
    ms("QAtt", "QAttention", {"x": (U8, [1, 64, 256])},
       {"w": words(256, 768, most=60), "b": weights(768), "xs": np.float32(.02), "wsc": np.float32(.005), "m": np.ones((1, 64), np.int32),
        "xz": np.uint8(128), "wz": np.int8(0)}, order=["x", "w", "b", "xs", "wsc", "m", "xz", "wz"], num_heads=4)
    ms("Att", "Attention", {"x": (F, [1, 128, 256])}, {"w": weights(256, 768) * .05, "b": weights(768)}, num_heads=4)
    ms("MHA", "MultiHeadAttention", {k: (F, [1, 128, 256]) for k in "qkv"}, num_heads=4)
    ms("DQMM", "DynamicQuantizeMatMul", {"a": (F, [64, 768])},
       {"w": words(768, 768), "s": np.float32(.01), "z": np.int8(0), "b": weights(768)})
    ms("MMIF", "MatMulIntegerToFloat", {"a": (U8, [64, 768])},
       {"w": words(768, 768), "as": np.float32(.01), "bs": np.float32(.02), "az": np.uint8(128), "bz": np.int8(0)},
       order=["a", "w", "as", "bs", "az", "bz"])
    for op in ("BiasGelu", "FastGelu"):
        ms(op, op, {"x": (F, [128, 3072])}, {"b": weights(3072)})
    ms("QuickGelu", "QuickGelu", {"x": (F, [128, 3072])})
    heads = (F, [1, 8, 128, 64])
    ms("RotEmb", "RotaryEmbedding", {"x": heads, "p": (I, [1, 128], lambda r: np.arange(128).reshape(1, 128))},
       {"c": weights(256, 32), "s": weights(256, 32)})
    one("Attn23", "Attention", {k: heads for k in "qkv"}, opset=23)
    one("Rot23", "RotaryEmbedding", {"x": heads, "c": (F, [1, 128, 32]), "s": (F, [1, 128, 32])}, opset=23)
    one("RMS", "RMSNormalization", {"x": (F, [512, 768])}, {"s": weights(768)}, opset=23)
    one("Swish24", "Swish", {"x": (F, [128, 3072])}, opset=24)
    one("Gelu_t", "Gelu", {"x": (F, [128, 3072])}, opset=20, approximate="tanh")


def quantised():
    a, b, y = ({p + "s": np.float32(s), p + "z": np.uint8(z)} for p, s, z in (("a", .02, 120), ("b", .03, 130), ("y", .04, 128)))
    image = (U8, [1, 64, 56, 56])
    for op in ("Add", "Mul"):
        ms("QL" + op, "QLinear" + op, {"a": image, "b": image}, {**a, **b, **y}, {"y": U8},
           order=["a", "as", "az", "b", "bs", "bz", "ys", "yz"])
    ms("QLConcat", "QLinearConcat", {"a": (U8, [1, 64, 28, 28]), "b": (U8, [1, 32, 28, 28])}, {**a, **b, **y}, {"y": U8},
       order=["ys", "yz", "a", "as", "az", "b", "bs", "bz"], axis=1)
    for name, op, x, how in (("QLGAP", "GlobalAveragePool", [1, 512, 7, 7], {}), ("QLSigmoid", "Sigmoid", image[1], {}),
                             ("QLLeaky", "LeakyRelu", image[1], {"alpha": .1}),
                             ("QLAvg", "AveragePool", [1, 64, 28, 28], dict(kernel_shape=[3, 3], pads=[1] * 4, strides=[2, 2]))):
        ms(name, "QLinear" + op, {"a": (U8, x)}, {**a, **y}, {"y": U8}, **how)
    ms("NhwcMaxPool", "NhwcMaxPool", {"x": (U8, [1, 56, 56, 64])}, outputs={"y": U8}, kernel_shape=[3, 3], pads=[1] * 4, strides=[2, 2])
    one("QL_ax", "QuantizeLinear", {"x": IMAGE}, {"s": abs(weights(64)) * .02 + .001, "z": np.full(64, 128, np.uint8)}, {"y": U8}, axis=1)
    one("DQL_ax", "DequantizeLinear", {"x": (U8, [64, 1000])}, {"s": abs(weights(64)), "z": np.full(64, 128, np.uint8)}, axis=0)


def arithmetic():
    for op in ("Mul", "Sub", "Max"):
        one(op + "I64", op, {"a": (I, [256, 512]), "b": (I, [256, 512])}, outputs={"y": I})
    one("SumI64", "ReduceSum", {"x": (I, [256, 1024])}, {"ax": np.array([1])}, {"y": I})
    one("ReduceI", "ReduceMax", {"x": (I, [64, 1024]), "ax": (I, [1], lambda r: np.array([1]))}, outputs={"y": I}, opset=18)
    one("BitAnd", "BitwiseAnd", {"a": (I32, [512, 512]), "b": (I32, [512, 512])}, outputs={"y": I32}, opset=18)
    for name, op, x, z in (("mid", "Mul", [8, 64, 1, 56], [8, 1, 56, 56]), ("first", "Add", [1, 64, 56, 56], [8, 64, 1, 1]),
                           ("col", "Add", [512, 1], [1, 512]), ("3", "Sub", [17, 1, 33, 1], [1, 19, 1, 35])):
        one("Bc_" + name, op, {"a": (F, x), "b": (F, z)})
    for op in ("Add", "Mul"):
        one("H_" + op, op, {"a": (H, IMAGE[1]), "b": (H, IMAGE[1])}, outputs={"y": H})
    one("Mod_f", "Mod", {"a": (F, [256, 512]), "b": (F, [256, 512])}, fmod=1)
    one("IsNaN", "IsNaN", {"x": IMAGE}, outputs={"y": B})
    for op, how in (("Shrink", {"lambd": .5, "bias": .1}), ("Celu", {"alpha": 2.0}), ("ThresholdedRelu", {"alpha": .5}), ("HardSigmoid", {})):
        one(op, op, {"x": IMAGE}, **how)
    for name, kind, to in (("B", F, B), ("I32", F, I32), ("BF", B, F)):
        one("Cast" + name, "Cast", {"x": (kind, IMAGE[1])}, outputs={"y": to}, to=to)
    one("CumSum_ex", "CumSum", {"x": (F, [64, 128, 128])}, {"ax": np.array(1)}, exclusive=1, reverse=1)
    one("CumSum_I", "CumSum", {"x": (I, [64, 4096])}, {"ax": np.array(1)}, {"y": I})
    nodes("Range", [helper.make_node("Range", ["a", "b", "c"], ["y"])], {"b": (I, [], lambda r: np.array(100000))}, {"y": I},
          {"a": np.array(0), "c": np.array(1)})


def normalisations():
    one("LpNorm1", "LpNormalization", {"x": (F, [8, 64, 1024])}, axis=1, p=1)
    for name, x, groups in (("GN1", [2, 64, 56, 56], 1), ("GN2", [1, 32, 33, 35], 16)):
        one(name, "GroupNormalization", {"x": (F, x)}, {"s": weights(x[1]), "b": weights(x[1])}, opset=21, num_groups=groups)
    one("LN_2ax", "LayerNormalization", {"x": (F, [64, 32, 48])}, {"s": weights(32, 48), "b": weights(32, 48)}, axis=1)
    one("LN_odd", "LayerNormalization", {"x": (F, [100, 77])}, {"s": weights(77), "b": weights(77)})
    half = {k: weights(768).astype(np.float16) for k in "sb"}
    one("H_LN", "LayerNormalization", {"x": (H, [512, 768])}, half, {"y": H})
    one("H_Softmax", "Softmax", {"x": (H, [512, 1000])}, outputs={"y": H})


def products():
    one("Ein_mm", "Einsum", {"a": (F, [64, 128]), "b": (F, [128, 96])}, equation="ij,jk->ik")
    one("Ein_bil", "Einsum", {"a": (F, [8, 32, 64]), "b": (F, [64, 48]), "c": (F, [8, 32, 48])}, equation="bij,jk,bik->bi")
    one("Ein_outer", "Einsum", {"a": (F, [200]), "b": (F, [300])}, equation="i,j->ij")
    one("Ein_diag", "Einsum", {"a": (F, [64, 64, 64])}, equation="iij->ij")
    one("Ein_t", "Einsum", {"a": (F, [2, 12, 64, 64]), "b": (F, [2, 64, 12, 32])}, equation="bhij,bjhd->bihd")
    for name, a, b in (("MM_bc", [4, 1, 64, 64], [1, 8, 64, 64]), ("MM_n1", [1000, 256], [256, 1]), ("MM_n2", [1000, 256], [256, 2]),
                       ("MM_k1", [500, 1], [1, 700]), ("MM_3x3", [100, 8, 3], [100, 3, 3])):
        one(name, "MatMul", {"a": (F, a), "b": (F, b)})
    one("MM_n3", "MatMul", {"a": (F, [1000, 256])}, {"w": weights(256, 3)})
    one("MM_I32", "MatMul", {"a": (I32, [64, 128], 100), "b": (I32, [128, 64], 100)}, outputs={"y": I32})
    one("H_MM", "MatMul", {"a": (H, [128, 768])}, {"w": weights(768, 768).astype(np.float16)}, {"y": H})
    one("Gemm_tA", "Gemm", {"a": (F, [256, 64]), "b": (F, [256, 128]), "c": (F, [64, 1])}, transA=1, alpha=.5, beta=2.0)
    one("Gemm_f64", "Gemm", {"a": (D, [64, 128]), "b": (D, [100, 128]), "c": (D, [100])}, outputs={"y": D}, transB=1)
    ms("FusedMM", "FusedMatMul", {"a": (F, [12, 64, 128]), "b": (F, [12, 64, 96])}, transA=1, alpha=.125)
    ms("FusedGemm", "FusedGemm", {"a": (F, [64, 256])}, {"b": weights(256, 300), "c": weights(300)}, activation="LeakyRelu", activation_alpha=.1)


def windows():
    def conv(name, x, w, op="Conv", **how):
        out = w[1] * how.get("group", 1) if op == "ConvTranspose" else w[0]
        one(name, op, {"x": (F, x)}, {"w": weights(*w), "b": weights(out)}, **how)

    for c in (3, 5, 17):
        conv("ConvC%d" % c, [1, c, 64, 64], [c, c, 3, 3], pads=[1] * 4)
    conv("ConvS3", [1, 32, 57, 57], [48, 32, 5, 5], strides=[3, 3], auto_pad="SAME_UPPER")
    conv("ConvDil3", [1, 32, 56, 56], [32, 32, 3, 3], pads=[3] * 4, dilations=[3, 3])
    conv("ConvAsym", [1, 32, 56, 56], [32, 32, 1, 7], pads=[0, 3, 0, 3])
    conv("ConvB8", [8, 32, 28, 28], [64, 32, 3, 3], pads=[1] * 4)
    conv("ConvDwMul", [1, 32, 56, 56], [64, 1, 3, 3], pads=[1] * 4, group=32)
    conv("Conv1dDil", [1, 64, 2000], [64, 64, 3], pads=[8, 8], dilations=[8])
    up = dict(op="ConvTranspose", strides=[2, 2])
    conv("ConvTG", [1, 64, 28, 28], [64, 16, 4, 4], pads=[1] * 4, group=4, **up)
    conv("ConvTdw", [1, 64, 28, 28], [64, 1, 4, 4], pads=[1] * 4, group=64, **up)
    conv("ConvTdil", [1, 16, 28, 28], [16, 16, 3, 3], dilations=[2, 2], output_padding=[1, 1], **up)
    conv("ConvT3d", [1, 8, 8, 14, 14], [8, 8, 2, 2, 2], "ConvTranspose", strides=[2] * 3)
    half = {"w": weights(64, 64, 3, 3).astype(np.float16)}
    one("H_Conv", "Conv", {"x": (H, [1, 64, 28, 28])}, half, {"y": H}, pads=[1] * 4)
    ms("FusedConv", "FusedConv", {"x": (F, [1, 32, 56, 56])}, {"w": weights(64, 32, 3, 3), "b": weights(64)}, pads=[1] * 4, activation="Relu")
    two, image = dict(kernel_shape=[2, 2], strides=[2, 2]), {"x": (F, [1, 32, 56, 56])}
    one("AvgPool3d", "AveragePool", {"x": (F, [1, 32, 16, 28, 28])}, kernel_shape=[2] * 3, strides=[2] * 3)
    one("MaxPool3d3", "MaxPool", {"x": (F, [1, 16, 16, 28, 28])}, kernel_shape=[3] * 3, strides=[1] * 3, pads=[1] * 6)
    one("MaxPoolIdx", "MaxPool", image, outputs={"y": F, "i": I}, **two)
    one("LpPool", "LpPool", image, **two)
    one("Col2Im", "Col2Im", {"x": (F, [1, 32 * 9, 784])}, {"im": np.array([28, 28]), "bl": np.array([3, 3])}, opset=18, pads=[1] * 4)


def movements():
    one("GatherBig", "Gather", {"i": (I, [8, 128], 50000)}, {"w": weights(50000, 256)}, order=["w", "i"], axis=0)
    one("GatherElB", "GatherElements", {"x": (F, [4, 1000, 85]), "i": (I, [4, 100, 85], 1000)}, axis=1)
    table = {"x": (F, [1000, 64])}
    one("ScatterNDadd", "ScatterND", {**table, "i": (I, [5000, 1], 1000), "u": (F, [5000, 64])}, reduction="add", opset=18)
    one("ScatterElAdd", "ScatterElements", {**table, "i": (I, [500, 64], 1000), "u": (F, [500, 64])}, reduction="add", axis=0, opset=18)
    one("OneHot_mid", "OneHot", {"i": (I, [64, 50], 100)}, {"d": np.array(100), "v": np.array([0, 1], np.float32)}, axis=1)
    one("Unique_ax", "Unique", {"x": (I, [200, 4], 3)}, outputs={k: I for k in "yabc"}, axis=0)
    one("Trilu_lo", "Trilu", {"x": (F, [8, 512, 512])}, {"k": np.array(-3)}, upper=0)
    one("D2S_crd", "DepthToSpace", {"x": IMAGE}, blocksize=2, mode="CRD")
    nodes("Resize_near_odd", [helper.make_node("Resize", ["x", "", "", "s"], ["y"], mode="nearest", nearest_mode="floor",
                                               coordinate_transformation_mode="asymmetric")],
          {"x": (F, [1, 32, 50, 50])}, {"y": F}, {"s": np.array([1, 32, 77, 77])})
    one("CenterCP", "CenterCropPad", {"x": (F, [3, 200, 200])}, {"s": np.array([3, 224, 180])}, opset=18)
    one("TopK_ax0", "TopK", table, {"k": np.array([5])}, {"y": F, "i": I}, axis=0)
    one("ArgMin_l", "ArgMin", {"x": (F, [64, 1000])}, outputs={"y": I}, axis=1, select_last_index=1)
    border = np.array([0, 0, 3, 5, 0, 0, 3, 5])
    one("PadConst3", "Pad", {"x": (F, [1, 3, 224, 224])}, {"p": border, "v": np.float32(.5)})
    one("PadWrap", "Pad", {"x": (F, [1, 8, 50, 50])}, {"p": border}, mode="wrap", opset=19)
    one("Tile_odd", "Tile", {"x": (F, [3, 7, 11])}, {"p": np.array([5, 3, 9])})
    one("Concat0", "Concat", {k: (F, [1, 3, 50, 50]) for k in "abc"}, axis=0)
    one("ConcatOdd", "Concat", {k: (F, [1, c, 56, 57]) for k, c in (("a", 3), ("b", 5), ("c", 17))}, axis=1)
    one("SplitOdd", "Split", {"x": (F, [1, 25, 56, 57])}, {"s": np.array([3, 5, 17])}, {k: F for k in "pqr"}, axis=1)
    one("SliceOdd", "Slice", {"x": (F, [4, 33, 35, 37])},
        {"st": np.array([1, 2, 3]), "en": np.array([30, 34, 35]), "ax": np.array([1, 2, 3]), "sp": np.array([2, 1, 3])})


for family in (language, quantised, arithmetic, normalisations, products, windows, movements):
    family()
