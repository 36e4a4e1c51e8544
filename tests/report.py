"""The report in a real browser, the trace of a real run, and the comparison of levels.

  python3 tests/report.py BUILD_FOLDER MODELS_FOLDER
Without a Chromium the browser's part is skipped, and says so.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import make_models as make  # noqa: E402

BUILD, MODELS = sys.argv[1:3]
BROWSER = next((b for b in ("chromium", "chromium-browser", "google-chrome") if shutil.which(b)), None)


def ge(*args, **environment):
    return subprocess.run([os.path.join(BUILD, "bin", "ge"), *args], capture_output=True, text=True, timeout=300,
                          env={**os.environ, **environment})


class Report(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.folder = self.scratch.name

    def tearDown(self):
        self.scratch.cleanup()

    def page(self, model, *args, folder=MODELS):
        path = os.path.join(self.folder, model + ".html")
        done = ge("report", os.path.join(folder, model + ".om"), "-o", path, *args)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(path, encoding="utf-8") as file:
            return path, file.read()

    def compiled_page(self, model, *options):
        """Of a model that is made and compiled here."""
        path = os.path.join(self.folder, model)
        with open(path + ".onnx", "wb") as file:
            file.write(getattr(make, model)())
        done = subprocess.run([os.path.join(BUILD, "bin", "atc"), "--model=" + path + ".onnx", "--framework=5", "--output=" + path, *options],
                              capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.page(model, folder=self.folder)

    def data(self, text):
        return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S).group(1))

    def test_page_holds_everything(self):
        for model in ("chain", "conv", "branch", "loop"):
            with self.subTest(model):
                _, text = self.page(model)
                self.assertNotRegex(text.replace("http://www.w3.org/2000/svg", ""), r"https?://")
                self.assertLess(len(text), 5e6)
                data = self.data(text)
                self.assertEqual(len(data["measured"]), len(data["tasks"]))
                self.assertEqual(len(data["description"]["tasks"]), len(data["tasks"]))
                self.assertGreater(data["median_ns"], 0)
                self.assertGreaterEqual(data["arena"]["height"], data["arena"]["bound"])
                ran = {s[0] for s in data["slices"]}
                self.assertTrue(ran)
                self.assertTrue(all(0 <= t < len(data["tasks"]) for t in ran))

    def test_page_without_running(self):
        data = self.data(self.page("conv", "--no-run")[1])
        self.assertNotIn("measured", data)
        self.assertTrue(data["tasks"])

    def test_spilled_values(self):
        data = self.data(self.compiled_page("ladder", "--opt_level=0", "--disable_passes=recompute", "--memory_limit=70000")[1])
        kinds = [t["kind"] for t in data["tasks"]]
        self.assertGreater(kinds.count("spill"), 2)
        self.assertGreaterEqual(kinds.count("fetch"), kinds.count("spill"))
        self.assertLessEqual(data["arena"]["height"], 70000)
        self.assertEqual({t["moved"] for t in data["tasks"]}, {0, 16384})
        slow, = [c for c in data["chips"] if c["name"] == "Ascend310"]
        self.assertGreater(slow["total_us"], 16384 * (len(kinds) - 16) / 3.94e3 / 2)

    @unittest.skipUnless(BROWSER, "no Chromium here")
    def test_browser(self):
        pages = {model: lambda model=model: self.page(model) for model in ("conv", "loop")}
        pages["mixed"] = lambda: self.compiled_page("mixed")
        pages["ladder"] = lambda: self.compiled_page("ladder", "--opt_level=0", "--memory_limit=70000")
        for model, make_page in pages.items():
            with self.subTest(model):
                path, _ = make_page()
                done = subprocess.run(
                    [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
                     "--disable-background-networking", "--user-data-dir=" + os.path.join(self.folder, "profile"),
                     "--virtual-time-budget=3000", "--enable-logging=stderr", "--dump-dom", "file://" + path],
                    capture_output=True, text=True, timeout=120)
                self.assertRegex(done.stdout, r'<body[^>]*data-ready="1"')
                self.assertRegex(done.stdout, r'<body[^>]*data-errors="0"')
                self.assertNotIn("CONSOLE", done.stderr)
                for part in ("timeline", "tasks", "memory", "graph", "before", "shapes"):
                    self.assertIn('<section id="%s">' % part, done.stdout)

    def test_shares_of_the_roof(self):
        """A dynamic model's counts are of typical sizes: none is compared with a roof. (conv has an open batch.)"""
        data = self.data(self.page("conv")[1])
        self.assertTrue(data["symbols"])
        self.assertTrue(all(t["on_chip"] is None or t["on_chip"] >= 0 for t in data["tasks"]))
        self.assertTrue(any(t["on_chip"] for t in data["tasks"]))

    def test_trace_of_a_run(self):
        path = os.path.join(self.folder, "trace.json")
        model = os.path.join(MODELS, "conv.om")
        self.assertEqual(ge("run", model, "--repeat", "3", GE_TRACE=path).returncode, 0)
        with open(path, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        slices = [e for e in events if e["ph"] == "X"]
        tasks = ge("om", model, "--plan").stdout.count("\ntask ")
        self.assertEqual(len({e["args"]["task"] for e in slices}), tasks)
        self.assertNotEqual(ge("run", model, GE_TRACE=os.path.join(self.folder, "no", "t.json")).stderr, "")

    def result(self, om):
        """Bytes of all outputs for seeded inputs."""
        folder = tempfile.mkdtemp(dir=self.folder)
        done = ge("run", om, "--output", folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        values = []
        for name in sorted(os.listdir(folder)):
            with open(os.path.join(folder, name), "rb") as file:
                values.append((name, file.read()))
        return values

    def compiled(self, model, out):
        done = subprocess.run([os.path.join(BUILD, "bin", "atc"), "--model=" + model, "--framework=5", "--output=" + out, "--opt_level=0", "--interpret"],
                              capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        return out + ".om"

    def test_exported_models_are_the_same(self):
        for model in ("chain", "conv", "branch", "loop", "mixed"):
            with self.subTest(model):
                path = os.path.join(self.folder, model + ".onnx")
                with open(path, "wb") as file:
                    file.write(getattr(make, model)())
                exported = os.path.join(self.folder, "exported.onnx")
                self.assertEqual(ge("opt", path, "-o", exported).returncode, 0)
                self.assertEqual(self.result(self.compiled(path, os.path.join(self.folder, "a"))),
                                 self.result(self.compiled(exported, os.path.join(self.folder, "b"))))

    def test_pictures_for_graphviz(self):
        dot = os.path.join(self.folder, "g.dot")
        for model in ("branch", "loop", "conv"):
            self.assertEqual(ge("opt", os.path.join(MODELS, model + ".onnx"), "--all", "-o", dot).returncode, 0)
            with open(dot, encoding="utf-8") as file:
                graph = file.read()
            plan = ge("om", os.path.join(MODELS, model + ".om"), "--dot").stdout
            for text in (graph, plan):
                self.assertRegex(text, r"^digraph ")
                self.assertEqual(text.count("{"), text.count("}"))
                nodes = set(re.findall(r"^(\w+) \[", text, re.M))
                for a, b in re.findall(r"^(\w+) -> (\w+)", text, re.M):
                    self.assertLessEqual({a, b}, nodes)
                if shutil.which("dot"):
                    self.assertEqual(subprocess.run(["dot", "-Tsvg"], input=text, capture_output=True, text=True).returncode, 0)

    def test_edges_of_a_plan(self):
        """Each edge between tasks is one of the plan: the later reads what the earlier wrote, on some way through the jumps."""
        def field(line, name):
            found = re.search(r" %s=(\[[^]]*\]|\S+?)[ }]" % name, line)
            return [int(n) for n in re.findall(r"-?\d+", found.group(1))] if found else []

        for model in ("branch", "loop", "mixed", "conv"):
            path = os.path.join(self.folder, model + ".onnx")
            with open(path, "wb") as file:
                file.write(getattr(make, model)())
            om = self.compiled(path, os.path.join(self.folder, model))
            text = ge("om", om, "--plan").stdout
            buffers, tasks = re.findall(r"^ *buffer .*", text, re.M), re.findall(r"^ *task .*", text, re.M)
            root = [(field(line, "alias") or [i])[0] for i, line in enumerate(buffers)]
            writes = [{root[b] for b in field(line, "outs")} for line in tasks]
            reads = [{root[b] for b in field(line, "args") if b not in field(line, "outs")} for line in tasks]
            next_of = [([] if "kind=jump " in line else [t + 1]) + field(line, "target") for t, line in enumerate(tasks)]

            def reaches(start, end):
                seen, rest = set(), list(next_of[start])
                while rest:
                    t = rest.pop()
                    if t < len(tasks) and t not in seen:
                        seen.add(t)
                        rest += next_of[t]
                return end in seen

            dot = ge("om", om, "--dot").stdout
            edges = [(int(a), int(b)) for a, b in re.findall(r"^t(\d+) -> t(\d+) \[label", dot, re.M)]
            for a, b in edges:
                self.assertTrue(writes[a] & reads[b] and reaches(a, b), (model, a, b))
            made = set.union(*writes)
            for b, wanted in enumerate(reads):
                for buffer in wanted & made:
                    self.assertTrue(any(buffer in writes[a] for a, to in edges if to == b), (model, b, buffer))

    def test_levels_agree(self):
        for model in ("chain", "conv"):
            with self.subTest(model):
                done = ge("compare", os.path.join(MODELS, model + ".onnx"), "--levels")
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertIn("values in the middle compared: all within the tolerance", done.stdout)

    def test_what_differs_is_blamed(self):
        # No error at all is too strict for code that adds in another order: something is named.
        done = ge("compare", os.path.join(MODELS, "conv.onnx"), "--tolerance", "0")
        if done.returncode:
            self.assertIn("to blame: ", done.stdout)
        else:
            self.assertIn("all within 0", done.stdout)

    def test_lower_bound_is_printed(self):
        self.assertRegex(ge("om", os.path.join(MODELS, "loop.om")).stdout, r"arena \d+ bytes, lower bound \d+ bytes")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
