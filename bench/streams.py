"""One stream against several, on two threads: two independent recurrent towers, and models that are given.

  python3 bench/streams.py [BUILD_FOLDER] [MODEL.onnx ...]
Neither tower can be shared among threads, so that two streams gain what the prediction says: about half of the time.
A model whose plan has no lanes is the same file both ways. The last line says whether the towers gain 1.2 times and
no model loses more than 2 %; if not, the exit code is 1.
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
from built import built  # noqa: E402

STEPS, INPUT, HIDDEN = 64, 64, 128
TURNS = 9
# Inputs of models with open dims; what is not named here keeps the model's dims.
SHAPES = {"ppocrv4_det": "x:1,3,320,480", "ppocrv4_rec": "x:1,3,48,320", "ppocr_cls": "x:1,3,48,192", "oww_melspec": "input:1,12400",
          "oww_embedding": "input_1:1,76,32,1", "magika_v3_3": "bytes:1,2048",
          "minilm_dyn": "input_ids:1,17;attention_mask:1,17;token_type_ids:1,17", "silero_vad_v4": "input:1,512;sr:;h:2,1,64;c:2,1,64",
          "silero_vad_v5": "input:1,576;state:2,1,128;sr:", "bert_base_dyn": "input_ids:1,128;attention_mask:1,128;token_type_ids:1,128",
          "bert_base_dynq": "input_ids:1,128;attention_mask:1,128;token_type_ids:1,128"}


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


def run(build, tool, *args):
    done = subprocess.run([os.path.join(build, "bin", tool), *args], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError((done.stderr or done.stdout).strip().splitlines()[0])
    return done.stdout


def median(values):
    return sorted(values)[len(values) // 2]


def compare(build, path, folder):
    """(lanes, time on one stream over time on several): medians of turns."""
    name = os.path.splitext(os.path.basename(path))[0]
    oms = {}
    for single in ("true", "false"):
        oms[single] = os.path.join(folder, name + single + ".om")
        shape = ["--input_shape=" + SHAPES[name]] if name in SHAPES else []
        run(build, "atc", "--framework=5", "--model=" + path, "--output=" + oms[single][:-3], "--enable_single_stream=" + single, *shape)
    plan = run(build, "ge", "om", "--plan", oms["false"])
    lanes = 1 + max((int(part.split()[0].rstrip("}")) for part in plan.split(" lane=")[1:]), default=0)
    if lanes == 1:
        same = plan.splitlines()[1:] == run(build, "ge", "om", "--plan", oms["true"]).splitlines()[1:]
        return 1, 1.0 if same else float("nan")
    times = {"true": [], "false": []}
    for _ in range(TURNS):
        for single, taken in times.items():
            figures = os.path.join(folder, "figures.json")
            run(build, "ge", "bench", oms[single], "--threads", "2", "--rounds", "2000", "--seconds", "0.3", "--json", figures)
            with open(figures) as f:
                taken.append(json.load(f)["median_ms"])
    one, several = median(times["true"]), median(times["false"])
    print("%-16s %d streams: one stream %.3f ms, several %.3f ms: %.3f times as fast" % (name, lanes, one, several, one / several), flush=True)
    return lanes, one / several


def main():
    build = built(sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "build", "release"))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "towers.onnx")
        with open(path, "wb") as f:
            f.write(towers())
        gain, worst, without = compare(build, path, folder)[1], 1.0, []
        for model in sys.argv[2:]:
            lanes, ratio = compare(build, model, folder)
            worst = min(worst, ratio)
            if lanes == 1:
                without.append(os.path.basename(model))
    print("no lanes, the same plan both ways: %s" % (", ".join(without) or "none"))
    print("towers gain %.2f times (bar 1.2), the worst model has %.3f (bar 0.98)" % (gain, worst))
    return 0 if gain >= 1.2 and worst >= 0.98 else 1


if __name__ == "__main__":
    if sys.argv[1:] == ["--help"]:
        print(__doc__)
        sys.exit(0)
    if len(sys.argv) > 1 and sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    sys.exit(main())
