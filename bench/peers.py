"""GE against ONNX Runtime and OpenVINO.  See bench/peers.

Every round runs each side once, in turn, on the same inputs. Ratios are peer / ours: above 1 we are faster.
fp32 rows run OpenVINO with its f32 hint, so that all sides compute the same thing.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import time

import numpy as np
import openvino as ov

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import ge_runtime  # noqa: E402
import models  # noqa: E402

SUBSET = ["resnet50", "mobilenetv2", "efficientnet_b0", "yolov8n", "bert_base", "minilm_dyn_s17", "ppocrv4_rec_320",
          "ppocrv4_det_320x480", "silero_vad_v4", "oww_embedding", "mnist12", "magika_v3_3", "resnet50_qdq", "bert_base_dynq"]


def wait_until_quiet(limit=60):
    """Waits for the machine's load to fall; says so if it does not."""
    end = time.time() + limit
    while time.time() < end:
        with open("/proc/stat") as f:
            a = list(map(int, f.readline().split()[1:]))
        time.sleep(0.5)
        with open("/proc/stat") as f:
            b = list(map(int, f.readline().split()[1:]))
        total = sum(b) - sum(a)
        if total and (b[3] - a[3]) / total > 0.9:
            return True
    return False


def openvino_model(path, threads, feeds, precision):
    core = ov.Core()
    model = core.read_model(path)
    config = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY"}
    if precision:
        config["INFERENCE_PRECISION_HINT"] = precision
    request = core.compile_model(model, "CPU", config).create_infer_request()
    names = {}
    for port in model.inputs:
        names[port] = next(n for n in feeds if n in port.names)
    tensors = {port: ov.Tensor(np.ascontiguousarray(feeds[n]).reshape(np.shape(feeds[n]))) for port, n in names.items()}
    for port, tensor in tensors.items():
        request.set_tensor(port, tensor)
    return request


def times(sides, seconds):
    """{side: sorted times in ms}, the sides alternating."""
    result = {name: [] for name in sides}
    for run in sides.values():
        run()
        run()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(next(iter(result.values()))) < 2 * models.TURN:
        for name, run in sides.items():
            models.turn(run, result[name])
    return {name: sorted(t) for name, t in result.items()}


def fresh_process(code, *args):
    """Seconds from the start of a process to its first result, and its peak memory in MB."""
    t = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code, *args], capture_output=True, text=True)
    seconds = time.perf_counter() - t
    if done.returncode:
        return float("nan"), float("nan")
    inner, rss = map(float, done.stdout.split()[-2:])
    return inner, rss / 1024


START = """
import sys, time, numpy as np
t = time.perf_counter()
import glob, os
folder = sys.argv[2]
feeds = {}
for line in open(os.path.join(folder, 'inputs.txt')):
    name, file = line.rstrip('\\n').split('\\t')
    feeds[name] = np.load(os.path.join(folder, file))
t = time.perf_counter()
%s
seconds = time.perf_counter() - t
# Not ru_maxrss: a forked child inherits its parent's.
print(seconds, [line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')][0])
"""
START_GE = START % "sys.path.insert(0, sys.argv[3]); import ge_runtime; m = ge_runtime.Model(ge_runtime.library(sys.argv[4]), sys.argv[1], 2); m.run(feeds)"
START_ORT = START % "import onnxruntime as ort; o = ort.SessionOptions(); o.intra_op_num_threads = 2; s = ort.InferenceSession(sys.argv[1], o, providers=['CPUExecutionProvider']); s.run(None, feeds)"


