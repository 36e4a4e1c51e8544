"""GE against ONNX Runtime and OpenVINO.  See bench/peers.

Every round runs each side once, in turn, on the same inputs. Ratios are peer / ours, of the faster peer: above 1 we are
faster. Each measurement waits for a quiet machine, and is made again up to twice if others worked meanwhile. fp32 rows run OpenVINO with its f32 hint, so that all sides compute the same thing. bf16 rows are the fp32 models
compiled with --precision_mode=allow_mix_precision_bf16 against OpenVINO at its default; their ratio to ONNX Runtime, which
stays in f32, is printed beside. Start is a fresh process from the import of the runtime to the first result, at 2 threads;
memory is that process's peak, with Python and NumPy in all of them. NumPy has one thread there: a second one of its OpenBLAS
would spin on a CPU for 25 ms after its import. Our Python file is compiled before, as pip did with theirs. --memory measures that alone, against ONNX Runtime, for all
cases; "apart" leaves out what such a process holds without a runtime: Python, NumPy and the inputs.
"""
import argparse
import json
import math
import os
import py_compile
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import ge_runtime  # noqa: E402
import models  # noqa: E402

SUBSET = ["resnet50", "mobilenetv2", "efficientnet_b0", "yolov8n", "bert_base", "minilm_dyn_s17", "ppocrv4_rec_320",
          "ppocrv4_det_320x480", "silero_vad_v4", "oww_embedding", "mnist12", "magika_v3_3", "resnet50_qdq", "bert_base_dynq"]
# Convolutional networks and transformers that also run with bf16 allowed.
BF16 = {"resnet50", "mobilenetv2", "efficientnet_b0", "yolov8n", "bert_base", "bert_base_dyn_b4s32", "bert_base_dyn_s128",
        "minilm_dyn_s17", "minilm_dyn_b8s64", "vit_b16"}
START_ROUNDS = 3
DOTS = ("Conv", "MatMul", "Gemm")


def wait_until_quiet(limit=60):
    """Waits for the machine's load to fall; says so if it does not."""
    end = time.time() + limit
    while True:
        with open("/proc/stat") as f:
            a = list(map(int, f.readline().split()[1:]))
        time.sleep(0.5)
        with open("/proc/stat") as f:
            b = list(map(int, f.readline().split()[1:]))
        total = sum(b) - sum(a)
        if total and (b[3] - a[3]) / total > 0.9:
            return True
        if time.time() >= end:
            return False


def busy_elsewhere():
    """(seconds that all CPUs have worked or were taken away, less those of this process; now)"""
    with open("/proc/stat") as f:
        n = list(map(int, f.readline().split()[1:9]))  # user nice system idle iowait irq softirq steal
    own = resource.getrusage(resource.RUSAGE_SELF)
    return (sum(n) - n[3] - n[4]) / os.sysconf("SC_CLK_TCK") - own.ru_utime - own.ru_stime, time.time()


def quiet_times(runs, args):
    """times(), again up to twice if others took more than 5 % of the CPUs meanwhile; and whether it was quiet."""
    for _ in range(3):
        quiet = wait_until_quiet(args.quiet)
        busy, begin = busy_elsewhere()
        t = times(runs, args.seconds)
        after, end = busy_elsewhere()
        quiet &= after - busy <= 0.05 * (end - begin) * os.cpu_count()
        if quiet:
            break
    return t, quiet


def openvino_model(path, threads, feeds, precision):
    import openvino as ov
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


def fresh_process(code, *args, rounds=START_ROUNDS):
    """Seconds from the import of the runtime in a new process to its first result, and its peak memory in MB: the best
    of some processes."""
    best = (float("nan"), float("nan"))
    py_compile.compile(ge_runtime.__file__)
    for _ in range(rounds):
        done = subprocess.run([sys.executable, "-c", code, *args], capture_output=True, text=True,
                              env=dict(os.environ, OPENBLAS_NUM_THREADS="1"))
        if done.returncode:
            return best
        seconds, rss = map(float, done.stdout.split()[-2:])
        best = (min(seconds, best[0]) if best[0] == best[0] else seconds, rss / 1024)
    return best


