"""Real models: GE against ONNX Runtime, in one process, interleaved.  See bench/models.

Each case is compiled with optimisation off and on (and for AVX2, in bf16 or for AMX in C where named), run at 1 and 2 threads,
and every output is compared; no micro-kernel may move vectors through the stack. An element is right if it is
within 1e-3 of (its own magnitude + the output's root mean square); integers must be equal. Models with int8 arithmetic: the relative
root-mean-square difference is at most twice that between ONNX Runtime's own optimised and unoptimised
results.
"""
import argparse
import os
import subprocess
import sys
import time

import numpy as np
import onnx
import onnxruntime as ort

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, HERE)
import fetch_models  # noqa: E402
import ge_runtime  # noqa: E402

# A CNN, a depthwise one, transformers, bytes and a tiny one.
AVX2_TOO = {"resnet50", "mobilenetv2", "bert_base", "resnet50_qdq", "ppocrv4_rec_320", "oww_hey_jarvis"}
BF16_TOO = {"resnet50", "bert_base", "minilm_dyn_s17"}
# For AMX with its instructions in C, where the rest can run; without bytes in bf16.
AMX_TOO, AMX = {"resnet50", "minilm_dyn_s17", "resnet50_qdq", "bert_base_dynq"}, "sapphirerapids-emulated"
BF16_ERROR = 0.05  # relative root mean square: bf16 keeps 8 bits
INT8 = {"resnet50_qdq", "bert_base_dynq"}
# Cases of models whose ranks need a fixed shape: atc gets --input_shape from the inputs.
FIXED = {"silero_vad_v4", "silero_vad_v5"}


def shared_folder():
    folder = os.environ.get("GE_SHARED", os.path.join(os.path.dirname(ROOT), "shared"))
    return folder if os.path.isdir(folder) else None


# Parts that tests run one by one; what is in no other part is "rest".
SETS = {"ocr": "ppocr", "speech": "oww"}


def in_set(case, name):
    if name == "rest":
        return not any(case.startswith(prefix) for prefix in SETS.values())
    return not name or case.startswith(SETS[name])


def uniform(shape):
    return lambda rng: rng.uniform(-1, 1, shape).astype(np.float32)


# Without the shared scripts: trained models from npm packages only.
PACKAGE_CASES = {
    "ppocrv4_rec_320": ("ppocrv4_rec.onnx", {"x": uniform((1, 3, 48, 320))}),
    "ppocrv4_rec_b4_640": ("ppocrv4_rec.onnx", {"x": uniform((4, 3, 48, 640))}),
    "ppocrv4_det_320x480": ("ppocrv4_det.onnx", {"x": uniform((1, 3, 320, 480))}),
    "ppocr_cls": ("ppocr_cls.onnx", {"x": uniform((1, 3, 48, 192))}),
    "oww_embedding": ("oww_embedding.onnx", {"input_1": uniform((1, 76, 32, 1))}),
    "oww_melspec": ("oww_melspec.onnx", {"input": uniform((1, 12400))}),
    "oww_hey_jarvis": ("oww_hey_jarvis.onnx", {"x.1": uniform((1, 16, 96))}),
}


