"""What random graphs and users have found: each fault that was mended is a case here. found.py FOLDER"""

import sys

import numpy as np
from onnx import TensorProto as T
from onnx import helper, numpy_helper

from peer import Cases

rng = np.random.default_rng(3)
WORDS = np.array([["", "b", "two words"], ["na\u00efve", "b", "zz"]], object)


def f32(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def graph(c, name, nodes, feeds, outputs, consts=(), symbols=(), opset=21, tolerance=None):
    """nodes: (op, inputs, outputs, attributes); feeds: name to array; symbols: input names whose dims are open."""
    infos = []
    for n, a in feeds.items():
        kind = T.STRING if a.dtype.kind in "OU" else helper.np_dtype_to_tensor_dtype(a.dtype)
        dims = [f"{n}_{i}" for i in range(a.ndim)] if n in symbols else a.shape
        infos.append(helper.make_tensor_value_info(n, kind, dims))
    made = [helper.make_node(op, i, o, name="n_" + o[0], **attrs) for op, i, o, attrs in nodes]
    results = [helper.make_tensor_value_info(o, k, None) for o, k in outputs.items()]
    inits = [numpy_helper.from_array(np.asarray(a), n) for n, a in dict(consts).items()]
    model = helper.make_model(helper.make_graph(made, "g", infos, results, inits),
                              opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)],
                              ir_version=9)
    c.add_model(name, model, feeds, tolerance)


def one(c, name, op, feeds, kind, consts=(), symbols=(), opset=21, outputs=1, **attrs):
    kinds = kind if isinstance(kind, list) else [kind]
    inputs = [*feeds, *dict(consts)]
    graph(c, name, [(op, inputs, [f"y{i}" for i in range(outputs)], attrs)], feeds,
          {f"y{i}": k for i, k in enumerate(kinds)}, consts, symbols, opset)


def ints(*v):
    return np.array(v, np.int64)


def numbers(c):
    for dtype, kind in ((np.float32, T.FLOAT), (np.float64, T.DOUBLE)):
        x = np.array([-np.inf, -1, np.nan, 2, np.inf], dtype)
        one(c, f"clip_no_high_{kind}", "Clip", {"x": x}, kind, {"low": np.array(-0.5, dtype)})
        one(c, f"clip_no_limits_{kind}", "Clip", {"x": x}, kind)
        graph(c, f"clip_no_low_{kind}", [("Clip", ["x", "", "high"], ["y"], {})], {"x": x}, {"y": kind},
              {"high": np.array(1, dtype)})
    for i, (start, end, step) in enumerate([(2, 3, -1), (3, -4, -2), (3, -4, -7), (0, 7, 3), (5, 5, -1)]):
        one(c, f"range_{i}", "Range", {}, T.INT16,
            {k: np.array(v, np.int16) for k, v in zip("abc", (start, end, step))})
    for i, first in enumerate((-4, 0, 14, 20)):
        graph(c, f"range_turned_{i}", [("Range", ["x", "b", "s"], ["v"], {}),
                                       ("Slice", ["v", "a", "e", "d", "p"], ["y"], {})],
              {"x": np.array(first, np.int32)}, {"y": T.INT32},
              {"b": np.array(15, np.int32), "s": np.array(3, np.int32), "a": ints(1 - 2 ** 63), "e": ints(1 - 2 ** 63), "d": ints(0),
               "p": ints(-1)})


def hidden_keys(c):
    """Masks that hide stretches of keys, from some rows all of them."""
    row, key = np.arange(150)[:, None], np.arange(200)
    seen = np.stack([key <= row + 50, (key <= row) & (key > row - 20), (key <= row) & (key > 70), (key < 30) & (row >= 0),
                     (key < 0) & (row < 0)])[:, None]
    feeds = {"q": f32(5, 2, 150, 16), "k": f32(5, 2, 16, 200), "v": f32(5, 2, 200, 16)}
    for low in np.array([-np.inf, np.finfo(np.float32).min, -1e4], np.float32):
        for op, inputs, more in (("Where", ["b", "s", "low"], {"b": seen}), ("Add", ["s", "m"], {"m": np.where(seen, np.float32(0), low)})):
            graph(c, f"hidden_{op}_{-low:.0e}", [
                ("MatMul", ["q", "k"], ["s"], {}), (op, inputs, ["t"], {}), ("Softmax", ["t"], ["w"], {"axis": -1}),
                ("MatMul", ["w", "v"], ["y"], {})], feeds | more, {"y": T.FLOAT}, {"low": low}, tolerance={"atol": 2e-5})


