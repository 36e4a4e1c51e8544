"""Writes small ONNX models with nothing but the standard library: inputs of the fuzzers and of smoke tests.

  python3 tests/make_models.py OUT      writes OUT/{chain,conv,branch,loop}.onnx
"""
import os
import random
import struct
import sys

F32, I64, BOOL = 1, 7, 9


def varint(n):
    out = b""
    n &= (1 << 64) - 1
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, data):
    """One protobuf field: a varint for ints, else length-delimited."""
    if isinstance(data, int):
        return varint(number << 3) + varint(data)
    if isinstance(data, str):
        data = data.encode()
    return varint(number << 3 | 2) + varint(len(data)) + data


def value_info(name, dtype, dims):
    shape = b"".join(field(1, field(1, d) if isinstance(d, int) else field(2, d)) for d in dims)
    return field(1, name) + field(2, field(1, field(1, dtype) + field(2, shape)))


def tensor(name, dtype, dims, values):
    pack = {F32: "f", I64: "q", BOOL: "?", 6: "i", 10: "e", 11: "d"}[dtype]
    raw = struct.pack("<%d%s" % (len(values), pack), *values)
    return b"".join(field(1, d) for d in dims) + field(2, dtype) + field(8, name) + field(9, raw)


def attribute(name, value):
    if isinstance(value, int):
        return field(1, name) + field(3, value) + field(20, 2)
    if isinstance(value, str):
        return field(1, name) + field(4, value) + field(20, 3)
    if isinstance(value, list):
        return field(1, name) + b"".join(field(8, v) for v in value) + field(20, 7)
    return field(1, name) + field(6, value) + field(20, 5)  # a graph


def node(op, inputs, outputs, **attributes):
    parts = [field(1, n) for n in inputs] + [field(2, n) for n in outputs] + [field(3, outputs[0] + "_" + op), field(4, op)]
    return b"".join(parts + [field(5, attribute(k, v)) for k, v in attributes.items()])


def graph(name, nodes, inputs, outputs, initializers=()):
    return b"".join([field(1, n) for n in nodes] + [field(2, name)] + [field(5, t) for t in initializers] +
                    [field(11, i) for i in inputs] + [field(12, o) for o in outputs])


def model(g, opset=17):
    return field(1, 8) + field(7, g) + field(8, field(2, opset))


def weights(rng, name, dims):
    n = 1
    for d in dims:
        n *= d
    return tensor(name, F32, dims, [rng.uniform(-0.3, 0.3) for _ in range(n)])


def chain(length=40):
    """Relu, Add with the value two back, Sigmoid, Mul, ..."""
    ops, nodes = ("Relu", "Add", "Sigmoid", "Mul"), []
    for i in range(length):
        op = ops[i % 4]
        nodes.append(node(op, ["v%d" % i] + (["v%d" % max(0, i - 2)] if op in ("Add", "Mul") else []), ["v%d" % (i + 1)]))
    return model(graph("chain", nodes, [value_info("v0", F32, [4, 16])], [value_info("v%d" % length, F32, [4, 16])]))


def conv():
    rng = random.Random(1)
    nodes = [node("Conv", ["x", "w1", "b1"], ["a"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]), node("Relu", ["a"], ["b"]),
             node("MaxPool", ["b"], ["c"], kernel_shape=[2, 2], strides=[2, 2]),
             node("Conv", ["c", "w2"], ["d"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]), node("GlobalAveragePool", ["d"], ["e"]),
             node("Flatten", ["e"], ["f"]), node("Gemm", ["f", "w3", "b3"], ["g"], transB=1), node("Softmax", ["g"], ["y"])]
    initializers = [weights(rng, "w1", [20, 3, 3, 3]), weights(rng, "b1", [20]), weights(rng, "w2", [24, 20, 3, 3]),
                    weights(rng, "w3", [10, 24]), weights(rng, "b3", [10])]
    return model(graph("conv", nodes, [value_info("x", F32, ["n", 3, 16, 16])], [value_info("y", F32, ["n", 10])], initializers))


