"""Two decoders of two layers in the spellings of exporters, against ONNX Runtime:
  gpt2_*    LayerNorm in parts, causal mask by Where, by a sum, by Trilu or as bool; GELU by tanh
  llama_*   RMSNorm, rotary positions, shared heads (Expand or Tile), a gate with SiLU
Each runs a prompt and then a step of one token with what it has cached; the sizes are symbols, or
known.

  python transformers.py FOLDER
"""

import pathlib
import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from peer import session, write_case

WIDTH, HEAD, LAYERS, WORDS, PROMPT = 64, 16, 2, 40, 12
LOWEST = float(np.finfo(np.float32).min)


class Net:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.weights, self.names = [], {}, 0

    def __call__(self, op, *inputs, outputs=1, **attrs):
        self.names += 1
        outs = ["%s_%d_%d" % (op, self.names, i) for i in range(outputs)]
        self.nodes.append(helper.make_node(op, [self.const(i) for i in inputs], outs, name=outs[0], **attrs))
        return outs[0] if outputs == 1 else outs

    def const(self, value):
        """Names stay; lists are int64; numbers and arrays are what they are."""
        if isinstance(value, str):
            return value
        array = np.asarray(value, np.float32 if isinstance(value, float) else None)
        name = "const_%d" % len(self.weights)
        self.weights[name] = array
        return name

    def weight(self, *dims):
        return (self.rng.standard_normal(dims) * 0.15).astype(np.float32)

    def size(self, value, axis):
        return self("Gather", self("Shape", value), np.array([axis]), axis=0)

    def layer_norm(self, x):
        d = self("Sub", x, self("ReduceMean", x, axes=[-1]))
        root = self("Sqrt", self("Add", self("ReduceMean", self("Pow", d, 2.0), axes=[-1]), 1e-5))
        return self("Add", self("Mul", self("Div", d, root), 1 + self.weight(WIDTH)), self.weight(WIDTH))

    def rms_norm(self, x):
        root = self("Sqrt", self("Add", self("ReduceMean", self("Pow", x, 2.0), axes=[-1]), 1e-6))
        return self("Mul", 1 + self.weight(WIDTH), self("Mul", x, self("Div", 1.0, root)))

    def heads(self, x, count):
        return self("Transpose", self("Reshape", x, [0, 0, count, HEAD]), perm=[0, 2, 1, 3])

    def joined(self, x):
        return self("Reshape", self("Transpose", x, perm=[0, 2, 1, 3]), [0, 0, WIDTH])

    def grown(self, past, new, present):
        self.nodes.append(helper.make_node("Concat", [past, new], [present], axis=2, name=present))
        return present


def gpt2_scores(f, how, q, k, padding):
    """Weights of q and k, masked so that a row sees itself and what was before."""
    turned = f("Transpose", k, perm=[0, 1, 3, 2])
    rows, keys = f.size(q, 2), f.size(k, 2)
    if how == "where":  # a slice of a constant triangle, as the first exports have it
        lower = np.tril(np.ones((1, 1, 64, 64), bool))
        past = f("Sub", keys, rows)
        seen = f("Slice", f("Slice", lower, past, keys, [2]), [0], keys, [3])
        s = f("Div", f("MatMul", q, turned), 4.0)
        return f("Softmax", f("Add", f("Where", seen, s, -10000.0), padding), axis=-1)
    root = 0.5
    s = f("MatMul", f("Mul", q, root), f("Mul", turned, root))
    if how == "trilu":  # what scaled_dot_product_attention becomes
        square = f("Expand", 1.0, f("Concat", rows, keys, axis=0))
        upper = f("Trilu", square, f("Squeeze", f("Add", f("Sub", keys, rows), [1])), upper=1)
        hidden = f("Where", f("Cast", upper, to=TensorProto.BOOL), LOWEST, 0.0)
        return f("Softmax", f("Add", s, f("Add", hidden, padding)), axis=-1)
    scalar = lambda v: f("Squeeze", v)
    row = f("Unsqueeze", f("Range", scalar(f("Sub", keys, rows)), scalar(keys), 1), [1])
    seen = f("GreaterOrEqual", row, f("Unsqueeze", f("Range", 0, scalar(keys), 1), [0]))
    if how == "sum":  # (1 - mask) * -10000
        mask = f("Mul", f("Sub", 1.0, f("Cast", seen, to=TensorProto.FLOAT)), -10000.0)
        return f("Softmax", f("Add", f("Add", s, mask), padding), axis=-1)
    w = f("Softmax", f("Add", s, f("Where", seen, 0.0, float("-inf"))), axis=-1)
    return f("Where", f("IsNaN", w), 0.0, w)


