"""Random graphs against ONNX Runtime.

  fuzz.py FOLDER [--count 1000] [--seed 1]     writes the cases; tests/peer_ops/fuzz runs them

A case is a graph of one to eight operators with random attributes, on shapes with 0 and 1 in them
and values with NaN, infinities and signed zeros. Its name holds its seed: the same seed gives the
same case. Graphs that the peer refuses are not written.
"""

import argparse
import os
import pathlib

import numpy as np
from onnx import TensorProto as T
from onnx import helper, numpy_helper

from peer import session, write_case

UNARY = ["Abs", "Neg", "Relu", "Sigmoid", "Tanh", "Erf", "Floor", "Ceil", "Round", "Sign", "Softplus", "Softsign",
         "Identity", "Atan", "Cos", "Sin", "HardSwish", "Mish"]
ATTRS = {"LeakyRelu": ["alpha"], "Elu": ["alpha"], "HardSigmoid": ["alpha", "beta"], "ThresholdedRelu": ["alpha"],
         "Celu": ["alpha"]}
BINARY = ["Add", "Sub", "Mul", "Div", "Min", "Max"]
COMPARE = ["Less", "Greater", "Equal", "LessOrEqual", "GreaterOrEqual"]
REDUCE = ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceSumSquare"]
SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, 2.5, 1e-3, 1e4]


