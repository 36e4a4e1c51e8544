"""The models of bench/models without tuning against the same models tuned.  See bench/tune.

Each is compiled, tuned by atc --tune (register tiles by measurement, one thread, kernel behind kernel) and compiled
again with the winners; then both run in turns at one thread. The ratio is tuned / untuned: 0.95 means that tuning
gains 5 %. The last lines are the geometric means for f32 and bf16, with their bars.
"""
import argparse
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import ge_runtime  # noqa: E402
import models  # noqa: E402
import peers  # noqa: E402

CASES = ["resnet50", "mobilenetv2", "efficientnet_b0", "yolov8n", "bert_base", "minilm_dyn_s17", "ppocrv4_rec_320"]
BARS = {"f32": 0.95, "bf16": 0.85}


def compiled(args, path, feeds, out, precision, extra):
    shapes = ";".join("%s:%s" % (n, ",".join(map(str, a.shape))) for n, a in feeds.items())
    command = [os.path.join(args.build, "bin", "atc"), "--model=" + path, "--framework=5", "--output=" + out, "--input_shape=" + shapes,
               "--cache_dir=" + os.path.join(args.work, "cache"), *extra]
    if precision == "bf16":
        command.append("--precision_mode=allow_mix_precision_bf16")
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError("atc: " + (done.stderr.strip().splitlines() or [done.stdout])[0][:300])


def race(lib, feeds, oms, seconds):
    """Medians in ms of the two models, in turns."""
    loaded = [ge_runtime.Model(lib, om, 1) for om in oms]
    for model in loaded:
        model.bind(feeds)
        model.execute()
    peers.wait_until_quiet(20)
    first, second, _, _ = models.interleave(loaded[0].execute, loaded[1].execute, seconds)
    for model in loaded:
        model.close()
    return first, second


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", required=True)
    parser.add_argument("--build", default=os.path.join(models.ROOT, "build", "release"))
    parser.add_argument("--only", default="")
    parser.add_argument("--precision", default="f32,bf16")
    parser.add_argument("--seconds", type=float, default=3, help="of each comparison")
    args = parser.parse_args()
    os.makedirs(os.path.join(args.work, "cache"), exist_ok=True)
    lib, cases = ge_runtime.library(args.build), models.make_cases(args.work)
    wanted = models.chosen(args.only, cases) if args.only else CASES
    ratios = {p: [] for p in args.precision.split(",")}
    for precision, got in ratios.items():
        for case in (c for c in wanted if c in cases):
            path, feeds = cases[case]
            with tempfile.TemporaryDirectory() as folder:
                plain, tuned = os.path.join(folder, "plain.om"), os.path.join(folder, "tuned.om")
                compiled(args, path, feeds, plain, precision, [])
                compiled(args, path, feeds, tuned, precision, ["--tune", "--op_bank_path=" + folder])
                untuned_ms, tuned_ms = race(lib, feeds, (plain, tuned), args.seconds)
            got.append(tuned_ms / untuned_ms)
            print("%-20s %-4s untuned %8.3f ms  tuned %8.3f ms  ratio %.3f" % (case, precision, untuned_ms, tuned_ms, got[-1]), flush=True)
    missed = 0
    for precision, got in ratios.items():
        mean = peers.geomean(got)
        missed += not mean >= BARS[precision]
        print("tuned / untuned %s, geometric mean of %d: %.3f  bar %.2f: %s" % (
            precision, len(got), mean, BARS[precision], "ok" if mean >= BARS[precision] else "MISSED"))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