def gpt2(f, how):
    count = WIDTH // HEAD
    x = f("Add", f("Gather", f.weight(WORDS, WIDTH), "ids"), f("Gather", f.weight(64, WIDTH), "positions"))
    padding = f("Mul", f("Sub", 1.0, f("Unsqueeze", f("Cast", "mask", to=TensorProto.FLOAT), [1, 2])), LOWEST)
    for layer in range(LAYERS):
        h = f("Add", f("MatMul", f.layer_norm(x), f.weight(WIDTH, 3 * WIDTH)), f.weight(3 * WIDTH))
        q, k, v = f("Split", h, [WIDTH] * 3, outputs=3, axis=2)
        k = f.grown("pk%d" % layer, f.heads(k, count), "nk%d" % layer)
        v = f.grown("pv%d" % layer, f.heads(v, count), "nv%d" % layer)
        y = f("MatMul", gpt2_scores(f, how, f.heads(q, count), k, padding), v)
        x = f("Add", x, f("Add", f("MatMul", f.joined(y), f.weight(WIDTH, WIDTH)), f.weight(WIDTH)))
        h = f("Add", f("MatMul", f.layer_norm(x), f.weight(WIDTH, 128)), f.weight(128))
        u = f("Mul", f("Add", h, f("Mul", f("Pow", h, 3.0), 0.044715)), 0.7978845608)
        h = f("Mul", f("Mul", h, 0.5), f("Add", f("Tanh", u), 1.0))
        x = f("Add", x, f("Add", f("MatMul", h, f.weight(128, WIDTH)), f.weight(WIDTH)))
    return f("MatMul", f.layer_norm(x), f.weight(WIDTH, WORDS)), count


def repeated(f, how, x, times):
    apart = f("Unsqueeze", x, [2])
    if how == "tile":
        many = f("Tile", apart, [1, 1, times, 1, 1])
    else:
        many = f("Expand", apart, f("Concat", f.size(x, 0), f.size(x, 1), [times], f.size(x, 2), f.size(x, 3), axis=0))
    return f("Reshape", many, f("Concat", f.size(x, 0), f("Mul", f.size(x, 1), [times]), f.size(x, 2), f.size(x, 3), axis=0))


