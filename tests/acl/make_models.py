"""Writes small ONNX models and their inputs with the standard library only.

  python3 make_models.py DIR     small.onnx (x[1,3,32,32] -> y[1,10]) and dynamic.onnx (batch N), x*.bin;
                                 pic.bin (RGB, 32x32) and xpic.bin, the same as the model wants it: (v - 127) / 128
"""
import os
import random
import struct
import sys


# Not this file: the wire format is written by the tests' own make_models.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
from make_models import field  # noqa: E402


def tensor(name, dims, values):
    raw = struct.pack("<%df" % len(values), *values)
    return b"".join(field(1, d) for d in dims) + field(2, 1) + field(8, name) + field(9, raw)


def value_info(name, dims):
    shape = b"".join(field(1, field(1, d) if isinstance(d, int) else field(2, d)) for d in dims)
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, shape)))


def ints(name, values):
    return field(1, name) + b"".join(field(8, v) for v in values) + field(20, 7)


def integer(name, value):
    return field(1, name) + field(3, value) + field(20, 2)


def node(kind, inputs, outputs, attributes=(), name=None):
    return b"".join(field(1, i) for i in inputs) + b"".join(field(2, o) for o in outputs) + field(
        3, name or kind) + field(4, kind) + b"".join(field(5, a) for a in attributes)


def model(batch):
    rng = random.Random(7)
    weights = lambda n, s: [rng.uniform(-s, s) for _ in range(n)]
    nodes = [
        node("Conv", ["x", "w1", "b1"], ["c1"], [ints("kernel_shape", [3, 3]), ints("pads", [1, 1, 1, 1])]),
        node("Relu", ["c1"], ["r1"]),
        node("MaxPool", ["r1"], ["p1"], [ints("kernel_shape", [2, 2]), ints("strides", [2, 2])]),
        node("Conv", ["p1", "w2", "b2"], ["c2"], [ints("kernel_shape", [3, 3]), ints("pads", [1, 1, 1, 1])], "Conv2"),
        node("Relu", ["c2"], ["r2"], (), "Relu2"),
        node("GlobalAveragePool", ["r2"], ["g"]),
        node("Flatten", ["g"], ["f"], [integer("axis", 1)]),
        node("Gemm", ["f", "w3", "b3"], ["l"], [integer("transB", 1)]),
        node("Softmax", ["l"], ["y"], [integer("axis", 1)]),
    ]
    initializers = [
        tensor("w1", [16, 3, 3, 3], weights(432, 0.4)), tensor("b1", [16], weights(16, 0.2)),
        tensor("w2", [32, 16, 3, 3], weights(4608, 0.2)), tensor("b2", [32], weights(32, 0.2)),
        tensor("w3", [10, 32], weights(320, 1.0)), tensor("b3", [10], weights(10, 0.1)),
    ]
    graph = b"".join(field(1, n) for n in nodes) + field(2, "small") + b"".join(field(5, t) for t in initializers)
    graph += field(11, value_info("x", [batch, 3, 32, 32])) + field(12, value_info("y", [batch, 10]))
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 13))


def main():
    where = sys.argv[1]
    os.makedirs(where, exist_ok=True)
    for name, batch in (("small", 1), ("dynamic", "N")):
        with open(os.path.join(where, name + ".onnx"), "wb") as f:
            f.write(model(batch))
    rng = random.Random(11)
    for n in (1, 2, 4):
        with open(os.path.join(where, "x%d.bin" % n), "wb") as f:
            f.write(struct.pack("<%df" % (n * 3072), *[rng.uniform(-1, 1) for _ in range(n * 3072)]))
    picture = [rng.randrange(256) for _ in range(3072)]
    with open(os.path.join(where, "pic.bin"), "wb") as f:
        f.write(bytes(picture))
    with open(os.path.join(where, "xpic.bin"), "wb") as f:
        planes = [(picture[i * 3 + c] - 127) / 128 for c in range(3) for i in range(1024)]
        f.write(struct.pack("<3072f", *planes))


if __name__ == "__main__":
    main()
