"""Two independent recurrent towers on one stream and on two, in turns, on two threads.

  python3 bench/streams.py [BUILD_FOLDER]
Neither tower can be shared among threads, so that two streams gain what the prediction says: about half of the time.
"""
import json
import os
import random
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests"))
import make_models as make  # noqa: E402

STEPS, INPUT, HIDDEN = 64, 64, 128


def towers():
    rng = random.Random(1)
    nodes, initializers = [], [make.tensor("axis", make.I64, [1], [1])]
    for side in "ab":
        initializers += [make.weights(rng, side + "w", [1, 4 * HIDDEN, INPUT]), make.weights(rng, side + "r", [1, 4 * HIDDEN, HIDDEN])]
        nodes += [make.node("LSTM", [side, side + "w", side + "r"], [side + "h"], hidden_size=HIDDEN),
                  make.node("Squeeze", [side + "h", "axis"], [side + "y"])]
    nodes.append(make.node("Concat", ["ay", "by"], ["y"], axis=2))
    inputs = [make.value_info(side, make.F32, [STEPS, 1, INPUT]) for side in "ab"]
    return make.model(make.graph("towers", nodes, inputs, [make.value_info("y", make.F32, [STEPS, 1, 2 * HIDDEN])], initializers))


def main():
    build = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "build", "release")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "towers.onnx")
        with open(path, "wb") as f:
            f.write(towers())
        times = {"true": [], "false": []}
        for single in times:
            subprocess.run([os.path.join(build, "bin", "atc"), "--framework=5", "--model=" + path, "--output=" + path[:-5] + single,
                            "--enable_single_stream=" + single], check=True, stdout=subprocess.DEVNULL)
        for _ in range(5):
            for single, list_ in times.items():
                out = os.path.join(folder, "figures.json")
                subprocess.run([os.path.join(build, "bin", "ge"), "bench", path[:-5] + single + ".om", "--threads", "2", "--rounds", "2000",
                                "--seconds", "0.5", "--json", out], check=True, stdout=subprocess.DEVNULL)
                with open(out) as f:
                    list_.append(json.load(f)["median_ms"])
    one, two = sorted(times["true"])[2], sorted(times["false"])[2]
    print("one stream %.3f ms, two streams %.3f ms: %.2f times faster" % (one, two, one / two))


if __name__ == "__main__":
    main()