def bench_case(lib, args, case, path, feeds, folder):
    int8 = case in models.INT8
    shapes = ";".join("%s:%s" % (n, ",".join(map(str, a.shape))) for n, a in feeds.items()) if case in models.FIXED else ""
    om, _ = models.compile_model(args.build, path, os.path.join(args.work, "om"), 2, "", shapes, os.path.join(args.work, "cache"))
    names, want = models.reference(path, feeds)
    row = {"case": case, "kind": "int8" if int8 else "fp32"}
    for threads in (1, 2):
        ours = ge_runtime.Model(lib, om, threads)
        ours.bind(feeds)
        ours.execute()
        got = dict(zip(ours.outputs, ours.results()))
        row["error"] = models.worst_error([got[n] for n in names], want)
        session = models.session(path, threads)
        sides = {"ge": ours.execute, "ort": lambda: session.run(names, feeds)}
        try:
            request = openvino_model(path, threads, feeds, "" if int8 else "f32")
            sides["ov"] = request.infer
        except Exception as e:
            row["openvino"] = str(e).splitlines()[0][:100]
        row["quiet"] = wait_until_quiet(args.quiet)
        t = times(sides, args.seconds)
        for side, ms in t.items():
            row["%s_%dT" % (side, threads)] = {"median": ms[len(ms) // 2], "min": ms[0]}
        peers = [s for s in t if s != "ge"]
        for what, pick in (("median", lambda ms: ms[len(ms) // 2]), ("min", lambda ms: ms[0])):
            row["ratio_%s_%dT" % (what, threads)] = min(pick(t[p]) for p in peers) / pick(t["ge"])
        ours.close()
    row["ge_start_s"], row["ge_rss_mb"] = fresh_process(START_GE, om, folder, HERE, args.build)
    row["ort_start_s"], row["ort_rss_mb"] = fresh_process(START_ORT, path, folder)
    return row


def geomean(values):
    values = [v for v in values if v > 0 and math.isfinite(v)]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def plot(rows, path):
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    figure, axes = plt.subplots(figsize=(10, 0.35 * len(rows) + 1.5))
    y = np.arange(len(rows))
    for k, threads in enumerate((1, 2)):
        axes.barh(y + 0.2 - 0.4 * k, [r["ratio_median_%dT" % threads] for r in rows], 0.38, label="%d thread%s" % (threads, "s" * k))
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks(y, [r["case"] for r in rows])
    axes.invert_yaxis()
    axes.set_xlabel("time of the faster peer / ours (above 1: we are faster)")
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", required=True)
    parser.add_argument("--build", default=os.path.join(models.ROOT, "build", "release"))
    parser.add_argument("--all", action="store_true", help="every case, not the subset")
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=3, help="of each comparison")
    parser.add_argument("--quiet", type=float, default=30, help="seconds to wait for a quiet machine")
    parser.add_argument("--json")
    parser.add_argument("--plot")
    args = parser.parse_args()
    for folder in ("om", "cache"):
        os.makedirs(os.path.join(args.work, folder), exist_ok=True)
    lib = ge_runtime.library(args.build)
    cases = models.make_cases(args.work)
    wanted = [c for c in args.only.split(",") if c] or (list(cases) if args.all else SUBSET)
    rows = []
    for case in wanted:
        if case not in cases:
            continue
        path, feeds = cases[case]
        row = bench_case(lib, args, case, path, feeds, os.path.join(args.work, "cases", case))
        rows.append(row)
        side = lambda s, t: "%8.3f" % row["%s_%dT" % (s, t)]["median"] if "%s_%dT" % (s, t) in row else "       -"
        print("%-20s %s  1T ge %s ort %s ov %s ratio %.2f (min %.2f)  2T ge %s ort %s ov %s ratio %.2f (min %.2f)  start %.0f / %.0f ms  memory %.0f / %.0f MB%s" % (
            case, row["kind"], side("ge", 1), side("ort", 1), side("ov", 1), row["ratio_median_1T"], row["ratio_min_1T"],
            side("ge", 2), side("ort", 2), side("ov", 2), row["ratio_median_2T"], row["ratio_min_2T"],
            row["ge_start_s"] * 1e3, row["ort_start_s"] * 1e3, row["ge_rss_mb"], row["ort_rss_mb"],
            "" if row["quiet"] else "  (machine not quiet)"), flush=True)
    if args.json:
        with open(args.json, "w") as f:
            json.dump(rows, f, indent=1)
    if args.plot:
        plot(rows, args.plot)
    mean = lambda kind, t: geomean([r["ratio_median_%dT" % t] for r in rows if r["kind"] == kind])
    print("start to first result, ort / ge: %.2f   peak memory, ort / ge: %.2f" % (
        geomean([r["ort_start_s"] / r["ge_start_s"] for r in rows]), geomean([r["ort_rss_mb"] / r["ge_rss_mb"] for r in rows])))
    print("geomean fp32 1T=%.2f 2T=%.2f bf16 1T=- 2T=- int8 1T=%.2f 2T=%.2f" % (mean("fp32", 1), mean("fp32", 2), mean("int8", 1), mean("int8", 2)))


if __name__ == "__main__":
    main()
