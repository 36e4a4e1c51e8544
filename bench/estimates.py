"""How the cost model's estimates compare with measured times, task by task, on one thread.  See bench/estimates.

A line for each model, at the sizes of its case; the last line is over all of them.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile

import numpy as np

import models


def measure(args, case, path, feeds):
    """What `ge bench` says of the estimates of one model; None if it has no fixed sizes."""
    shapes = ";".join("%s:%s" % (n, ",".join(map(str, np.shape(a)))) for n, a in feeds.items())
    om, _ = models.compile_model(args.build, path, os.path.join(args.work, "om"), 2, "", shapes,
                                 os.path.join(args.work, "cache"))
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        subprocess.run([os.path.join(args.build, "bin", "ge"), "bench", om, "--threads", "1", "--seconds", "1", "--per-kernel", "1",
                        "--json", out.name], check=True, stdout=subprocess.DEVNULL)
        with open(out.name) as f:
            return json.load(f).get("estimates")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--build", default=os.path.join(models.ROOT, "build", "release"))
    parser.add_argument("--only", default="", help="cases, comma-separated")
    args = parser.parse_args()
    os.makedirs(os.path.join(args.work, "om"), exist_ok=True)
    cases = models.make_cases(args.work)
    logs = tasks = 0
    for case in models.chosen(args.only, cases):
        path, feeds = cases[case]
        e = measure(args, case, path, feeds)
        if e is None:
            print("%-22s no fixed sizes" % case, flush=True)
            continue
        print("%-22s %3d tasks  estimated %8.3f ms  measured %8.3f ms (x %.2f)  per task: geomean %.2f, 80 %% within %.2f to %.2f" % (
            case, e["tasks"], e["estimated_ms"], e["measured_ms"], e["measured_ms"] / e["estimated_ms"], e["ratio"],
            e["ratio_10"], e["ratio_90"]), flush=True)
        logs += math.log(e["ratio"]) * e["tasks"]
        tasks += e["tasks"]
    if not tasks:
        sys.exit("no case with fixed sizes")
    print("measured / estimate of %d tasks: geomean %.2f" % (tasks, math.exp(logs / tasks)))


main()
