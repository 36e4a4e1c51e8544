"""Models of one operator each: GE against ONNX Runtime, in one process, in turns.  See bench/ops.

The ratio is the peer's median time over ours: above 1 we are faster. Outputs must agree: within 1e-3 of (their own magnitude +
the output's root mean square), NaN where the peer has NaN, whole numbers equal (rounded bytes within 1).
"""
import argparse
import json
import math
import os
import subprocess
import sys
import time

import numpy as np
import onnx
import onnxruntime as ort

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import ge_runtime  # noqa: E402
import models  # noqa: E402
import op_cases  # noqa: E402
import op_more  # noqa: E402, F401

# One of each kind, for --check.
CHECKED = ("QAtt ConvTG ConvTdil ConvTdw MM_n1 MM_n3 MM_f64 Gemm_f64 ScatterNDadd ScatterElAdd Resize_linear_half_pixel Resize_near_odd "
           "u_Atan u_Asinh b_Pow b_Mod c_Equal DivI64 ModI32 CastH CastFromH r_ReduceMax_all r_ReduceMax_last CumSum_0 Softmax_s Hardmax "
           "MaxPool AvgPool MaxPool5 MaxPool3d Tr_nchw_nhwc Tr_nhwc_nchw Tr_u8 Slice PadRefl Tile ScatterEl TopK TopKbig NonZero NMS "
           "GridSample RoiAlign").split()
BELOW = 0.8  # rows under it are counted in the last line
SECONDS, LEAST, MOST = 0.25, 5, 300  # of the turns of one case


def compiled(build, folder, name, model):
    path = os.path.join(folder, name + ".onnx")
    onnx.save(model, path)
    done = subprocess.run([os.path.join(build, "bin", "atc"), "--framework=5", "--soc_version=host", "--model=" + path,
                           "--output=" + path[:-5]], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError((done.stdout + done.stderr).strip().splitlines()[-1])
    return path, path[:-5] + ".om"


def difference(ours, theirs):
    """What is wrong with our output; empty: nothing."""
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return "%s%s instead of %s%s" % (ours.dtype, list(ours.shape), theirs.dtype, list(theirs.shape))
    if theirs.dtype.kind != "f":
        far = np.abs(ours.astype(np.int64) - theirs.astype(np.int64)) > (1 if theirs.dtype == np.uint8 else 0)
        return "%d of %d differ" % (far.sum(), far.size) if far.any() else ""
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    finite = np.isfinite(b)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    size = math.sqrt(np.mean(np.square(b[finite]))) if finite.any() else 0
    with np.errstate(invalid="ignore"):
        same |= np.abs(a - b) <= 1e-3 * (np.abs(b) + size)
    return "" if same.all() else "%d of %d differ" % ((~same).sum(), same.size)


def measure(lib, onnx_path, om, makers, threads, timed):
    """(their median, our median, what is wrong): microseconds."""
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 4
    session = ort.InferenceSession(onnx_path, options, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(1)
    feeds = {name: make(rng) for name, make in makers.items()}
    names = [o.name for o in session.get_outputs()]
    model = ge_runtime.Model(lib, om, threads)
    ours, theirs = model.run(feeds), session.run(names, feeds)
    wrong = "; ".join(filter(None, (difference(a, b) for a, b in zip(ours, theirs))))
    if not timed:
        model.close()
        return 0, 0, wrong
    binding = session.io_binding()
    for name, value in feeds.items():
        binding.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(value))
    for name in names:
        binding.bind_output(name)
    peer, own, begin = [], [], time.perf_counter()
    while len(own) < LEAST or (time.perf_counter() - begin < SECONDS and len(own) < MOST):
        t = time.perf_counter()
        session.run_with_iobinding(binding)
        u = time.perf_counter()
        model.execute()
        own.append(time.perf_counter() - u)
        peer.append(u - t)
    model.close()
    return np.median(peer) * 1e6, np.median(own) * 1e6, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(os.path.dirname(HERE), "build", "release"))
    parser.add_argument("--work", required=True)
    parser.add_argument("--only", help="names, comma-separated; a name may end with *")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--check", action="store_true", help="outputs of some cases only, no times")
    parser.add_argument("--json", help="write the rows to this file")
    args = parser.parse_args()
    folder = os.path.join(args.work, "ops")
    os.makedirs(folder, exist_ok=True)
    lib = ge_runtime.library(args.build)
    names = models.chosen(args.only or (",".join(CHECKED) if args.check else ""), op_cases.CASES)
    rows, failed = [], 0
    for name in names:
        model, makers = op_cases.CASES[name]
        try:
            peer, own, wrong = measure(lib, *compiled(args.build, folder, name, model), makers, args.threads, not args.check)
        except RuntimeError as error:
            peer, own, wrong = 0, 0, str(error)
        failed += bool(wrong)
        rows.append((peer / own if own else math.nan, name, peer, own, wrong))
        if wrong:
            print("%s: %s" % (name, wrong), flush=True)
    if args.json:
        with open(args.json, "w") as f:
            json.dump([dict(zip(("ratio", "case", "peer_us", "own_us", "wrong"), row)) for row in rows], f, indent=1)
    if args.check:
        print("%d passed, %d failed" % (len(rows) - failed, failed))
        return failed > 0
    for ratio, name, peer, own, wrong in sorted(rows):
        print("%7.2f  %-28s peer %9.1f us  GE %9.1f us  %s" % (ratio, name, peer, own, wrong))
    good = [row[0] for row in rows if row[0] > 0]
    mean = math.exp(sum(map(math.log, good)) / len(good)) if good else math.nan
    print("%d cases, %d wrong, geometric mean %.2f, %d below %.1f" % (len(rows), failed, mean, sum(r < BELOW for r in good), BELOW))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
