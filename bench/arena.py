"""The arena of every model: planned, measured, its lower bound, and what it would be without aliases.  See bench/arena.

One line for each case of bench/models. "bound" is the largest sum of what is alive at one task, with the plan's aliases;
"apart" what the bound would be if no two values shared bytes, "values" the same with nothing fused either. Models with
open dims are placed by the runtime for the case's shape. The exit code is 1 if an arena is above its bound, or the
runtime takes other bytes than were planned.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import models  # noqa: E402


def looked_at(build, om, feeds, is_dynamic):
    """(planned, bound, apart, values, measured) in bytes; None where it is not known."""
    shapes = [a for n, v in feeds.items() if is_dynamic for a in ("--shape", "%s:%s" % (n, ",".join(map(str, v.shape))))]
    ge = os.path.join(build, "bin", "ge")
    text = subprocess.run([ge, "om", om, *shapes], capture_output=True, text=True, check=True).stdout
    found = [re.search(p, text) for p in (r"(?:arena|for this one) (\d+) bytes", r"lower bound (\d+) bytes",
                                          r"(\d+) bytes without aliases \(", r"(\d+) bytes without aliases and")]
    planned, bound, apart, values = [int(m.group(1)) if m else None for m in found]
    with tempfile.TemporaryDirectory() as folder:
        inputs = []
        for i, (name, value) in enumerate(feeds.items()):
            file = os.path.join(folder, "%d.npy" % i)
            np.save(file, value)
            inputs += ["--input", name + "=" + file]
        out = os.path.join(folder, "out.json")
        subprocess.run([ge, "bench", om, "--rounds", "1", "--warmup", "1", "--seconds", "0.001", "--json", out, *inputs],
                       capture_output=True, check=True)
        with open(out) as f:
            measured = round(json.load(f)["arena_mb"] * 1e6)
    return planned, bound, apart, values, measured


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--build", default=os.path.join(models.ROOT, "build", "release"))
    parser.add_argument("--only", default="", help="cases, comma-separated")
    args = parser.parse_args()
    out = os.path.join(args.work, "om")
    os.makedirs(out, exist_ok=True)
    wrong = 0
    print("%-22s %12s %12s %12s %12s %12s  of apart, of values" % ("case", "planned", "measured", "bound", "apart", "values"))
    for case, (path, feeds) in sorted(models.make_cases(args.work).items()):
        if args.only and case not in args.only.split(","):
            continue
        fixed = ";".join("%s:%s" % (n, ",".join(map(str, v.shape))) for n, v in feeds.items()) if case in models.FIXED else ""
        om, _ = models.compile_model(args.build, path, out, 2, "", fixed, os.path.join(args.work, "cache"))
        planned, bound, apart, values, measured = looked_at(args.build, om, feeds, not fixed)
        good = planned == bound == measured
        wrong += not good
        share = ", ".join("%.2f" % (planned / v) if v else "-" for v in (apart, values))
        concats = sum(n.op_type == "Concat" for n in onnx.load(path, load_external_data=False).graph.node)
        print("%-22s %12s %12s %12s %12s %12s  %s%s%s" % (case, planned, measured, bound, apart or "-", values or "-", share,
                                                       "  %d Concat" % concats if concats else "", "" if good else "  DIFFERS"), flush=True)
    print("%d cases above their bound, or measured otherwise than planned" % wrong)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