def llama(f, how):
    count, of_keys = WIDTH // HEAD, 2
    x = f("Gather", f.weight(WORDS, WIDTH), "ids")
    angle = f("MatMul", f("Unsqueeze", f("Cast", "positions", to=TensorProto.FLOAT), [2]),
              (100.0 ** -(np.arange(0, HEAD, 2) / HEAD)).astype(np.float32)[None])
    angle = f("Unsqueeze", f("Concat", angle, angle, axis=-1), [1])
    cosine, sine = f("Cos", angle), f("Sin", angle)

    def rotary(t):
        first = f("Slice", t, [0], [HEAD // 2], [3])
        second = f("Slice", t, [HEAD // 2], [2**31 - 1], [3])
        return f("Add", f("Mul", t, cosine), f("Mul", f("Concat", f("Neg", second), first, axis=-1), sine))

    for layer in range(LAYERS):
        h = f.rms_norm(x)
        q = rotary(f.heads(f("MatMul", h, f.weight(WIDTH, WIDTH)), count))
        k = rotary(f.heads(f("MatMul", h, f.weight(WIDTH, of_keys * HEAD)), of_keys))
        v = f.heads(f("MatMul", h, f.weight(WIDTH, of_keys * HEAD)), of_keys)
        k, v = f.grown("pk%d" % layer, k, "nk%d" % layer), f.grown("pv%d" % layer, v, "nv%d" % layer)
        rows, keys = f.size(q, 2), f.size(k, 2)
        scalar = lambda value: f("Squeeze", value)
        row = f("Unsqueeze", f("Range", scalar(f("Sub", keys, rows)), scalar(keys), 1), [1])
        seen = f("And", f("LessOrEqual", f("Unsqueeze", f("Range", 0, scalar(keys), 1), [0]), row),
                 f("Unsqueeze", f("Cast", "mask", to=TensorProto.BOOL), [1, 2]))
        many = [repeated(f, how, t, count // of_keys) for t in (k, v)]
        s = f("Mul", f("MatMul", q, f("Transpose", many[0], perm=[0, 1, 3, 2])), 0.25)
        s = f("Add", s, f("Where", seen, 0.0, LOWEST)) if how == "tile" else f("Where", seen, s, LOWEST)
        y = f("MatMul", f("Softmax", s, axis=-1), many[1])
        x = f("Add", x, f("MatMul", f.joined(y), f.weight(WIDTH, WIDTH)))
        h = f.rms_norm(x)
        gate = f("MatMul", h, f.weight(WIDTH, 96))
        h = f("Mul", f("Mul", gate, f("Sigmoid", gate)), f("MatMul", h, f.weight(WIDTH, 96)))
        x = f("Add", x, f("MatMul", h, f.weight(96, WIDTH)))
    return f("MatMul", f.rms_norm(x), f.weight(WIDTH, WORDS)), of_keys


def model_of(net, result, heads, sizes):
    """sizes: of batch, rows, past and total; numbers or names."""
    b, s, p, t = sizes
    info = helper.make_tensor_value_info
    inputs = [info("ids", TensorProto.INT64, [b, s]), info("positions", TensorProto.INT64, [b, s]),
              info("mask", TensorProto.INT64, [b, t])]
    inputs += [info("p%s%d" % (x, i), TensorProto.FLOAT, [b, heads, p, HEAD]) for i in range(LAYERS) for x in "kv"]
    outputs = [helper.make_empty_tensor_value_info(n) for n in [result] + ["n%s%d" % (x, i) for i in range(LAYERS) for x in "kv"]]
    graph = helper.make_graph(net.nodes, "net", inputs, outputs, [numpy_helper.from_array(a, n) for n, a in net.weights.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def main(folder):
    count = 0
    for build, how in [(gpt2, h) for h in ("where", "sum", "trilu", "bool")] + [(llama, h) for h in ("expand", "tile")]:
        for static in (False, True):
            net = Net(7)
            result, heads = build(net, how)
            batch = 2
            sizes = (batch, 1, PROMPT, PROMPT + 1) if static else ("batch", "rows", "past", "keys")
            model = model_of(net, result, heads, sizes)
            peer = session(model)
            rng = np.random.default_rng(3)
            past = {"p%s%d" % (x, i): np.zeros((batch, heads, 0, HEAD), np.float32) for i in range(LAYERS) for x in "kv"}
            for number, rows in enumerate((PROMPT, 1)):
                if static and number == 0:
                    past = {n: rng.standard_normal((batch, heads, PROMPT, HEAD)).astype(np.float32) for n in past}
                    continue
                before = next(iter(past.values())).shape[2]
                mask = np.ones((batch, before + rows), np.int64)
                mask[1, :3] = 0  # padding on the left
                mask[1, before + rows - 1] = 1
                feeds = {"ids": rng.integers(0, WORDS, (batch, rows)),
                         "positions": np.tile(np.arange(before, before + rows), (batch, 1)), "mask": mask, **past}
                results = peer.run(None, feeds)
                name = "%s_%s_%s" % (build.__name__, how, "static" if static else "dynamic")
                write_case(pathlib.Path(folder) / name, model, feeds, results, {"atol": 2e-4, "rtol": 1e-3}, 0 if static else number)
                past = dict(zip(past, results[1:]))
            count += 1
    print("%d models" % count)


if __name__ == "__main__":
    main(sys.argv[1])