START = """
import sys, time, numpy as np
import os
folder = sys.argv[2]
feeds = {}
for line in open(os.path.join(folder, 'inputs.txt')):
    name, file = line.rstrip('\\n').split('\\t')
    feeds[name] = np.load(os.path.join(folder, file))
sys.path.insert(0, sys.argv[3])
t = time.perf_counter()
%s
seconds = time.perf_counter() - t
# Not ru_maxrss: a forked child inherits its parent's.
print(seconds, [line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')][0])
"""
START_GE = START % "import ge_runtime; m = ge_runtime.Model(ge_runtime.library(sys.argv[4]), sys.argv[1], 2); m.run(feeds)"
START_ORT = START % ("import onnxruntime as ort; o = ort.SessionOptions(); o.intra_op_num_threads = 2; o.log_severity_level = 3; "
                     "s = ort.InferenceSession(sys.argv[1], o, providers=['CPUExecutionProvider']); s.run(None, feeds)")
START_OV = START % """
import onnxruntime as ort
import openvino as ov
core = ov.Core()
model = core.read_model(sys.argv[1])
config = {"INFERENCE_NUM_THREADS": 2, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY"}
if sys.argv[4]:
    config["INFERENCE_PRECISION_HINT"] = sys.argv[4]
request = core.compile_model(model, "CPU", config).create_infer_request()
request.infer({i: feeds[next(n for n in feeds if n in port.names)] for i, port in enumerate(model.inputs)})
"""


def memory_only(args, cases, wanted):
    """Peak memory of a process that loads a model and runs it once, at 2 threads. Our share of ONNX Runtime's."""
    shares = {"process": [], "apart": []}
    for case in wanted:
        path, feeds = cases[case]
        folder = os.path.join(args.work, "cases", case)
        shapes = ";".join("%s:%s" % (n, ",".join(map(str, a.shape))) for n, a in feeds.items()) if case in models.FIXED else ""
        om, _ = models.compile_model(args.build, path, os.path.join(args.work, "om"), 2, "", shapes, os.path.join(args.work, "cache"))
        bare, ours, theirs = (fresh_process(code, *a, rounds=1)[1] for code, a in (
            (START % "pass", ["", folder, HERE]), (START_GE, [om, folder, HERE, args.build]), (START_ORT, [path, folder, HERE])))
        shares["process"].append(ours / theirs)
        shares["apart"].append((ours - bare) / (theirs - bare))
        print("%-20s ge %6.1f MB  ort %6.1f MB  ratio %.2f   without %.1f MB of Python: %6.1f  %6.1f  ratio %.2f" % (
            case, ours, theirs, ours / theirs, bare, ours - bare, theirs - bare, shares["apart"][-1]), flush=True)
    print("peak memory ge / ort, geometric mean of %d: %.2f   apart from Python and inputs: %.2f" % (
        len(wanted), geomean(shares["process"]), geomean(shares["apart"])))
    return 0


def shapes_at(model, feeds):
    """{value: dims} of what convolutions and matrix products read and write: inferred, or what a run gives where inference
    finds no number."""
    for value in model.graph.input:
        if value.name in feeds:
            for d, size in zip(value.type.tensor_type.shape.dim, np.shape(feeds[value.name])):
                d.dim_value = size
    shaped = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    dims = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in
            [*shaped.value_info, *shaped.input, *shaped.output]}
    dims.update({t.name: list(t.dims) for t in shaped.initializer})
    wanted = {v for n in model.graph.node if n.op_type in DOTS for v in (n.output[0], *n.input[:2])}
    unknown = [v for v in sorted(wanted) if not dims.get(v) or 0 in dims[v]]
    if unknown:
        import onnxruntime as ort
        del model.graph.output[:]
        model.graph.output.extend(onnx.ValueInfoProto(name=v) for v in unknown)
        options = ort.SessionOptions()
        options.log_severity_level = 3
        session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        given = {i.name: feeds[i.name] for i in session.get_inputs()}
        dims.update({v: list(np.shape(x)) for v, x in zip(unknown, session.run(unknown, given))})
    return dims


