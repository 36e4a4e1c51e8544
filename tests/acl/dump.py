"""Dumps of models: run by run_clients in its folder, with the toolkit's environment and the built clients.

  python3 dump.py WORK

The same values must come out of a model whose tensors lie in blocked layouts with halos as out of one that was compiled
without any optimisation; the files must have the documented names, folders and bytes.
"""
import glob
import json
import os
import re
import shutil
import struct
import subprocess
import sys

FAULTS = []


def check(good, what):
    if not good:
        FAULTS.append(what)
        print("FAILED: " + what)


def read_npy(path):
    with open(path, "rb") as f:
        data = f.read()
    size = struct.unpack("<H", data[8:10])[0]
    header = data[10:10 + size].decode()
    dims = tuple(int(d) for d in re.search(r"'shape': \(([^)]*)\)", header).group(1).split(",") if d.strip())
    kind = {"<f4": "f", "|u1": "B"}[re.search(r"'descr': '([^']*)'", header).group(1)]
    body = data[10 + size:]
    return dims, struct.unpack("<%d%s" % (len(body) // struct.calcsize(kind), kind), body)


def dump(om, folder, **options):
    """Runs the client with this configuration; the files of the dump."""
    shutil.rmtree(folder, ignore_errors=True)
    config = {"dump": {"dump_path": folder, "dump_list": [{"model_name": om}], **options}}
    with open("dump.json", "w") as f:
        json.dump(config, f)
    done = subprocess.run(["clients/dump", om + ".om", "dump.json", "x1.bin"], capture_output=True, text=True)
    check(done.returncode == 0, "the client with " + json.dumps(config) + ": " + done.stderr)
    return sorted(p for p in glob.glob(folder + "/**", recursive=True) if os.path.isfile(p))


def values(folder):
    """{name of a value: (dims, elements)} of the outputs, by `ge dump`."""
    shutil.rmtree("npy", ignore_errors=True)
    done = subprocess.run(["ge", "dump", folder, "--output", "npy"], capture_output=True, text=True)
    check(done.returncode == 0, "ge dump: " + done.stderr)
    found = {}
    for line in done.stdout.splitlines():
        path, rest = line.split(": ", 1)
        name = rest.rsplit(" ", 1)[1]
        if ".output." in path:
            check(name not in found, "%s is dumped twice" % name)
            found[name] = read_npy(path)
    return found


def main():
    os.chdir(sys.argv[1])
    for name, extra in (("plain", ["--opt_level=0"]), ("tuned", [])):
        subprocess.run(["atc", "--framework=5", "--model=small.onnx", "--output=" + name, "--soc_version=Ascend310"] + extra,
                       check=True, stdout=subprocess.DEVNULL)
    files = dump("tuned", "dumps")
    shape = re.compile(r"dumps/\d{14}/0/tuned/\d+/0/\w+\.\w+\.\d+\.\d+\.\d{16}$")
    check(files and all(shape.match(f) for f in files), "names of the files: " + " ".join(files[:3]))
    tuned = values("dumps")
    dump("plain", "dumps")
    plain = values("dumps")
    description = json.loads(subprocess.run(["ge", "om", "tuned.om", "--description"], capture_output=True, text=True).stdout)
    check(any(s["order"] for s in description["storage"]), "the tuned model has no blocked tensors: the test shows nothing")
    common = sorted(set(tuned) & set(plain))
    check(len(common) >= 4 and "y" in common, "values of both models: " + " ".join(common))
    for name in common:
        (dims, got), (same, want) = tuned[name], plain[name]
        worst = max((abs(a - b) for a, b in zip(got, want)), default=0)
        check(dims == same and len(got) == len(want) and worst < 1e-4, "%s%s differs by %g" % (name, dims, worst))
    with open("y1.bin", "rb") as f:
        data = f.read()
    check(max(abs(a - b) for a, b in zip(tuned["y"][1], struct.unpack("<10f", data))) < 1e-5, "y is not the peer's")
    # Inputs too; one layer by the name that the model has, though it is fused; statistics; steps.
    files = dump("tuned", "dumps", dump_mode="all")
    subprocess.run(["ge", "dump", "dumps"], check=True, stdout=subprocess.DEVNULL)  # beside the files
    inputs = [p for p in glob.glob("dumps/**/*.input.0.npy", recursive=True)]
    with open("x1.bin", "rb") as f:
        x = f.read()
    check(any(struct.pack("<%df" % len(v), *v) == x for v in (read_npy(p)[1] for p in inputs)), "the model's input is not there")
    layered = dump("tuned", "dumps", dump_list=[{"model_name": "tuned", "layer": ["Relu2"]}])
    check(0 < len(layered) < len(files), "one layer gave %d of %d files" % (len(layered), len(files)))
    done = subprocess.run(["clients/dump", "tuned.om", "dump.json", "x1.bin"], capture_output=True, text=True,
                          env={**os.environ, "ASCEND_SLOG_PRINT_TO_STDOUT": "1"})
    check("WARNING" not in done.stdout, "a warning though the layer is there: " + done.stdout)
    check(dump("tuned", "dumps", dump_list=[{"model_name": "tuned", "layer": ["Relu2", "Absent"]}]) != [], "a layer that is there")
    done = subprocess.run(["clients/dump", "tuned.om", "dump.json", "x1.bin"], capture_output=True, text=True,
                          env={**os.environ, "ASCEND_SLOG_PRINT_TO_STDOUT": "1"})
    check("model tuned has no node Absent" in done.stdout, "no warning of a layer that is not there: " + done.stdout)
    statistics = dump("tuned", "dumps", dump_data="stats")
    with open([f for f in statistics if "Softmax" in f][0]) as f:
        lines = f.read().splitlines()
    head, row = lines[0].split(","), lines[1].split(",")
    record = dict(zip(head, row))
    check(record["Shape"] == "1x10" and abs(float(record["Max"]) - max(tuned["y"][1])) < 1e-6 and record["Nan"] == "0",
          "statistics: " + lines[1])
    check(dump("tuned", "dumps", dump_step="1|3-5") == [], "a step that was not asked for")
    check(dump("tuned", "dumps", dump_list=[{"model_name": "another"}]) == [], "a model that was not asked for")
    every = dump("tuned", "dumps", dump_list=[{}])
    check(len(every) == len(files), "a list with an entry without a name means all models")
    with open(every[0], "rb") as f:
        whole = f.read()
    for length in list(range(0, 64, 3)) + [len(whole) - 1]:
        with open("cut", "wb") as f:
            f.write(whole[:length])
        cut = subprocess.run(["ge", "dump", "cut", "--output", "npy"], capture_output=True, text=True)
        check(cut.returncode == 1 and "not a dump file" in cut.stderr, "a dump file cut at %d: %s" % (length, cut.stderr))
    broken = files and subprocess.run(["ge", "dump", "tuned.om"], capture_output=True, text=True)
    check(broken.returncode == 1 and "not a dump file" in broken.stderr, "ge dump of another file: " + broken.stderr)
    # What several kernels write is dumped once, when it is whole.
    whole = []
    for level in ("0", "2"):
        subprocess.run(["atc", "--framework=5", "--model=parts.onnx", "--output=parts", "--soc_version=Ascend310", "--opt_level=" + level],
                       check=True, stdout=subprocess.DEVNULL)
        dump("parts", "dumps")
        whole.append(values("dumps")["y"])
    check(whole[0][0] == whole[1][0] and max(abs(a - b) for a, b in zip(whole[0][1], whole[1][1])) < 1e-5, "y of several kernels")
    plan = subprocess.run(["ge", "om", "parts.om", "--plan"], capture_output=True, text=True).stdout
    check(plan.count("name=\"Concat.") >= 2, "the concatenation has one kernel: the test shows nothing")
    print("dump: %d values of two models compared, %d files" % (len(common), len(files)))
    print("dump: " + ("FAILED" if FAULTS else "passed"))
    return 1 if FAULTS else 0


if __name__ == "__main__":
    sys.exit(main())
