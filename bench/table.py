"""The table of bench/table: what optimisation does to ResNet-50, on a modelled chip and on this CPU.

Modelled (ge simulate): time and dispatch share of the Ascend 910, and the on-chip hit rate of both (the last level
of memory on the chip keeps the buffers used last). Measured here: the CPU's latency, throughput, dispatch share
(what of a run is in no task) and peak memory of the process. Counted in the plan: launches, reads and writes.
"""
import argparse
import json
import os
import re
import subprocess
import sys

import onnx

HERE = os.path.dirname(os.path.abspath(__file__))
BATCHES = (1, 32)


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit("%s: %s" % (command[0], (done.stderr or done.stdout).strip()))
    return done.stdout


def with_batch(path, batch, out):
    model = onnx.load(path)
    for value in list(model.graph.input) + list(model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_value = batch
    del model.graph.value_info[:]
    onnx.save(model, out)
    return out


def compiled(args, model, batch, level, chip):
    """For the modelled chip without Winograd, whose larger weights pay on this CPU only, and without strips, which fit its caches."""
    out = os.path.join(args.work, "table_b%d_O%d_%s" % (batch, level, chip))
    run(os.path.join(args.build, "bin", "atc"), "--framework=5", "--model=" + model, "--output=" + out,
        "--opt_level=%d" % level, *([] if chip == "host" else ["--op_select_implmode=high_precision_for_all", "--disable_passes=strips"]))
    return out + ".om"


def simulated(args, om, chip):
    return json.loads(run(os.path.join(args.build, "bin", "ge"), "simulate", om, "--soc", chip, "--json"))


def bench(args, om, seconds):
    """Median of a run in us and the peak memory of a process in MB. A run without optimisation takes long: one is enough."""
    text = run(os.path.join(args.build, "bin", "ge"), "bench", om, "--warmup", "0", "--seconds", str(seconds))
    return float(re.search(r"median ([\d.]+) ms", text).group(1)) * 1e3, float(re.search(r"peak ([\d.]+) MB", text).group(1))


def dispatch_share(args, om):
    """What of a run is in no task."""
    page = om[:-3] + ".html"
    run(os.path.join(args.build, "bin", "ge"), "report", om, "-o", page)
    with open(page, encoding="utf-8") as f:
        data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', f.read(), re.S).group(1))
    os.remove(page)
    return max(0.0, 1 - sum(data["measured"]) / data["least_ns"])


def column(args, models, chip, level):
    oms = {b: compiled(args, models[b], b, level, chip) for b in BATCHES}
    sims = {b: simulated(args, oms[b], chip) for b in BATCHES}
    s = sims[1]
    if chip == "host":
        latency, peak = bench(args, oms[1], 3)
        total, _ = bench(args, oms[32], 1)
        dispatch = dispatch_share(args, oms[1])
    else:
        latency, total = s["total_us"], sims[32]["total_us"]
        dispatch = s["launch_us"] / latency
        peak = (s["arena_bytes"] + s["weight_bytes"]) * s["bytes_scale"] / 1e6
    return ["%d" % s["launched"], "%d, %.1f MB" % (s["reads"], s["read_bytes"] / 1e6),
            "%d, %.1f MB" % (s["writes"], s["written_bytes"] / 1e6), "%.1f %%, %.1f %%" % (100 * s["value_hit_rate"], 100 * s["hit_rate"]), "%.1f MB" % (s["memory_bytes"] / 1e6),
            "%.1f MB" % (peak), "%.1f %%" % (100 * dispatch), "%.3f ms" % (latency / 1e3), "%.1f images/s" % (32e6 / total)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", required=True)
    parser.add_argument("--build", default=os.path.join(os.path.dirname(HERE), "build", "release"))
    parser.add_argument("--model", help="a ResNet-50 (default: resnet50.onnx in the models folder of --work)")
    args = parser.parse_args()
    model = args.model or os.path.join(args.work, "models", "resnet50.onnx")
    if not os.path.exists(model):
        sys.exit("%s is not there: give a ResNet-50 with --model FILE" % model)
    models = {b: with_batch(model, b, os.path.join(args.work, "table_b%d.onnx" % b)) for b in BATCHES}
    rows = ["operators launched", "intermediate reads", "intermediate writes", "on-chip hit rate, values; with weights (modelled)",
            "main memory traffic (modelled)", "peak memory",
            "dispatch share", "latency, batch 1", "throughput, batch 32"]
    heads = [("Ascend910", 0), ("Ascend910", 2), ("host", 0), ("host", 2)]
    columns = [column(args, models, chip, level) for chip, level in heads]
    names = ["%s, %s" % ("Ascend 910 (modelled)" if chip != "host" else "this CPU", "on" if level else "off")
             for chip, level in heads]
    print("| ResNet-50, optimisation | " + " | ".join(names) + " |")
    print("|" + "---|" * (len(names) + 1))
    for i, row in enumerate(rows):
        print("| %s | %s |" % (row, " | ".join(c[i] for c in columns)))


if __name__ == "__main__":
    main()
