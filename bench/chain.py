"""Import, optimisation and planning of long chains: times must grow near-linearly.

  python3 bench/chain.py BUILD_FOLDER [LENGTH ...]
"""
import os
import subprocess
import sys
import tempfile


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, data):
    if isinstance(data, int):
        return varint(number << 3) + varint(data)
    return varint(number << 3 | 2) + varint(len(data)) + data


def value_info(name):
    dims = b"".join(field(1, field(1, d)) for d in (4, 16))
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, dims)))


def chain(length):
    """An ONNX model of `length` nodes: Relu, Add with the value two back, Tanh, Mul by itself, ..."""
    nodes, ops = [], (b"Relu", b"Add", b"Sigmoid", b"Mul")
    for i in range(length):
        op = ops[i % 4]
        inputs = [b"v%d" % i] + ([b"v%d" % max(0, i - 2)] if op in (b"Add", b"Mul") else [])
        nodes.append(field(1, b"".join(field(1, n) for n in inputs) + field(2, b"v%d" % (i + 1)) + field(4, op)))
    graph = b"".join(nodes) + field(2, b"chain") + field(11, value_info(b"v0")) + field(12, value_info(b"v%d" % length))
    return field(1, 8) + field(7, graph) + field(8, field(2, 14))


def main(build, lengths):
    with tempfile.TemporaryDirectory() as folder:
        for n in lengths:
            path = os.path.join(folder, "chain%d.onnx" % n)
            with open(path, "wb") as f:
                f.write(chain(n))
            done = subprocess.run([os.path.join(build, "bin", "atc"), "--model=" + path, "--framework=5", "--output=" + path,
                                   "--log=info", "--cache_dir=" + folder], capture_output=True, text=True)
            if done.returncode:
                sys.exit(done.stderr)
            times = [line for line in done.stdout.splitlines() if line.startswith("import ")]
            print("%6d nodes: %s" % (n, times[-1]), flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1], [int(n) for n in sys.argv[2:]] or [5000, 10000, 20000])
