"""The arena of every model: planned, measured, its lower bound, and what it would be without aliases.  See bench/arena.

One line for each case of bench/models. "bound" is the largest sum of what is alive at one task, with the plan's aliases;
"apart" what the bound would be if each value that the plan stores had bytes of its own, "values" the same for each value of
the graph, so that nothing is fused either. Models with open dims are placed by the runtime for the case's shape. What they
would be apart is not known beforehand: those that concatenate channels have a second line, compiled for that shape. The last
lines are those models, with what the first line is of "apart" too. The exit code is 1 if one compiled for its shape has an arena
above 0.8 of "apart", if an arena is above its bound, or if the runtime takes other bytes than were planned.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import models  # noqa: E402


LEAST_SHARE = 0.8


def said(build, om, *options):
    return subprocess.run([os.path.join(build, "bin", "ge"), "om", om, *options], capture_output=True, text=True, check=True).stdout


def looked_at(build, om, feeds, is_dynamic):
    """(planned, bound, apart, values, measured) in bytes; None where it is not known."""
    shapes = [a for n, v in feeds.items() if is_dynamic for a in ("--shape", "%s:%s" % (n, ",".join(map(str, v.shape))))]
    text = said(build, om, *shapes)
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
        subprocess.run([os.path.join(build, "bin", "ge"), "bench", om, "--rounds", "1", "--warmup", "1", "--seconds", "0.001", "--json", out, *inputs],
                       capture_output=True, check=True)
        with open(out) as f:
            measured = round(json.load(f)["arena_mb"] * 1e6)
    return planned, bound, apart, values, measured


def concatenations(build, om):
    """Names of the values that join channels of pictures; strips of rows, which the planner makes, are none."""
    text = said(build, om, "--ir")
    return {m.group(1) for m in re.finditer(r"%(\S+): f32\[(?:[^]]*,){3}[^],]*\]\S*.* = Concat\(.*axis=1\b.*", text) if "strip=1" not in m.group(0)}


class Table:
    def __init__(self, args, out):
        self.args, self.out, self.wrong, self.verdicts, self.open = args, out, 0, [], {}  # open: planned with open dims

    def line(self, case, path, feeds, fixed, is_one):
        shape = ";".join("%s:%s" % (n, ",".join(map(str, v.shape))) for n, v in feeds.items()) if fixed else ""
        om, _ = models.compile_model(self.args.build, path, self.out, 2, "", shape, os.path.join(self.args.work, "cache"), tag=case if fixed else "")
        planned, bound, apart, values, measured = looked_at(self.args.build, om, feeds, not fixed)
        good = planned == bound == measured
        self.wrong += not good
        share = ", ".join("%.2f" % (planned / v) if v else "-" for v in (apart, values))
        joined = concatenations(self.args.build, om)
        print("%-22s %12s %12s %12s %12s %12s  %s%s%s" % (
            case if is_one else "  for this shape", planned, measured, bound, apart or "-", values or "-", share,
            "  %d Concat" % len(joined) if joined else "", "" if good else "  DIFFERS"), flush=True)
        if joined and not apart:
            self.open[case] = planned
        if joined and apart:
            few = planned <= LEAST_SHARE * apart
            self.wrong += not few
            with_open = ", %.2f of apart with open dims" % (self.open[case] / apart) if case in self.open else ""
            self.verdicts.append("%-22s %.2f of apart, %.2f of values%s%s" % (
                case, planned / apart, planned / values, with_open, "" if few else ": TOO MUCH"))
        return bool(joined) and not apart


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--build", default=os.path.join(models.ROOT, "build", "release"))
    parser.add_argument("--only", default="", help="cases, comma-separated")
    args = parser.parse_args()
    out = os.path.join(args.work, "om")
    os.makedirs(out, exist_ok=True)
    cases = models.make_cases(args.work)
    wanted = models.chosen(args.only, sorted(cases))
    table = Table(args, out)
    print("%-22s %12s %12s %12s %12s %12s  of apart, of values" % ("case", "planned", "measured", "bound", "apart", "values"))
    for case in wanted:
        path, feeds = cases[case]
        if table.line(case, path, feeds, case in models.FIXED, True):
            table.line(case, path, feeds, True, False)
    print("%d cases above their bound, or measured otherwise than planned, or with concatenations above %.1f of apart" % (table.wrong, LEAST_SHARE))
    print("models that concatenate channels:")
    for verdict in table.verdicts:
        print("  " + verdict)
    return 1 if table.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
