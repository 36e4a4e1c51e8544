"""What the tests of atc share: running it on small models, its tables, the codes that were provoked."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import make_models as mm  # noqa: E402

BUILD, MODELS = sys.argv[1:3]
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ATC = os.path.join(os.path.abspath(BUILD), "bin", "atc")
GE = os.path.join(os.path.abspath(BUILD), "bin", "ge")


def help_markdown():
    return subprocess.run([ATC, "--help=markdown"], capture_output=True, text=True).stdout


def rows(text):
    """{option: (values, treatment)} and [code] of the tables."""
    options, codes = {}, []
    for line in text.splitlines():
        cells = [c.strip().replace("\\|", "|") for c in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 4 and re.match(r"--\w", cells[0]):
            options[cells[0][2:]] = (cells[1], cells[2])
        elif len(cells) == 3 and re.fullmatch(r"E\d{5}", cells[0]):
            codes.append(cells[0])
    return options, codes


OPTIONS, CODES = rows(help_markdown())


def picture_model(dims, dtype=mm.F32):
    """y = Relu(x) of a picture."""
    return mm.model(mm.graph("p", [mm.node("Relu", ["x"], ["y"])], [mm.value_info("x", dtype, dims)],
                             [mm.value_info("y", dtype, dims)]))


class Case(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = self.temporary.name
        self.out = os.path.join(self.folder, "m")

    def tearDown(self):
        self.temporary.cleanup()

    def path(self, name, data=None):
        path = os.path.join(self.folder, name)
        if data is not None:
            with open(path, "wb") as f:
                f.write(data.encode() if isinstance(data, str) else data)
        return path

    def raw(self, *args, program=ATC, **how):
        done = subprocess.run([program, *args], capture_output=True, text=True, timeout=300, cwd=self.folder, **how)
        return done.returncode, done.stdout, done.stderr

    def as_nobody(self, *args):
        """raw() by a user whom rights stop: root opens everything. A copy of atc, where that user can reach it."""
        if os.getuid() != 0:
            return self.raw(*args)
        os.chmod(self.folder, 0o755)
        program = self.path("atc")
        shutil.copy(ATC, program)
        return self.raw(*args, program=program, user=65534, group=65534, extra_groups=[])

    def atc(self, *args, model=None):
        model = model or os.path.join(os.path.abspath(MODELS), "conv.onnx")
        return self.raw("--model=" + model, "--framework=5", "--output=" + self.out, "--interpret", *args)

    def works(self, *args, model=None):
        status, out, err = self.atc(*args, model=model)
        self.assertEqual(status, 0, err)
        return out

    def refused(self, result, code):
        status, out, err = result
        self.assertNotEqual(status, 0)
        self.assertTrue(err.startswith(code + ":"), err)
        self.assertRegex(err, r"(?s)^E\d{5}: \S.*Possible Cause: \S.*Solution: \S")
        self.assertIn("ATC run failed", out)
        SEEN.add(code)
        return err

    def description(self):
        out = subprocess.run([GE, "om", self.out + ".om", "--description"], capture_output=True, text=True).stdout
        return json.loads(out)

    def run_model(self, *inputs, shapes=()):
        folder = self.path("out")
        args = [GE, "run", self.out + ".om", "--output", folder]
        for i in inputs:
            args += ["--input", i]
        for s in shapes:
            args += ["--shape", s]
        done = subprocess.run(args, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout


SEEN = set()
