"""Code for aarch64 under qemu: a CNN, a transformer, a model of bytes and one of halves.

  python3 tests/cross/run.py BUILD_FOLDER

The runtime library is built for aarch64 (BUILD_FOLDER/aarch64), each model is compiled by atc for aarch64 and run
there at 1 and 2 threads, with equal bits, and its results are compared with those of the interpreter on this
machine. Exit code 77 where the cross compiler or qemu is missing.
"""
import math
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests"))
from make_models import F32, I64, field, graph, model, node, value_info  # noqa: E402

COMPILER, SYSROOT = "aarch64-linux-gnu-", "/usr/aarch64-linux-gnu"
U8, I8, F16 = 2, 3, 10
TOLERANCE = 1e-5  # of the largest magnitude of the result: f32 in another order of sums


class Net:
    """Nodes one behind the other; `last` is the name of the newest value."""

    def __init__(self, seed):
        self.rng, self.nodes, self.constants, self.count, self.last = random.Random(seed), [], [], 0, "x"

    def constant(self, dtype, dims, data):
        name = "w%d" % len(self.constants)
        if not isinstance(data, bytes):
            data = struct.pack("<%d%s" % (len(data), "q" if dtype == I64 else "f"), *data)
        self.constants.append(b"".join(field(1, d) for d in dims) + field(2, dtype) + field(8, name) + field(9, data))
        return name

    def weight(self, *dims, scale=1.0):
        return self.constant(F32, dims, [self.rng.uniform(-scale, scale) for _ in range(math.prod(dims))])

    def ints(self, *values):
        return self.constant(I64, [len(values)], values)

    def scalar(self, value):
        return self.constant(F32, [], [value])

    def op(self, kind, inputs, **attributes):
        self.count += 1
        self.last = "v%d" % self.count
        self.nodes.append(node(kind, inputs, [self.last], **attributes))
        return self.last

    def done(self, dtype, dims, out_dims):
        self.nodes.append(node("Identity", [self.last], ["y"]))
        return model(graph("net", self.nodes, [value_info("x", dtype, dims)], [value_info("y", F32, out_dims)], self.constants))