def count_flops(path, feeds):
    """Operations of the convolutions and matrix products at these inputs, and bytes of their constant operands; None if
    that is not known."""
    try:
        model = onnx.load(path)
        if any(n.op_type in ("If", "Loop", "Scan", "LSTM", "GRU", "RNN", "ConvTranspose") for n in model.graph.node):
            return None
        dims = shapes_at(model, feeds)
        total, constants = 0, set()
        for n in model.graph.node:
            if n.op_type not in DOTS:
                continue
            constants.add(n.input[1])
            if n.op_type == "Conv":
                depth = math.prod(dims[n.input[1]][1:])
            else:
                turned = n.op_type == "Gemm" and any(a.name == "transA" and a.i for a in n.attribute)
                depth = dims[n.input[0]][0 if turned else -1]
            total += 2 * math.prod(dims[n.output[0]]) * depth
        weights = sum(4 * math.prod(t.dims) for t in model.graph.initializer if t.name in constants)
        return (total, weights) if total else None
    except Exception as e:
        print("%s: operations are not counted: %s" % (os.path.basename(path), str(e).splitlines()[0][:100]), flush=True)
        return None


def limits(args, om):
    """(GFLOP/s of f32 multiply-adds, GB/s of reads from memory) of one thread, measured now."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        done = subprocess.run([os.path.join(args.build, "bin", "ge"), "bench", om, "--threads", "1", "--rounds", "1", "--warmup", "0",
                               "--per-kernel", "1", "--json", file.name], capture_output=True, text=True)
        if done.returncode:
            return None
        result = json.load(open(file.name))
        return result["limit_gflops"], result["limit_gb_per_s"]


def median(ms):
    return ms[len(ms) // 2]


def compare(row, kind, threads, t, ours, peers):
    """The ratios of one kind at one thread count into its row."""
    for side in [ours, *peers]:
        row["%s_%dT" % (side, threads)] = {"median": median(t[side]), "min": t[side][0]}
    for what, pick in (("median", median), ("min", lambda ms: ms[0])):
        row["ratio_%s_%dT" % (what, threads)] = min(pick(t[p]) for p in peers) / pick(t[ours])
    if kind == "bf16":
        row["ratio_ort_%dT" % threads] = median(t["ort"]) / median(t[ours])


def bench_case(lib, args, case, path, feeds, folder):
    """One row, and one more if the case also runs in bf16."""
    kind = "int8" if case in models.INT8 else "fp32"
    shapes = ";".join("%s:%s" % (n, ",".join(map(str, a.shape))) for n, a in feeds.items()) if case in models.FIXED else ""
    built = lambda extra: models.compile_model(args.build, path, os.path.join(args.work, "om"), 2, "", shapes,
                                               os.path.join(args.work, "cache"), extra)[0]
    oms = {"ge": built("")}
    if case in BF16 and not args.no_bf16:
        oms["ge_bf16"] = built("allow_mix_precision_bf16")
    names, want = models.reference(path, feeds)
    limit = None
    if kind == "int8":
        limit = 2 * models.relative_rms(models.session(path, 1, optimise=False).run(names, feeds), want)
    row, half = {"case": case, "kind": kind}, {"case": case, "kind": "bf16"}
    for threads in (1, 2):
        session = models.session(path, threads)
        sides = {}
        for side, om in oms.items():
            model = ge_runtime.Model(lib, om, threads)
            model.bind(feeds)
            model.execute()
            got = dict(zip(model.outputs, model.results()))
            got = [got[n] for n in names]
            if side == "ge":  # in units of what bench/models allows
                row["error"] = models.worst_error(got, want) if limit is None else models.relative_rms(got, want) / max(limit, 1e-9)
            else:
                half["error"] = models.relative_rms(got, want) / models.BF16_ERROR
            sides[side] = (model, model.execute)
        runs = {side: run for side, (_, run) in sides.items()}
        runs["ort"] = lambda: session.run(names, feeds)
        for side, precision in (("ov", "" if kind == "int8" else "f32"), ("ov_bf16", "")):
            if side == "ov_bf16" and "ge_bf16" not in oms:
                continue
            try:
                runs[side] = openvino_model(path, threads, feeds, precision).infer
                runs[side]()
            except Exception as e:
                runs.pop(side, None)
                row["openvino"] = str(e).splitlines()[0][:100]
        t, quiet = quiet_times(runs, args)
        row["quiet"] = half["quiet"] = quiet and row.get("quiet", True)
        compare(row, kind, threads, t, "ge", [s for s in ("ort", "ov") if s in t])
        if "ge_bf16" in t:
            compare(half, "bf16", threads, t, "ge_bf16", [s for s in ("ort", "ov_bf16") if s in t])
        for model, _ in sides.values():
            model.close()
    for r, om, precision in ((row, oms["ge"], "" if kind == "int8" else "f32"), (half, oms.get("ge_bf16"), "")):
        if not om:
            continue
        for side, (code, a) in {"ge": (START_GE, [om, folder, HERE, args.build]), "ort": (START_ORT, [path, folder, HERE]),
                                "ov": (START_OV, [path, folder, HERE, precision])}.items():
            r[side + "_start_s"], r[side + "_rss_mb"] = fresh_process(code, *a)
    counted = count_flops(path, feeds) if args.limits and kind == "fp32" else None
    if counted:
        # Weights are read from memory once each run, unless a cache might hold them.
        flops, weights = counted
        for threads in (1, 2):
            roof = flops / args.limits[0] / 1e6 / threads
            if weights > 32 << 20:
                roof = max(roof, weights / args.limits[1] / 1e6 / threads)
            row["roof_ms_%dT" % threads] = roof
            row["of_roof_%dT" % threads] = roof / row["ge_%dT" % threads]["median"]
    return [row, half] if "ge_bf16" in oms else [row]


def geomean(values):
    values = [v for v in values if v > 0 and math.isfinite(v)]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def best_peer(row, what):
    return min([row[s + what] for s in ("ort", "ov") if row[s + what] == row[s + what]], default=float("nan"))


def plot(rows, path):
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    figure, axes = plt.subplots(figsize=(10, 0.35 * len(rows) + 1.5))
    y = np.arange(len(rows))
    for k, threads in enumerate((1, 2)):
        axes.barh(y + 0.2 - 0.4 * k, [r["ratio_median_%dT" % threads] for r in rows], 0.38, label="%d thread%s" % (threads, "s" * k))
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks(y, ["%s %s" % (r["case"], r["kind"]) for r in rows])
    axes.invert_yaxis()
    axes.set_xlabel("time of the faster peer / ours (above 1: we are faster)")
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def print_row(row):
    bf16 = row["kind"] == "bf16"
    def side(name, threads):
        r = row.get("%s_%dT" % (name, threads))
        return "%8.3f" % r["median"] if r else "       -"
    ours, other = ("ge_bf16", "ov_bf16") if bf16 else ("ge", "ov")
    text = "%-20s %s" % (row["case"], row["kind"])
    for t in (1, 2):
        text += "  %dT ge %s ort %s ov %s ratio %.2f (min %.2f)" % (
            t, side(ours, t), side("ort", t), side(other, t), row["ratio_median_%dT" % t], row["ratio_min_%dT" % t])
        if bf16:
            text += " to ort f32 %.2f" % row["ratio_ort_%dT" % t]
        if "of_roof_%dT" % t in row:
            text += " roof %.0f %%" % (100 * row["of_roof_%dT" % t])
    text += "  scaling %.2f" % (row["%s_1T" % ours]["min"] / row["%s_2T" % ours]["min"])
    text += "  start ge %.0f ort %.0f ov %.0f ms  memory ge %.0f ort %.0f ov %.0f MB" % (
        *(row[s + "_start_s"] * 1e3 for s in ("ge", "ort", "ov")), *(row[s + "_rss_mb"] for s in ("ge", "ort", "ov")))
    if row["error"] > 1:
        text += "  WRONG: %.3g times the allowed error" % row["error"]
    print(text + ("" if row["quiet"] else "  (machine not quiet)"), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", required=True)
    parser.add_argument("--build", default=os.path.join(models.ROOT, "build", "release"))
    parser.add_argument("--all", action="store_true", help="every case, not the subset")
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=2, help="of each comparison")
    parser.add_argument("--quiet", type=float, default=30, help="seconds to wait for a quiet machine")
    parser.add_argument("--memory", action="store_true", help="peak memory alone, of all cases, against ONNX Runtime")
    parser.add_argument("--no-bf16", action="store_true", help="without the bf16 rows")
    parser.add_argument("--json", help="write the rows to this file")
    parser.add_argument("--merge", nargs="*", default=[], help="JSON files of other runs whose rows join the table")
    parser.add_argument("--plot", help="write a picture of the ratios to this file")
    args = parser.parse_args()
    for folder in ("om", "cache"):
        os.makedirs(os.path.join(args.work, folder), exist_ok=True)
    lib = ge_runtime.library(args.build)
    cases = models.make_cases(args.work)
    wanted = models.chosen(args.only, cases) if args.only else [] if args.merge else list(cases) if args.all else SUBSET
    if args.memory:
        return memory_only(args, cases, wanted if args.only else list(cases))
    rows = [r for file in args.merge for r in json.load(open(file))]
    for row in rows:
        print_row(row)
    args.limits = None
    for case in wanted:
        if case not in cases:
            continue
        path, feeds = cases[case]
        if args.limits is None:
            shapes = ";".join("%s:%s" % (n, ",".join(map(str, a.shape))) for n, a in feeds.items())
            om, _ = models.compile_model(args.build, path, os.path.join(args.work, "om"), 2, "", shapes, os.path.join(args.work, "cache"))
            args.limits = limits(args, om)
            if args.limits:
                print("limits of one thread: %.0f GFLOP/s f32, %.1f GB/s" % args.limits, flush=True)
        for row in bench_case(lib, args, case, path, feeds, os.path.join(args.work, "cases", case)):
            rows.append(row)
            print_row(row)
    if args.json:
        with open(args.json, "w") as f:
            json.dump(rows, f, indent=1)
    if args.plot:
        plot(rows, args.plot)
    print("start to first result, faster peer / ge: %.2f   peak memory, smaller peer / ge: %.2f" % (
        geomean([best_peer(r, "_start_s") / r["ge_start_s"] for r in rows]), geomean([best_peer(r, "_rss_mb") / r["ge_rss_mb"] for r in rows])))
    mean = lambda kind, t, key="median": geomean([r["ratio_%s_%dT" % (key, t)] for r in rows if r["kind"] == kind])
    print("bf16 against ONNX Runtime in f32: 1T=%.2f 2T=%.2f" % (mean("bf16", 1, "ort"), mean("bf16", 2, "ort")))
    wrong = [r["case"] for r in rows if r["error"] > 1]
    if wrong:
        print("WRONG outputs: " + ", ".join(wrong))
    print("geomean fp32 1T=%.2f 2T=%.2f bf16 1T=%.2f 2T=%.2f int8 1T=%.2f 2T=%.2f" % (
        *(mean(kind, t) for kind in ("fp32", "bf16", "int8") for t in (1, 2)),))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
