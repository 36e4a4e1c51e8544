"""Writes small ONNX models, their inputs and what ONNX Runtime makes of them; with the standard library only.

  python3 make_models.py DIR                 models, inputs, expected outputs (from onnxruntime.txt)
  python3 make_models.py DIR --onnxruntime   runs ONNX Runtime and writes onnxruntime.txt anew

Models: small (x[1,3,32,32] -> y[1,10]), dynamic (batch N), image (height and width free), tokens
(x[B,S,16] -> y[B,S,4]), parts (a concatenation). Inputs are x*.bin; pic.bin is a picture (RGB, 32x32) and xpic.bin the same as the
model wants it: (v - 127) / 128. Expected outputs are y*.bin.
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


def uniform(rng, count, scale):
    return [rng.uniform(-scale, scale) for _ in range(count)]


def file_of(nodes, initializers, x, y):
    graph = b"".join(field(1, n) for n in nodes) + field(2, "g") + b"".join(field(5, t) for t in initializers)
    graph += field(11, value_info("x", x)) + field(12, value_info("y", y))
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 13))


def pictures(batch, height, width):
    """Convolutions, pooling, a classifier."""
    rng = random.Random(7)
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
        tensor("w1", [16, 3, 3, 3], uniform(rng, 432, 0.4)), tensor("b1", [16], uniform(rng, 16, 0.2)),
        tensor("w2", [32, 16, 3, 3], uniform(rng, 4608, 0.2)), tensor("b2", [32], uniform(rng, 32, 0.2)),
        tensor("w3", [10, 32], uniform(rng, 320, 1.0)), tensor("b3", [10], uniform(rng, 10, 0.1)),
    ]
    return file_of(nodes, initializers, [batch, 3, height, width], [batch, 10])


def tokens():
    rng = random.Random(9)
    nodes = [node("MatMul", ["x", "w"], ["h"]), node("Tanh", ["h"], ["t"]), node("MatMul", ["t", "v"], ["l"], (), "MatMul2"),
             node("Softmax", ["l"], ["y"], [integer("axis", 2)])]
    initializers = [tensor("w", [16, 8], uniform(rng, 128, 0.5)), tensor("v", [8, 4], uniform(rng, 32, 1.0))]
    return file_of(nodes, initializers, ["B", "S", 16], ["B", "S", 4])


def parts():
    """An output that several kernels write."""
    nodes = [node("Relu", ["x"], ["p"]), node("MatMul", ["x", "w"], ["q"]), node("Concat", ["p", "q"], ["y"], [integer("axis", 3)])]
    return file_of(nodes, [tensor("w", [32, 8], uniform(random.Random(3), 256, 0.5))], [1, 3, 32, 32], [1, 3, 32, 40])


MODELS = {"parts": parts(), "small": pictures(1, 32, 32), "dynamic": pictures("N", 32, 32), "image": pictures(1, "H", "W"), "tokens": tokens()}
# Suffix of x and y: the model and the input's dims.
CASES = {"1": ("small", [1, 3, 32, 32]), "2": ("dynamic", [2, 3, 32, 32]), "4": ("dynamic", [4, 3, 32, 32]),
         "_24x40": ("image", [1, 3, 24, 40]), "_48x48": ("image", [1, 3, 48, 48]), "_1x5": ("tokens", [1, 5, 16]),
         "_3x2": ("tokens", [3, 2, 16]), "pic": ("small", [1, 3, 32, 32])}
EXPECTED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "onnxruntime.txt")


def write(where, name, data):
    with open(os.path.join(where, name), "wb") as f:
        f.write(data)


def inputs():
    """{suffix: floats}, and the picture."""
    rng = random.Random(11)
    values = {}
    for suffix, (_, dims) in CASES.items():
        count = 1
        for d in dims:
            count *= d
        values[suffix] = uniform(rng, count, 1)
    picture = [rng.randrange(256) for _ in range(3072)]
    values["pic"] = [(picture[i * 3 + c] - 127) / 128 for c in range(3) for i in range(1024)]
    return values, bytes(picture)


def run_peer(values):
    import numpy
    import onnxruntime
    with open(EXPECTED, "w") as f:
        for suffix, (name, dims) in CASES.items():
            session = onnxruntime.InferenceSession(MODELS[name], providers=["CPUExecutionProvider"])
            x = numpy.array(values[suffix], numpy.float32).reshape(dims)
            y = session.run(None, {"x": x})[0]
            f.write(suffix + " " + " ".join("%.9g" % v for v in y.flatten()) + "\n")


def main():
    where = sys.argv[1]
    os.makedirs(where, exist_ok=True)
    values, picture = inputs()
    if "--onnxruntime" in sys.argv:
        run_peer(values)
    for name, data in MODELS.items():
        write(where, name + ".onnx", data)
    for suffix, floats in values.items():
        write(where, "x%s.bin" % suffix, struct.pack("<%df" % len(floats), *floats))
    write(where, "pic.bin", picture)
    with open(EXPECTED) as f:
        for line in f:
            suffix, *floats = line.split()
            write(where, "y%s.bin" % suffix, struct.pack("<%df" % len(floats), *map(float, floats)))


if __name__ == "__main__":
    main()
