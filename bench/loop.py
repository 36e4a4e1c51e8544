"""What a step of a Loop costs, in microseconds on one worker, for 1,000 steps.

  python3 bench/loop.py BUILD_FOLDER       exits 1 if a bar is missed

Three loops: of jumps (as at --opt_level=0) over two kernels of 64 elements; one that ends by its
condition; and a serial body of scalars, which is one kernel. The figures are of the shortest run, which other programs do not
lengthen, and hold the kernels' own time.
"""
import json
import os
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tests"))
import make_models as mm  # noqa: E402
from built import built  # noqa: E402

STEPS = 1000


def npy(path, code, size, value):
    """A scalar as a .npy file."""
    header = ("{'descr': '%s', 'fortran_order': False, 'shape': (), }" % code).ljust(117) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + value.to_bytes(size, "little"))
    return path


def counted(nodes, dims):
    """s = body(i, s), m times."""
    body = mm.graph("body", nodes + [mm.node("Identity", ["k"], ["k2"])],
                    [mm.value_info("i", mm.I64, []), mm.value_info("k", mm.BOOL, []), mm.value_info("s", mm.F32, dims)],
                    [mm.value_info("k2", mm.BOOL, []), mm.value_info("s2", mm.F32, dims)])
    return mm.model(mm.graph("counted", [mm.node("Loop", ["m", "", "x"], ["y"], body=body)],
                             [mm.value_info("x", mm.F32, dims), mm.value_info("m", mm.I64, [])], [mm.value_info("y", mm.F32, dims)]))


def conditional():
    """s = s + 1 while s < STEPS."""
    body = mm.graph("body", [mm.node("Add", ["s", "one"], ["s2"]), mm.node("Less", ["s2", "most"], ["k2"])],
                    [mm.value_info("i", mm.I64, []), mm.value_info("k", mm.BOOL, []), mm.value_info("s", mm.F32, [])],
                    [mm.value_info("k2", mm.BOOL, []), mm.value_info("s2", mm.F32, [])],
                    [mm.tensor("one", mm.F32, [], [1.0]), mm.tensor("most", mm.F32, [], [float(STEPS)])])
    return mm.model(mm.graph("conditional", [mm.node("Loop", ["", "c", "x"], ["y"], body=body)],
                             [mm.value_info("c", mm.BOOL, []), mm.value_info("x", mm.F32, [])], [mm.value_info("y", mm.F32, [])]))


def main(build):
    tool = lambda name: os.path.join(build, "bin", name)
    with tempfile.TemporaryDirectory() as folder:
        path = lambda name: os.path.join(folder, name)
        inputs = {"m": npy(path("m.npy"), "<i8", 8, STEPS), "c": npy(path("c.npy"), "|b1", 1, 1), "x": npy(path("x.npy"), "<f4", 4, 0)}

        def measure(name, model, level, given):
            """us per step."""
            with open(path(name + ".onnx"), "wb") as f:
                f.write(model)
            subprocess.run([tool("atc"), "--model=" + path(name + ".onnx"), "--framework=5", "--output=" + path(name),
                            "--opt_level=%d" % level], check=True, stdout=subprocess.DEVNULL)
            args = sum((["--input", "%s=%s" % (n, inputs[n])] for n in given), [])
            subprocess.run([tool("ge"), "bench", path(name + ".om"), "--threads", "1", "--seconds", "0.5", "--json",
                            path("r.json"), *args], check=True, stdout=subprocess.DEVNULL)
            with open(path("r.json")) as f:
                return json.load(f)["min_ms"] * 1000 / STEPS

        missed = 0
        for name, model, level, given, bar in [
                ("jumps", counted([mm.node("Tanh", ["s"], ["a"]), mm.node("Add", ["a", "s"], ["s2"])], [64]), 0, "m", 2.0),
                ("condition", conditional(), 2, "cx", 2.0),
                ("scalars", counted([mm.node("Cast", ["i"], ["f"], to=mm.F32), mm.node("Add", ["s", "f"], ["a"]),
                                     mm.node("Tanh", ["a"], ["s2"])], []), 2, "mx", 0.2)]:
            step = measure(name, model, level, given)
            print("loop %-10s %.3f us per step (bar %.1f)" % (name, step, bar))
            missed += step > bar
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    if sys.argv[1:] == ["--help"]:
        print(__doc__)
        sys.exit(0)
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    main(built(sys.argv[1]))
