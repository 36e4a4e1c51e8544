"""Import, optimisation and planning of long chains: times must grow near-linearly.

  python3 bench/chain.py BUILD_FOLDER [LENGTH ...]
"""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tests"))
import make_models  # noqa: E402
from built import built  # noqa: E402


def main(build, lengths):
    with tempfile.TemporaryDirectory() as folder:
        for n in lengths:
            path = os.path.join(folder, "chain%d.onnx" % n)
            with open(path, "wb") as f:
                f.write(make_models.chain(n))
            done = subprocess.run([os.path.join(build, "bin", "atc"), "--model=" + path, "--framework=5", "--output=" + path,
                                   "--log=info", "--cache_dir=" + folder], capture_output=True, text=True)
            if done.returncode:
                sys.exit(done.stderr)
            times = [line for line in done.stdout.splitlines() if line.startswith("import ")]
            print("%6d nodes: %s" % (n, times[-1]), flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["--help"]:
        print(__doc__)
        sys.exit(0)
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    main(built(sys.argv[1]), [int(n) for n in sys.argv[2:]] or [5000, 10000, 20000])
