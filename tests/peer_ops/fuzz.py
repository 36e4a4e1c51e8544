"""Random graphs against ONNX Runtime.

  fuzz.py FOLDER [--count 1000] [--seed 1] [--show SEED]   writes the cases; tests/peer_ops/fuzz runs them

A case is a graph of operators of the default domain with random attributes and types, on shapes with 0 and 1
in them and values with NaN, infinities and signed zeros; dims that are symbols get data sets of other
sizes, 0 and 1 among them. Its name holds its seed: the same seed gives the same case. Each node is run by
the peer as it is drawn: what the peer refuses is not written, and counted by operator.
The first operator of a graph goes round through all kinds (fuzz_ops.py, fuzz_control.py, fuzz_mixed.py), the others are drawn.

What rounds or compares gets only exact values: those where another order of additions gives the same bits.
"""

import argparse
import collections
import json
import os
import pathlib
import sys

import onnx

from draw import Draw
from fuzz_control import KINDS as CONTROL
from fuzz_mixed import KINDS as MIXED
from fuzz_ops import KINDS as PLAIN


def make(seed, folder):
    """In a child: drawn and refused operators, and the fault."""
    draw = Draw(seed)
    draw.grow([*PLAIN, *CONTROL, *MIXED], seed)
    fault = draw.finish(folder / f"seed_{seed}") if draw.nodes else "nothing was drawn that the peer runs"
    return {"drawn": draw.drawn, "refused": draw.refused, "fault": fault}


def in_child(seed, folder):
    """Some graphs kill the peer."""
    read, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            text = json.dumps(make(seed, folder))
            os.write(write_end, text.encode())
            code = 0
        finally:
            os._exit(code)
    os.close(write_end)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        return {"fault": f"the peer dies of signal {os.WTERMSIG(status)}"}
    return json.loads(text) if text else {"fault": "the generator fails"}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quiet", action="store_true")
    args = parser.parse_args()
    drawn, refused, written = collections.Counter(), collections.Counter(), 0
    for seed in range(args.seed, args.seed + args.count):
        report = in_child(seed, args.folder)
        if report["fault"]:
            if not args.quiet:
                print(f"seed {seed}: {report['fault']}", flush=True)
            continue
        written += 1
        drawn.update(report["drawn"])
        refused.update(report["refused"])
    never = {s.name for s in onnx.defs.get_all_schemas() if s.domain == "" and not s.deprecated}
    never = sorted(n for n in never if drawn[n] <= refused[n])
    print("never run by the peer:", ", ".join(f"{n} (refused {refused[n]})" if refused[n] else n for n in never))
    print(f"seeds {args.seed} to {args.seed + args.count - 1}: {written} cases, {len(+(drawn - refused))} operators")


if __name__ == "__main__":
    main()