def run_script(script, *args):
    subprocess.run([sys.executable, script, *args], check=True, stdout=subprocess.DEVNULL,
                   env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1"))


def make_cases(work):
    """{case: (model path, {input: array})}"""
    models, shared = os.path.join(work, "models"), shared_folder()
    fetch_models.main(models, [])
    cases = {}
    if not shared:
        for case, (file, inputs) in PACKAGE_CASES.items():
            if not os.path.exists(os.path.join(models, file)):
                print("%-22s skipped: %s could not be had" % (case, file), flush=True)
                continue
            rng = np.random.default_rng(sum(map(ord, case)))
            cases[case] = (os.path.join(models, file), {n: f(rng) for n, f in inputs.items()})
        return cases
    folder = os.path.join(work, "cases")
    if not os.path.exists(os.path.join(models, "yolov8n.onnx")):
        print("making models...", flush=True)
        run_script(os.path.join(shared, "models", "gen_models.py"), models)
    if not os.path.isdir(folder):
        run_script(os.path.join(shared, "models", "cases.py"), folder, models, os.path.join(shared, "data", "models"))
    for case in sorted(os.listdir(folder)):
        with open(os.path.join(folder, case, "model.txt")) as f:
            model = f.read().strip()
        with open(os.path.join(folder, case, "inputs.txt")) as f:
            lines = [line.rstrip("\n").split("\t") for line in f]
        cases[case] = (model, {n: np.load(os.path.join(folder, case, file)) for n, file in lines})
    return cases


def session(path, threads, optimise=True):
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    if not optimise:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


# Models that end in a Sigmoid of large negative values: ONNX Runtime's Sigmoid is right to 1e-7 absolutely, not
# relatively (its own optimised and unoptimised results differ by 5 %), so its logits are taken and the
# Sigmoid is done in double precision.
SIGMOID_OUTPUT = {"ppocrv4_det.onnx"}


def reference(path, feeds):
    """(output names, results) of the peer."""
    if os.path.basename(path) not in SIGMOID_OUTPUT:
        s = session(path, 1)
        names = [o.name for o in s.get_outputs()]
        return names, s.run(names, feeds)
    model = onnx.load(path)
    last, = [n for n in model.graph.node if model.graph.output[0].name in n.output]
    assert last.op_type == "Sigmoid"
    name, logits = last.output[0], last.input[0]
    model.graph.node.remove(last)
    model.graph.output[0].name = logits
    s = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    x = s.run([logits], feeds)[0].astype(np.float64)
    return [name], [(1 / (1 + np.exp(-x))).astype(np.float32)]


def compile_model(build, path, out, level, soc, shapes, cache, precision="", tag=""):
    key = "%s_O%d_%s%s%s.om" % (tag or os.path.basename(path)[:-5], level, soc or "host", "_fixed" if shapes else "",
                                "_" + precision if precision else "")
    om = os.path.join(out, key)
    command = [os.path.join(build, "bin", "atc"), "--model=" + path, "--framework=5", "--output=" + om,
               "--opt_level=%d" % level, "--cache_dir=" + cache]
    if soc:
        command.append("--soc_version=" + soc)
    if precision:
        command.append("--precision_mode=" + precision)
    if shapes:
        command.append("--input_shape=" + shapes)
    t = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError("atc: " + (done.stderr.strip().splitlines() or [done.stdout])[0][:300])
    return om, time.perf_counter() - t


def spilled(build, om):
    """What is wrong with the code of the micro-kernels; "" if nothing is, or no disassembler is here."""
    done = subprocess.run([os.path.join(build, "bin", "ge"), "om", om, "--spills"], capture_output=True, text=True)
    if done.returncode and "no objdump" not in done.stderr:
        return "  SPILLS: " + done.stderr.strip().split(": ", 2)[-1]
    return ""


def has_avx512_bf16():
    with open("/proc/cpuinfo") as f:
        return {"avx512_bf16", "avx512_vnni"} <= set(f.read().split())


def worst_error(got, want):
    """Largest error in units of the allowed one; inf if shapes, types or integers differ."""
    worst = 0.0
    for g, w in zip(got, want):
        if g.shape != w.shape or g.dtype != w.dtype:
            return float("inf")
        if w.dtype.kind not in "f":
            if not np.array_equal(g, w):
                return float("inf")
            continue
        if not w.size:
            continue
        g, w = g.astype(np.float64), w.astype(np.float64)
        same = (g == w) | (np.isnan(g) & np.isnan(w))
        allowed = 1e-3 * (np.abs(w) + np.sqrt(np.mean(np.square(w[np.isfinite(w)]))) + 1e-30)
        with np.errstate(invalid="ignore"):
            e = np.where(same, 0, np.abs(g - w) / allowed)
        worst = max(worst, float(np.nan_to_num(e, nan=np.inf).max()))
    return worst


def relative_rms(got, want):
    e = 0.0
    for g, w in zip(got, want):
        if g.shape != w.shape:
            return float("inf")
        e = max(e, float(np.sqrt(np.mean((g.astype(np.float64) - w) ** 2)) / (np.sqrt(np.mean(np.square(w.astype(np.float64)))) + 1e-30)))
    return e


# Both sides' workers spin for a while after a run, and the one would run beside the other's spinning: each turn begins
# with a pause and an untimed run, then come a few timed ones.
PAUSE, TURN = 0.05, 4


def turn(run, times):
    """One side's turn: appends its times in ms."""
    time.sleep(PAUSE)
    run()
    for _ in range(TURN):
        t = time.perf_counter()
        run()
        times.append((time.perf_counter() - t) * 1e3)


def interleave(a, b, seconds):
    """Medians and minima of both, in turns."""
    ta, tb = [], []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(ta) < 2 * TURN:
        turn(a, ta)
        turn(b, tb)
    return np.median(ta), np.median(tb), min(ta), min(tb)


def check_case(lib, build, work, case, path, feeds, args):
    """Yields (variant, error in allowed units, text) of each variant."""
    names, want = reference(path, feeds)
    limit = None
    if case in INT8:
        limit = 2 * relative_rms(session(path, 1, optimise=False).run(names, feeds), want)
    shapes = ";".join("%s:%s" % (n, ",".join(map(str, a.shape))) for n, a in feeds.items()) if case in FIXED else ""
    variants = [(2, "", ""), (0, "", "")] + ([(2, "x86-64-v3", "")] if case in AVX2_TOO else []) + (
        [(2, "", "allow_mix_precision_bf16")] if case in BF16_TOO else []) + (
        [(2, AMX, "" if case in INT8 else "allow_mix_precision_bf16")] if case in AMX_TOO and has_avx512_bf16() else [])
    for level, soc, precision in variants:
        om, seconds = compile_model(build, path, os.path.join(work, "om"), level, soc, shapes, os.path.join(work, "cache"), precision)
        if precision:
            limit = BF16_ERROR
        first, spills = None, spilled(build, om) if level else ""
        for threads in (1, 2):
            model = ge_runtime.Model(lib, om, threads)
            model.bind(feeds)
            model.execute()
            got = dict(zip(model.outputs, model.results()))
            got = [got[n] for n in names]
            error = worst_error(got, want) if limit is None else relative_rms(got, want) / max(limit, 1e-9)
            same = first is None or all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in zip(first, got))
            first = got
            text = "compile %.1fs" % seconds
            if level == 2 and not soc and not precision and not args.no_time:
                peer = session(path, threads)
                ours, theirs, ours_min, theirs_min = interleave(model.execute, lambda: peer.run(names, feeds), args.seconds)
                text += "  ge %.3f ms  ort %.3f ms  ge/ort %.2f (min %.2f)" % (ours, theirs, ours / theirs, ours_min / theirs_min)
            if not same:
                text += "  BITS DIFFER between 1 and 2 threads"
            text += spills
            same &= not spills
            model.close()
            yield "O%d%s%s %dT" % (level, " " + soc if soc else "", " bf16" if precision else "", threads), error if same else float("inf"), text