class Random:
    """One graph under construction."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.inits, self.inputs, self.feeds = [], [], [], {}
        self.values = []  # (name, shape) of f32 values
        self.special = self.rng.random() < 0.2

    def pick(self, items):
        return items[int(self.rng.integers(len(items)))]

    def shape(self):
        rank = int(self.rng.integers(1, 5))
        return tuple(int(self.pick([1, 1, 2, 3, 4, 5, 7, 8, 16, 17, 0] if self.rng.random() < 0.15
                                   else [1, 2, 3, 4, 5, 7, 8, 16, 17])) for _ in range(rank))

    def data(self, shape):
        x = self.rng.standard_normal(shape).astype(np.float32)
        if self.special and x.size:
            hits = self.rng.random(shape) < 0.2
            x[hits] = self.rng.choice(np.array(SPECIAL, np.float32), int(hits.sum()))
        return x

    def input(self, shape):
        name = f"x{len(self.inputs)}"
        # A dim is fixed or symbolic; an empty one is fixed to keep the default range of symbols.
        dims = [d if d == 0 or self.rng.random() < 0.7 else f"{name}_{i}" for i, d in enumerate(shape)]
        self.inputs.append(helper.make_tensor_value_info(name, T.FLOAT, dims))
        self.feeds[name] = self.data(shape)
        self.values.append((name, shape))
        return name

    def const(self, array):
        name = f"c{len(self.inits)}"
        self.inits.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, op, inputs, shape, **attrs):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name="n_" + name, **attrs))
        if shape is not None:
            self.values.append((name, tuple(shape)))
        return name

    def step(self):
        getattr(self, self.pick(KINDS))(*self.pick(self.values))

    def unary(self, x, shape):
        if self.rng.random() < 0.3:
            op = self.pick(sorted(ATTRS))
            self.node(op, [x], shape, **{a: float(np.float32(self.rng.uniform(0.1, 2))) for a in ATTRS[op]})
        else:
            self.node(self.pick(UNARY), [x], shape)

    def clip(self, x, shape):
        low = self.const(np.float32(-0.7)) if self.rng.random() < 0.7 else ""
        self.node("Clip", [x, low, self.const(np.float32(0.9))], shape)

    def other(self, shape):
        """A second operand that broadcasts with `shape`."""
        if self.rng.random() < 0.3:
            same = [v for v in self.values if v[1] == shape]
            return self.pick(same)[0]
        part = tuple(d if self.rng.random() < 0.7 else 1 for d in shape)
        part = part[int(self.rng.integers(0, len(part) + 1)):]
        return self.const(self.data(part))

    def binary(self, x, shape):
        pair = [x, self.other(shape)]
        if self.rng.random() < 0.3:
            pair.reverse()
        self.node(self.pick(BINARY), pair, shape)

    def where(self, x, shape):
        mask = self.node(self.pick(COMPARE), [x, self.other(shape)], None)
        self.node("Where", [mask, x, self.other(shape)], shape)

    def reduce(self, x, shape):
        axes = [i for i in range(len(shape)) if self.rng.random() < 0.5] or [len(shape) - 1]
        if 0 in shape:  # the peer gives wrong shapes
            return
        keep = int(self.rng.integers(2))
        out = [1 if i in axes else d for i, d in enumerate(shape) if keep or i not in axes]
        # The peer loses NaN in these two; the reference keeps it.
        op = self.pick([r for r in REDUCE if not self.special or r not in ("ReduceMax", "ReduceMin")])
        given = [a - len(shape) if self.rng.random() < 0.3 else a for a in axes]
        self.node(op, [x, self.const(np.array(given, np.int64))], out, keepdims=keep)

    def arg(self, x, shape):
        axis = int(self.rng.integers(len(shape)))
        if shape[axis] == 0 or self.special:
            return
        index = self.node(self.pick(["ArgMax", "ArgMin"]), [x], None, axis=axis, keepdims=1,
                          select_last_index=int(self.rng.integers(2)))
        self.node("Cast", [index], [1 if i == axis else d for i, d in enumerate(shape)], to=T.FLOAT)

    def softmax(self, x, shape):
        axis = int(self.rng.integers(-len(shape), len(shape)))
        if shape[axis] == 0 or self.special:
            return
        self.node(self.pick(["Softmax", "LogSoftmax"]), [x], shape, axis=axis)

    def transpose(self, x, shape):
        perm = [int(p) for p in self.rng.permutation(len(shape))]
        self.node("Transpose", [x], [shape[p] for p in perm], perm=perm)

    def reshape(self, x, shape):
        if 0 in shape:
            return
        at = int(self.rng.integers(len(shape)))
        out = shape[:at] + (1,) + shape[at:] if self.rng.random() < 0.5 else (int(np.prod(shape[:at])), int(np.prod(shape[at:])))
        wanted = list(out)
        wanted[int(self.rng.integers(len(out)))] = -1
        self.node("Reshape", [x, self.const(np.array(wanted, np.int64))], out)

    def slice(self, x, shape):
        axis = int(self.rng.integers(len(shape)))
        start, end = (int(v) for v in self.rng.integers(-shape[axis] - 2, shape[axis] + 3, 2))
        step = int(self.pick([1, 1, 2, -1, -2, 3]))
        out = list(shape)
        out[axis] = len(range(*slice(start, end, step).indices(shape[axis])))
        ints = lambda v: self.const(np.array([v], np.int64))
        self.node("Slice", [x, ints(start), ints(end), ints(axis), ints(step)], out)

    def concat(self, x, shape):
        axis = int(self.rng.integers(len(shape)))
        part = list(shape)
        part[axis] = int(self.rng.integers(0, 4))
        out = list(shape)
        out[axis] += part[axis]
        self.node("Concat", [x, self.const(self.data(tuple(part)))], out, axis=axis - len(shape) * int(self.rng.integers(2)))

    def pad(self, x, shape):
        low, high = self.rng.integers(0, 3, (2, len(shape)))
        mode = self.pick(["constant", "edge", "reflect"])
        if mode != "constant" and (0 in shape or any(max(l, h) >= d for l, h, d in zip(low, high, shape))):
            mode = "constant"
        out = [int(d + l + h) for d, l, h in zip(shape, low, high)]
        extra = [self.const(np.float32(0.5))] if mode == "constant" else []
        self.node("Pad", [x, self.const(np.concatenate([low, high]).astype(np.int64)), *extra], out, mode=mode)

    def gather(self, x, shape):
        axis = int(self.rng.integers(len(shape)))
        if shape[axis] == 0:
            return
        index = self.rng.integers(-shape[axis], shape[axis], int(self.rng.integers(1, 5)))
        out = list(shape)
        out[axis] = len(index)
        self.node("Gather", [x, self.const(index.astype(np.int64))], out, axis=axis)

    def tile(self, x, shape):
        times = self.rng.integers(1, 3, len(shape))
        self.node("Tile", [x, self.const(times.astype(np.int64))], [int(d * t) for d, t in zip(shape, times)])

    def matmul(self, x, shape):
        if len(shape) < 2 or 0 in shape or self.special:
            return
        n = int(self.rng.integers(1, 20))
        self.node("MatMul", [x, self.const(self.data((shape[-1], n)))], (*shape[:-1], n))

    def norm(self, x, shape):
        if 0 in shape or self.special or shape[-1] < 2:
            return
        self.node("LayerNormalization", [x, self.const(self.data(shape[-1:])), self.const(self.data(shape[-1:]))],
                  shape, axis=-1, epsilon=1e-2)

    def conv(self, x, shape):
        if len(shape) != 4 or 0 in shape or self.special:
            return
        k = int(self.pick([1, 3]))
        out = int(self.rng.integers(1, 18))
        stride = int(self.pick([1, 2]))
        w = self.const(self.data((out, shape[1], k, k)))
        hw = [(d + 2 * (k // 2) - k) // stride + 1 for d in shape[2:]]
        self.node("Conv", [x, w, self.const(self.data((out,)))], (shape[0], out, *hw), pads=[k // 2] * 4,
                  strides=[stride, stride])

    def pool(self, x, shape):
        if len(shape) != 4 or min(shape) < 1 or min(shape[2:]) < 2 or self.special:
            return
        ceil = int(self.rng.integers(2))
        size = [-(-(d - 2) // 2) + 1 if ceil else (d - 2) // 2 + 1 for d in shape[2:]]
        self.node(self.pick(["MaxPool", "AveragePool"]), [x], (*shape[:2], *size), kernel_shape=[2, 2], strides=[2, 2],
                  ceil_mode=ceil)

    def cumsum(self, x, shape):
        axis = int(self.rng.integers(len(shape)))
        self.node("CumSum", [x, self.const(np.array(axis, np.int64))], shape,
                  exclusive=int(self.rng.integers(2)), reverse=int(self.rng.integers(2)))

    def topk(self, x, shape):
        if shape[-1] < 1 or self.special:
            return
        k = int(self.rng.integers(1, shape[-1] + 1))
        name = self.node("TopK", [x, self.const(np.array([k], np.int64))], (*shape[:-1], k), axis=-1,
                         largest=int(self.rng.integers(2)))
        self.nodes[-1].output.append(name + "_i")

    def model(self):
        for _ in range(int(self.rng.integers(1, 3))):
            self.input(self.shape())
        for _ in range(int(self.rng.integers(1, 9))):
            self.step()
        made = [n.output[0] for n in self.nodes]
        shapes = dict(self.values)
        used = {i for n in self.nodes for i in n.input}
        outputs = [m for m in made if m in shapes and (m not in used or self.rng.random() < 0.1)]
        if not outputs:
            return None
        results = [helper.make_tensor_value_info(o, T.FLOAT, None) for o in outputs]
        graph = helper.make_graph(self.nodes, "g", self.inputs, results, self.inits)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


KINDS = [n for n in vars(Random) if not n.startswith("_") and n not in
         ("pick", "shape", "data", "input", "const", "node", "step", "other", "model")]


def write(seed, folder):
    random = Random(seed)
    model = random.model()
    if model is None:
        return False
    try:
        outputs = session(model).run(None, random.feeds)
    except Exception as fault:
        print(f"seed {seed}: peer refuses: {str(fault).splitlines()[0][:150]}", flush=True)
        return False
    write_case(folder / f"seed_{seed}", model, random.feeds, outputs, {"atol": 1e-4})
    return True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    written = 0
    for seed in range(args.seed, args.seed + args.count):
        # In a child: some graphs kill the peer.
        child = os.fork()
        if child == 0:
            code = 1
            try:
                code = 0 if write(seed, args.folder) else 1
            finally:
                os._exit(code)
        status = os.waitpid(child, 0)[1]
        if os.WIFSIGNALED(status):
            print(f"seed {seed}: the peer dies of signal {os.WTERMSIG(status)}", flush=True)
        written += status == 0
    print(f"seeds {args.seed} to {args.seed + args.count - 1}: {written} cases")


if __name__ == "__main__":
    main()