def packed_weights(c):
    """Of products whose rows are not known: few, and many."""
    for n, bits in ((40, 4), (64, 4), (20, 8), (100, 2)):
        weights = {"w": rng.integers(0, 256, (n, 3, 32 * bits // 8), dtype=np.uint8), "s": np.abs(f32(n * 3)) * np.float32(0.05),
                   "z": rng.integers(0, 256, n * ((3 * bits + 7) // 8), dtype=np.uint8)}
        for rows in (1, 3, 50):
            graph(c, f"packed_{n}_{bits}_{rows}", [("MatMulNBits", ["x", "w", "s", "z"], ["y"], {
                "domain": "com.microsoft", "K": 96, "N": n, "bits": bits, "block_size": 32})],
                {"x": f32(1, rows, 96)}, {"y": T.FLOAT}, weights, ["x"], tolerance={"atol": 1e-4})


def sizes(c):
    """Axes of size 0, and of size 1 where more was thought of."""
    graph(c, "empty_slice_reduced", [("Slice", ["x", "a", "b", "c", "d"], ["v"], {}),
                                     ("ArgMax", ["v"], ["y"], {"axis": 0, "keepdims": 1})], {"x": f32(2, 3, 4, 5)},
          {"y": T.INT64}, {"a": ints(0), "b": ints(-3), "c": ints(1), "d": ints(-1)}, symbols=["x"])
    one(c, "empty_slice", "Slice", {"x": f32(3, 16, 2, 2)}, T.FLOAT,
        {"a": ints(6), "b": ints(12), "c": ints(1), "d": ints(-2)}, symbols=["x"])
    one(c, "empty_input", "Relu", {"x": f32(0, 3)}, T.FLOAT, symbols=["x"])
    one(c, "empty_sum", "MatMul", {"x": f32(2, 0), "z": f32(0, 3)}, T.FLOAT, symbols=["x", "z"])
    one(c, "empty_weights", "MatMul", {"x": ints(1, 2, 3).reshape(1, 3)}, T.INT64, {"w": np.zeros((3, 0), np.int64)})
    one(c, "empty_weight_rows", "MatMul", {"x": np.zeros((2, 4, 0), np.int32)}, T.INT32, {"w": np.zeros((0, 5), np.int32)})
    one(c, "empty_weight_sum", "Gemm", {"x": f32(2, 0)}, T.FLOAT, {"w": f32(5, 0), "c": f32(5)}, transB=1)
    one(c, "empty_quantised", "QuantizeLinear", {"x": f32(0)}, T.UINT8, {"s": f32(0), "z": np.zeros(0, np.uint8)},
        symbols=["x"], axis=0)
    one(c, "empty_concat", "Concat", {"x": f32(2, 0), "z": f32(2, 3)}, T.FLOAT, symbols=["x", "z"], axis=1)
    one(c, "empty_cropped", "CenterCropPad", {"x": f32(8, 0)}, T.FLOAT, {"s": ints(4, 9)}, symbols=["x"], axes=[0, 1])
    one(c, "empty_padded", "Pad", {"x": f32(0, 300)}, T.FLOAT, {"p": ints(2, 0, 1, 0)}, symbols=["x"])
    one(c, "gemm_open_bias", "Gemm", {"x": f32(3, 5), "z": f32(5, 8), "c": f32(1, 1)}, T.FLOAT, symbols=["c"])
    for batch in (1, 4):
        one(c, f"matmul_batch_{batch}", "MatMul", {"x": f32(4, 6, 7), "z": f32(batch, 7, 5)}, T.FLOAT, symbols=["z"])
        one(c, f"matmul_left_batch_{batch}", "MatMul", {"x": f32(batch, 6, 7), "z": f32(4, 7, 5)}, T.FLOAT, symbols=["x"])
        one(c, f"integer_matmul_batch_{batch}", "MatMulInteger",
            {"x": rng.integers(0, 9, (4, 6, 7)).astype(np.uint8), "z": rng.integers(0, 9, (batch, 7, 5)).astype(np.uint8)},
            T.INT32, symbols=["z"])


def resized(c):
    """The size of an open dim times a scale is rounded as floats round it."""
    for size, scale in ((10, .7), (10, .9), (20, .35), (30, 1.9), (400, .01), (90, 1.3), (30, 1.3), (6, 5 / 6), (6, 1 / 3)):
        for mode in ("nearest", "linear"):
            for symbols in ((), ("x",)):
                graph(c, f"resize_{size}_{scale:.2f}_{mode}_{len(symbols)}", [("Resize", ["x", "", "s"], ["y"], {"mode": mode})],
                      {"x": f32(1, 2, 3, size)}, {"y": T.FLOAT}, {"s": np.array([1, 1, 1, scale], np.float32)}, symbols,
                      tolerance={"atol": 1e-5})


def norms(c):
    """Mean and deviation are f32 beside doubles."""
    one(c, "layer_norm_of_doubles", "LayerNormalization", {"x": rng.standard_normal((3, 5)), "s": rng.standard_normal(5)},
        [T.DOUBLE, T.FLOAT, T.FLOAT], outputs=3)


def attention(c):
    """Heads and their size known only at run time."""
    x = {n: f32(2, h, s, 8) for n, h, s in (("q", 4, 3), ("k", 2, 5), ("v", 2, 5))}
    one(c, "attention_open", "Attention", x, T.FLOAT, symbols=["q", "k", "v"], opset=23)
    one(c, "attention_open_keys", "Attention", x, T.FLOAT, symbols=["k", "v"], opset=23)


def loops(c):
    """A check on the number of rounds is due when the loop has ended."""
    state = lambda n: helper.make_tensor_value_info(n, T.FLOAT, None)
    body = helper.make_graph(
        [helper.make_node("Tanh", ["s"], ["t"]), helper.make_node("Identity", ["go"], ["on"]),
         helper.make_node("Abs", ["t"], ["part"])], "body",
        [helper.make_tensor_value_info("i", T.INT64, []), helper.make_tensor_value_info("go", T.BOOL, []), state("s")],
        [helper.make_tensor_value_info("on", T.BOOL, []), state("t"), state("part")])
    empty = helper.make_graph(
        [helper.make_node("Gather", ["none", "at"], ["g"], axis=1), helper.make_node("Tanh", ["g"], ["u"]),
         helper.make_node("Tanh", ["s"], ["t"]), helper.make_node("Identity", ["go"], ["on"]),
         helper.make_node("Abs", ["u"], ["part"])], "body",
        [helper.make_tensor_value_info("i", T.INT64, []), helper.make_tensor_value_info("go", T.BOOL, []), state("r"),
         state("s")],
        [helper.make_tensor_value_info("on", T.BOOL, []), state("u"), state("t"), state("part")])
    graph(c, "loop_empty_parts",
          [("Slice", ["x", "from", "to", "from"], ["none"], {}),
           ("Loop", ["m", "yes", "none", "x"], ["last", "tanh", "all"], {"body": empty})],
          {"m": np.array(2, np.int64), "x": f32(8, 4)}, {"all": T.FLOAT},
          {"yes": np.array(True), "from": ints(0), "to": ints(0), "at": ints(1, 0)}, symbols=["x"])
    graph(c, "loop_rounds_checked",
          [("Loop", ["m", "yes", "x"], ["last", "all"], {"body": body}),
           ("GatherElements", ["all", "at"], ["y"], {"axis": 2})],
          {"m": np.array(2, np.int64), "x": f32(8, 4)}, {"last": T.FLOAT, "y": T.FLOAT},
          {"yes": np.array(True), "at": rng.integers(-4, 4, (1, 5, 2))})


def far_slices(c):
    most, least = 2 ** 63 - 1, -2 ** 63
    x = f32(8)
    for i, (start, end, step) in enumerate(((2, least, -1), (most, least, -1), (least, most, 1), (0, least, 1),
                                            (-20, -30, -1), (-20, 3, 2), (5, -3, -1))):
        limits = {"s": ints(start), "e": ints(end), "a": ints(0), "p": ints(step)}
        one(c, f"slice_far_{i}", "Slice", {"x": x}, T.FLOAT, limits)
        one(c, f"slice_far_run_{i}", "Slice", {"x": x, "s": ints(start), "e": ints(end)}, T.FLOAT,
            {"a": ints(0), "p": ints(step)})


def cells(c):
    """activation_alpha is given to the functions that take it, in turn."""
    x, w, r = f32(4, 2, 3), f32(2, 20, 3), f32(2, 20, 5)
    functions = ["Sigmoid", "Tanh", "LeakyRelu", "HardSigmoid", "Tanh", "Elu"]
    one(c, "lstm_alpha", "LSTM", {"x": x, "w": w[:1], "r": r[:1]}, [T.FLOAT, T.FLOAT, T.FLOAT], outputs=3,
        hidden_size=5, activations=functions[:3], activation_alpha=[0.5])
    one(c, "lstm_alpha_beta_both", "LSTM", {"x": x, "w": w, "r": r}, [T.FLOAT, T.FLOAT, T.FLOAT], outputs=3,
        hidden_size=5, direction="bidirectional", activations=functions, activation_alpha=[0.5, 0.3, 0.7],
        activation_beta=[0.4])


def open_masks(c):
    """A dim of a mask that is 1 only at run time is repeated."""
    q, k, v = f32(2, 2, 3, 8), f32(2, 2, 4, 8), f32(2, 2, 4, 8)
    for i, shape in enumerate(((1, 1, 3, 4), (2, 1, 3, 4), (1, 2, 1, 4), (2, 2, 3, 4))):
        one(c, f"attention_open_mask_{i}", "Attention", {"q": q, "k": k, "v": v, "m": f32(*shape)}, T.FLOAT,
            symbols=["m"], opset=23)


def strings(c):
    x = {"x": WORDS}
    add = lambda name, op, consts=(), **more: one(c, "string_" + name, op, x, T.STRING, consts, **more)
    one(c, "string_gather", "Gather", {"x": WORDS[0]}, T.STRING, {"i": ints(2, -3, 1)}, axis=0)
    add("gather_elements", "GatherElements", {"i": ints(2, 0, -1).reshape(1, 3)}, axis=1)
    add("gather_nd", "GatherND", {"i": np.array([[0, 2], [-1, 0]], np.int64)})
    add("reshape", "Reshape", {"s": ints(3, -1)})
    add("transpose", "Transpose", perm=[1, 0], symbols=["x"])
    add("slice", "Slice", {"a": ints(2), "b": ints(-4), "c": ints(1), "d": ints(-1)})
    add("tile", "Tile", {"n": ints(1, 2)})
    add("expand", "Expand", {"s": ints(2, 1, 1)})
    add("flatten", "Flatten", axis=0)
    add("unsqueeze", "Unsqueeze", {"a": ints(0, -1)})
    add("scatter", "ScatterElements", {"i": ints(1, 0, 2).reshape(1, 3), "u": np.array([["p", "q", ""]], object)}, axis=1)
    add("scatter_nd", "ScatterND", {"i": ints(1).reshape(1, 1), "u": WORDS[:1]})
    add("compress", "Compress", {"k": np.array([True, False, True])}, axis=1)
    add("split", "Split", {"s": ints(1, 2)}, axis=1, outputs=2)
    add("cast", "Cast", to=T.STRING)
    one(c, "string_concat", "Concat", {"x": WORDS, "z": WORDS[:, :2]}, T.STRING, symbols=["x", "z"], axis=1)
    graph(c, "string_constant_empty", [("Concat", ["x", "e"], ["y"], {"axis": 0})], {"x": WORDS[0]}, {"y": T.STRING},
          {"e": np.array([""], object)})
    one(c, "string_where", "Where", {"k": np.array([[True], [False]]), "x": WORDS, "z": WORDS[::-1].copy()}, T.STRING)
    flat = WORDS.ravel()
    for order in (0, 1):
        one(c, f"string_unique_{order}", "Unique", {"x": flat}, [T.STRING, T.INT64, T.INT64, T.INT64], outputs=4,
            sorted=order)
    one(c, "string_of_ints", "Cast", {"x": ints(0, -7, 2 ** 62)}, T.STRING, to=T.STRING)
    one(c, "string_of_bools", "Cast", {"x": np.array([True, False])}, T.STRING, to=T.STRING)
    one(c, "string_of_floats", "Cast", {"x": np.array([0.5, -2.25, 1e10, 1e-7, np.nan, np.inf, -np.inf], np.float32)},
        T.STRING, to=T.STRING)
    text = np.array(["1", "-2.5", "1e-3", "inf", "-INF", "NaN", "+3"], object)
    one(c, "string_to_floats", "Cast", {"x": text}, T.FLOAT, to=T.FLOAT)
    one(c, "string_to_doubles", "Cast", {"x": text}, T.DOUBLE, to=T.DOUBLE)
    one(c, "string_to_ints", "Cast", {"x": np.array(["1", "-25", "9000000000"], object)}, T.INT64, to=T.INT64)


def main():
    c = Cases(sys.argv[1])
    for family in (numbers, sizes, norms, attention, loops, far_slices, cells, open_masks, strings, hidden_keys, packed_weights,
                   resized):
        family(c)
    for line in c.refused:
        print("peer refuses", line)
    print(f"{c.count} cases")


if __name__ == "__main__":
    main()