def chosen(only, names):
    """The names of --only, comma-separated, where one may end with *; all without. One that chooses nothing ends the program."""
    names, given = list(names), [word for word in only.split(",") if word]
    matches = lambda name, word: name.startswith(word[:-1]) if word.endswith("*") else name == word
    for word in given:
        if not any(matches(name, word) for name in names):
            print("no such case: %s (there are: %s)" % (word, ", ".join(names) or "none"), file=sys.stderr)
            sys.exit(2)
    return [name for name in names if not given or any(matches(name, word) for word in given)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", default=os.path.join(ROOT, "build", "bench"))
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"))
    parser.add_argument("--only", default="")
    parser.add_argument("--set", default="", choices=["", "ocr", "speech", "rest"], help="one part of the cases")
    parser.add_argument("--seconds", type=float, default=2.0, help="measuring time of each comparison")
    parser.add_argument("--no-time", action="store_true", help="compare outputs only")
    args = parser.parse_args()
    for folder in ("om", "cache"):
        os.makedirs(os.path.join(args.work, folder), exist_ok=True)
    lib = ge_runtime.library(args.build)
    cases = make_cases(args.work)
    wanted = chosen(args.only, cases)
    passed = failed = 0
    for case, (path, feeds) in cases.items():
        if case not in wanted or not in_set(case, args.set):
            continue
        ok = True
        try:
            for variant, error, text in check_case(lib, args.build, args.work, case, path, feeds, args):
                ok &= error <= 1
                print("%-22s %-14s %s worst error %.3g of the allowed  %s" % (
                    case, variant, "ok  " if error <= 1 else "FAIL", error, text), flush=True)
        except Exception as e:  # a case that cannot run is a failure of that case, not of the bench
            ok = False
            print("%-22s FAIL %s" % (case, e), flush=True)
        passed, failed = passed + ok, failed + (not ok)
    if not passed + failed:
        print("skipped: no model of these cases is here")
        sys.exit(77)
    print("%d passed, %d failed" % (passed, failed))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
