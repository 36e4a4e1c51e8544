"""Random loops against ONNX Runtime: counted ones and such as end by their condition, nested, with
carried values, scan outputs and captures, for trip counts in the model or fed (none, one, several).

  python loops.py FOLDER [COUNT]
"""

import pathlib
import random
import sys

import numpy as np
from onnx import TensorProto, helper
from peer import session, write_case

DIMS = (1, 2, 3, 4)
UNARY = ("Tanh", "Neg", "Relu", "Sigmoid")
BINARY = ("Add", "Mul", "Sub")


def info(name, kind, dims):
    return helper.make_tensor_value_info(name, kind, dims)


class Nodes:
    """Nodes of one graph and the f32 values that its nodes may read, as (name, dims)."""

    def __init__(self, rng, values, counter):
        self.rng, self.values, self.counter, self.list = rng, list(values), counter, []

    def name(self, prefix="v"):
        self.counter[0] += 1
        return prefix + str(self.counter[0])

    def add(self, op, inputs, **attrs):
        out = self.name()
        self.list.append(helper.make_node(op, inputs, [out], **attrs))
        return out

    def constant(self, **value):
        return self.add("Constant", [], **value)

    def keep(self, name, dims):
        self.values.append((name, dims))

    def step(self, index):
        """One random operation, if the value that is drawn allows it."""
        value, dims = self.rng.choice(self.values)
        op = self.rng.choice(UNARY + BINARY + ("ReduceSum", "Where", "Gather", "Index", "Reverse", "CumSum", "MatMul"))
        square = len(dims) == 2 and dims[0] == dims[1]
        if op in UNARY:
            self.keep(self.add(op, [value]), dims)
        elif op in BINARY:
            other = self.rng.choice([v for v, d in self.values if d in (dims, [])])
            self.keep(self.add(op, [value, other]), dims)
        elif op == "Where":
            limit = self.constant(value_float=0.1)
            self.keep(self.add("Where", [self.add("Less", [value, limit]), value, limit]), dims)
        elif op == "Index":
            number = self.add("Cast", [index], to=TensorProto.FLOAT)
            self.keep(self.add("Mul", [number, self.constant(value_float=0.03)]), [])
        elif op == "MatMul" and square:
            self.keep(self.add("Tanh", [self.add("MatMul", [value, value])]), dims)
        elif dims and op == "ReduceSum":
            self.keep(self.add("ReduceSum", [value, self.constant(value_ints=[len(dims) - 1])], keepdims=0), dims[:-1])
        elif dims and op == "Gather":
            row = self.add("Mod", [index, self.constant(value_int=dims[0])])
            self.keep(self.add("Gather", [value, row], axis=0), dims[1:])
        elif dims and op == "Reverse":
            back = self.constant(value_ints=[-1])
            ends = [back, self.constant(value_ints=[-1000]), self.constant(value_ints=[0]), back]
            self.keep(self.add("Slice", [value] + ends), dims)
        elif dims and op == "CumSum":
            self.keep(self.add("Tanh", [self.add("CumSum", [value, self.constant(value_int=0)])]), dims)

    def loop(self, depth, limit=None):
        """A Loop over values drawn; the names of its results."""
        rng = self.rng
        start = [rng.choice(self.values) for _ in range(rng.randint(1, 3))]
        index, going = self.name("i"), self.name("k")
        carried = [(self.name("s"), dims) for _, dims in start]
        captured = [v for v in self.values if rng.random() < 0.4]
        body = Nodes(rng, captured + carried, self.counter)
        for _ in range(rng.randint(1, 6)):
            if depth < 2 and rng.random() < 0.15:
                body.loop(depth + 1)
            else:
                body.step(index)
        if rng.random() < 0.25:
            more = body.add("Less", [index, body.constant(value_int=rng.randint(0, 4))])
        else:
            more = body.add("Identity", [going])
        outputs = [info(more, TensorProto.BOOL, [])]
        for _, dims in carried:
            last = rng.choice([v for v, d in body.values if d == dims][-4:])
            outputs.append(info(body.add(rng.choice(("Tanh", "Identity")), [last]), TensorProto.FLOAT, dims))
        scanned = [rng.choice(body.values) for _ in range(rng.randint(0, 2))]
        for value, dims in scanned:
            outputs.append(info(body.add("Identity", [value]), TensorProto.FLOAT, dims))
        inputs = [info(index, TensorProto.INT64, []), info(going, TensorProto.BOOL, [])]
        inputs += [info(name, TensorProto.FLOAT, dims) for name, dims in carried]
        graph = helper.make_graph(body.list, self.name("body"), inputs, outputs)
        results = [self.name("r") for _ in start + scanned]
        trips = limit or self.constant(value_int=rng.choice((0, 1, 2, 3, 5)))
        self.list.append(helper.make_node("Loop", [trips, ""] + [name for name, _ in start], results, body=graph))
        for name, (_, dims) in zip(results, start):
            self.keep(name, dims)
        return results


def make(seed, folder):
    """Whether the peer takes the model of this seed; then its case is written."""
    rng = random.Random(seed)
    shapes = [[rng.choice(DIMS)] * 2, [rng.choice(DIMS)], []]
    fed = rng.random() < 0.5
    main = Nodes(rng, [("x%d" % i, dims) for i, dims in enumerate(shapes)], [0])
    inputs = [info(name, TensorProto.FLOAT, dims) for name, dims in main.values]
    results = main.loop(0, "m" if fed else None)
    if fed:
        inputs.append(info("m", TensorProto.INT64, []))
    graph = helper.make_graph(main.list, "loops", inputs, [helper.make_empty_tensor_value_info(r) for r in results])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    try:
        peer = session(model)
    except Exception:  # pylint: disable=broad-except
        return False  # a loop that the peer's type inference refuses
    values = np.random.default_rng(seed)
    for number, trips in enumerate((3, 0, 1, 6) if fed else (0,)):
        feeds = {"x%d" % i: values.standard_normal(dims).astype(np.float32) for i, dims in enumerate(shapes)}
        if fed:
            feeds["m"] = np.array(trips, np.int64)
        write_case(folder / ("loop_%d" % seed), model, feeds, peer.run(None, feeds), number=number)
    return True


def main(folder, count):
    made, seed = 0, 0
    while made < count and seed < 4 * count:
        made += make(seed, pathlib.Path(folder))
        seed += 1
    print("%d loops" % made)
    if made < count:
        sys.exit("the peer refused too many models")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 60)