def cnn():
    """First layer of stride 2, Winograd's size, depthwise, a residual, Resize, Concat, a classifier; dynamic batch."""
    n = Net(1)

    def conv(x, i, o, k, stride=1, group=1):
        w = n.weight(o, i // group, k, k, scale=(3.0 / (k * k * i / group)) ** 0.5)
        return n.op("Conv", [x, w, n.weight(o, scale=0.1)], kernel_shape=[k, k], strides=[stride, stride],
                    pads=[k // 2] * 4, group=group)

    x = n.op("Relu", [conv("x", 3, 24, 3, 2)])
    y = n.op("HardSwish", [conv(x, 24, 48, 3)])
    y = n.op("Sigmoid", [conv(y, 48, 48, 3, group=48)])
    y = n.op("Add", [conv(y, 48, 24, 1), x])
    z = n.op("MaxPool", [y], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    z = n.op("Relu", [conv(z, 24, 32, 3)])
    z = n.op("Resize", [z, "", n.constant(F32, [4], [1.0, 1.0, 2.0, 2.0])])
    z = n.op("Concat", [z, y], axis=1)
    z = n.op("Relu", [conv(z, 56, 36, 1)])
    z = n.op("Flatten", [n.op("GlobalAveragePool", [z])])
    z = n.op("Gemm", [z, n.weight(10, 36, scale=0.3), n.weight(10)], transB=1)
    n.op("Softmax", [z])
    return n.done(F32, ["batch", 3, 40, 40], ["batch", 10]), F32, [2, 3, 40, 40]


def transformer():
    """Embeddings, two blocks of attention and Erf-GELU, a pooler with Tanh; dynamic length."""
    n, width, heads = Net(2), 48, 4
    x = n.op("Gather", [n.weight(30, width), "x"], axis=0)
    half, sqrt2, one = n.scalar(0.5), n.scalar(1.4142135), n.scalar(1.0)

    def dense(x, i, o):
        return n.op("Add", [n.op("MatMul", [x, n.weight(i, o, scale=(3.0 / i) ** 0.5)]), n.weight(o, scale=0.1)])

    def split(x, order):
        return n.op("Transpose", [n.op("Reshape", [x, n.ints(0, 0, heads, width // heads)])], perm=order)

    for _ in range(2):
        q, v = split(dense(x, width, width), [0, 2, 1, 3]), split(dense(x, width, width), [0, 2, 1, 3])
        k = split(dense(x, width, width), [0, 2, 3, 1])
        scores = n.op("Softmax", [n.op("Mul", [n.op("MatMul", [q, k]), n.scalar(0.2886751)])])
        mixed = n.op("Transpose", [n.op("MatMul", [scores, v])], perm=[0, 2, 1, 3])
        mixed = n.op("Reshape", [mixed, n.ints(0, 0, width)])
        x = n.op("LayerNormalization", [n.op("Add", [dense(mixed, width, width), x]), n.weight(width), n.weight(width)])
        h = dense(x, width, 4 * width)
        g = n.op("Mul", [n.op("Mul", [h, n.op("Add", [n.op("Erf", [n.op("Div", [h, sqrt2])]), one])]), half])
        x = n.op("LayerNormalization", [n.op("Add", [dense(g, 4 * width, width), x]), n.weight(width), n.weight(width)])
    n.op("Tanh", [dense(x, width, 7)])
    return n.done(I64, ["batch", "length"], ["batch", "length", 7]), I64, [2, 13]


def quantised():
    """QDQ: a 3x3 convolution and a matrix product in bytes."""
    n = Net(3)

    def qdq(x, scale, zero):
        z = n.constant(U8, [], bytes([zero]))
        q = n.op("QuantizeLinear", [x, n.scalar(scale), z])
        return n.op("DequantizeLinear", [q, n.scalar(scale), z])

    def weight(*dims):
        data = bytes(n.rng.randrange(256) for _ in range(math.prod(dims)))
        return n.op("DequantizeLinear", [n.constant(I8, dims, data), n.scalar(0.004), n.constant(I8, [], b"\0")])

    x = qdq("x", 0.008, 127)
    x = n.op("Conv", [x, weight(20, 8, 3, 3)], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    x = qdq(n.op("Relu", [x]), 0.02, 0)
    x = n.op("Flatten", [n.op("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2])])
    n.op("MatMul", [x, weight(20 * 36, 12)])
    return n.done(F32, [1, 8, 12, 12], [1, 12]), F32, [1, 8, 12, 12]


def halves():
    """Casts to f16 and f64 and back, rounding and rare functions: what is not the cube's."""
    n = Net(4)
    x = n.op("Cast", ["x"], to=F16)
    x = n.op("Cast", [n.op("Mul", [x, x])], to=F32)
    x = n.op("Add", [n.op("Floor", [n.op("Mul", [x, n.scalar(7.3)])]), n.op("Round", [n.op("Neg", [x])])])
    d = n.op("Cast", [n.op("Sqrt", [n.op("Abs", [x])])], to=11)
    x = n.op("Add", [n.op("Cast", [n.op("Exp", [d])], to=F32), n.op("Sin", [x])])
    x = n.op("Div", [n.op("CumSum", [x, n.constant(I64, [], [1])]), n.op("ReduceMax", [n.op("Atan", [x])], keepdims=1)])
    n.op("Max", [x, n.op("Log", [n.op("Add", [n.op("Abs", [x]), n.scalar(1.0)])])])
    return n.done(F32, [5, 37], [5, 37]), F32, [5, 37]


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    if done.returncode:
        sys.exit("FAIL %s\n%s" % (" ".join(command), (done.stdout + done.stderr)[-2000:]))
    return done.stdout


def build_runtime(build):
    folder = os.path.join(build, "aarch64")
    run("cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DGE_RUNTIME_ONLY=ON", "-DCMAKE_BUILD_TYPE=Release",
        "-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=aarch64", "-DCMAKE_C_COMPILER=%sgcc" % COMPILER,
        "-DCMAKE_CXX_COMPILER=%sg++" % COMPILER)
    run("ninja", "-C", folder)
    return os.path.join(folder, "bin", "run_model")


def random_input(dtype, dims):
    rng, size = random.Random(9), math.prod(dims)
    if dtype == I64:
        return struct.pack("<%dq" % size, *[rng.randrange(30) for _ in range(size)])
    return struct.pack("<%df" % size, *[rng.uniform(-1, 1) for _ in range(size)])


def floats(data):
    return struct.unpack("<%df" % (len(data) // 4), data)


def check(build, runner, make, folder):
    """Largest error relative to the largest magnitude; exits on a difference between 1 and 2 threads."""
    encoded, dtype, dims = make()
    name = os.path.join(folder, make.__name__)
    with open(name + ".onnx", "wb") as f:
        f.write(encoded)
    with open(name + ".bin", "wb") as f:
        f.write(random_input(dtype, dims))
    atc = [os.path.join(build, "bin", "atc"), "--model=" + name + ".onnx", "--framework=5"]
    run(*atc, "--output=" + name + "_arm", *(["--host_env_cpu=aarch64"] if make is cnn else ["--soc_version=aarch64"]))
    run(*atc, "--output=" + name + "_text", "--interpret", "--opt_level=0")
    shape = ",".join(map(str, dims))
    run(os.path.join(build, "bin", "ge"), "run", name + "_text.om", "--input", name + ".bin", "--shape", "x:" + shape, "--output", folder)
    results = []
    for threads in ("1", "2"):
        run("qemu-aarch64", "-L", SYSROOT, runner, name + "_arm.om", threads, name + threads, "%d:%s:%s" % (dtype, shape, name + ".bin"))
        with open(name + threads + ".0", "rb") as f:
            results.append(f.read())
    if results[0] != results[1]:
        sys.exit("FAIL %s: 1 and 2 threads differ" % make.__name__)
    got = floats(results[0])
    with open(os.path.join(folder, "y.npy"), "rb") as f:
        want = floats(f.read()[-len(results[0]):])
    largest = max(map(abs, want))
    if largest == 0 or not all(g == g for g in got):
        sys.exit("FAIL %s: results are zero or not numbers" % make.__name__)
    return max(abs(g - w) for g, w in zip(got, want)) / largest


def main(build):
    for program in (COMPILER + "g++", "qemu-aarch64", "clang-19"):
        if not shutil.which(program):
            print("skipped: %s is not installed" % program)
            sys.exit(77)
    runner, bad = build_runtime(build), 0
    with tempfile.TemporaryDirectory() as folder:
        for make in (cnn, transformer, quantised, halves):
            error = check(build, runner, make, folder)
            ok = error <= TOLERANCE
            bad += not ok
            print("%-12s %s error %.1e of the largest magnitude, %.0e allowed; equal bits at 1 and 2 threads" % (
                make.__name__, "ok  " if ok else "FAIL", error, TOLERANCE))
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(os.path.abspath(sys.argv[1]))