def branch():
    sides = [graph(side, [node(op, ["x"], [side])], [], [value_info(side, F32, [3, 4])]) for side, op in (("t", "Exp"), ("e", "Neg"))]
    nodes = [node("If", ["c"], ["y"], then_branch=sides[0], else_branch=sides[1])]
    return model(graph("branch", nodes, [value_info("x", F32, [3, 4]), value_info("c", BOOL, [])], [value_info("y", F32, [3, 4])]))


def loop():
    body = graph("body", [node("Add", ["s", "x"], ["s2"]), node("Identity", ["s2"], ["scan"]), node("Identity", ["k"], ["k2"])],
                 [value_info("i", I64, []), value_info("k", BOOL, []), value_info("s", F32, [2])],
                 [value_info("k2", BOOL, []), value_info("s2", F32, [2]), value_info("scan", F32, [2])])
    nodes = [node("Loop", ["m", "", "x"], ["last", "all"], body=body)]
    return model(graph("loop", nodes, [value_info("x", F32, [2]), value_info("m", I64, [])],
                       [value_info("last", F32, [2]), value_info("all", F32, ["trips", 2])]))


def ladder(rungs=8):
    """Values that wait for each other's last reader: up by Neg, and down again by Add with the value of each rung."""
    up = [node("Neg", ["v%d" % i], ["v%d" % (i + 1)]) for i in range(rungs)]
    down = [node("Add", ["s%d" % i if i < rungs else "v%d" % i, "v%d" % (i - 1)], ["s%d" % (i - 1)]) for i in range(rungs, 0, -1)]
    return model(graph("ladder", up + down, [value_info("v0", F32, [64, 64])], [value_info("s0", F32, [64, 64])]))


def crossed():
    """A value that is read again late, between what can be computed in strips and what cannot."""
    rng, dims = random.Random(3), [1, 16, 31, 16]
    nodes = [node("Conv", ["x", "w1"], ["a"], pads=[1, 1, 1, 1], group=16), node("Softmax", ["a"], ["s"], axis=1),
             node("Conv", ["s", "w2"], ["y"], pads=[1, 1, 1, 1]), node("MatMul", ["s", "w3"], ["m"]), node("Add", ["m", "a"], ["b"]),
             node("Conv", ["b", "w4"], ["c"], pads=[1, 1, 1, 1], group=16), node("Add", ["c", "c"], ["z"])]
    initializers = [weights(rng, "w1", [16, 1, 3, 3]), weights(rng, "w2", [16, 16, 3, 3]), weights(rng, "w3", [16, 16]), weights(rng, "w4", [16, 1, 3, 3])]
    return model(graph("crossed", nodes, [value_info("x", F32, dims)], [value_info("y", F32, dims), value_info("z", F32, dims)], initializers))


def mixed():
    """An LSTM, a product of bytes and an If."""
    rng = random.Random(2)
    sides = [graph(side, [node(op, ["z"], [side])], [], [value_info(side, F32, [4, 1, 16])]) for side, op in (("t", "Tanh"), ("e", "Neg"))]
    nodes = [node("LSTM", ["x", "w", "r"], ["h"], hidden_size=8), node("Squeeze", ["h", "axis"], ["s"]),
             node("DynamicQuantizeLinear", ["s"], ["q", "scale", "zero"]), node("QuantizeLinear", ["m", "ms"], ["mq"]),
             node("MatMulInteger", ["q", "mq", "zero"], ["p"]), node("Cast", ["p"], ["f"], to=F32), node("Mul", ["f", "scale"], ["z"]),
             node("If", ["c"], ["y"], then_branch=sides[0], else_branch=sides[1])]
    initializers = [weights(rng, "w", [1, 32, 8]), weights(rng, "r", [1, 32, 8]), tensor("axis", I64, [1], [1]),
                    weights(rng, "m", [8, 16]), tensor("ms", F32, [], [1 / 64])]
    return model(graph("mixed", nodes, [value_info("x", F32, [4, 1, 8]), value_info("c", BOOL, [])],
                       [value_info("y", F32, [4, 1, 16])], initializers))


def main(out):
    os.makedirs(out, exist_ok=True)
    for make in (chain, conv, branch, loop):
        with open(os.path.join(out, make.__name__ + ".onnx"), "wb") as f:
            f.write(make())


if __name__ == "__main__":
    if sys.argv[1:] == ["--help"]:
        print(__doc__)
        sys.exit(0)
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    main(sys.argv[1])
