"""Command lines of atc and ge: what they accept, refuse and print.

  python3 tests/command_lines.py BUILD_FOLDER MODELS_FOLDER
"""
import json
import os
import re
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import make_models as mm

BUILD, MODELS = sys.argv[1:3]
SUCCESS = "ATC run success, welcome to the next use."
FAILURE = "ATC run failed, Please check the detail log, Try 'atc --help' for more information"


def run(tool, *args):
    done = subprocess.run([os.path.join(BUILD, "bin", tool), *args], capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout, done.stderr


def contents(path):
    """"" where the file is not there, or no more."""
    try:
        with open(path) as f:
            return f.read()
    except OSError:
        return ""


HOLD = """
import ctypes, sys
library, model = ctypes.CDLL(sys.argv[1]), ctypes.c_void_p()
print("loaded" if library.ge_model_load(sys.argv[2].encode(), 1, ctypes.byref(model)) == 0 else "refused", flush=True)
sys.stdin.readline()
"""


def mapped(pid, folder):
    """KB of a process that are mapped from files of a folder: resident, its share of them, its own copies."""
    sums, inside = {"Rss": 0, "Pss": 0, "Private_Clean": 0, "Private_Dirty": 0}, False
    with open("/proc/%d/smaps" % pid) as f:
        for line in f:
            key = line.split(":")[0]
            if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
                inside = folder in line
            elif inside and key in sums:
                sums[key] += int(line.split()[1])
    return sums["Rss"], sums["Pss"], sums["Private_Clean"] + sums["Private_Dirty"]


class Atc(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.out = os.path.join(self.folder.name, "m")

    def tearDown(self):
        self.folder.cleanup()

    def atc(self, *args, model="conv.onnx"):
        return run("atc", "--model=" + os.path.join(MODELS, model), "--framework=5", "--output=" + self.out, *args)

    def refused(self, result, code, *texts):
        status, out, err = result
        self.assertNotEqual(status, 0)
        self.assertEqual(out.splitlines()[-1], FAILURE)
        self.assertIn(code, err)
        for text in texts:
            self.assertIn(text, err)
        self.assertFalse(os.path.exists(self.out + ".om"))

    def test_success(self):
        status, out, _ = self.atc()
        self.assertEqual(status, 0)
        self.assertEqual(out.splitlines()[0], "ATC start working now, please wait for a moment.")
        self.assertEqual(out.splitlines()[-1], SUCCESS)
        self.assertTrue(os.path.exists(self.out + ".om"))

    def test_signals_leave_nothing(self):
        """A signal while compilers run ends them, and no scratch folder stays."""
        temporary, pids, cc = (os.path.join(self.folder.name, n) for n in ("tmp", "pids", "cc"))
        os.mkdir(temporary)
        with open(cc, "w") as f:
            f.write('#!/bin/sh\ncase $1 in --version) echo "gcc 13.0"; exit ;; esac\nsleep 77 & echo $$ $! >> %s; wait\n' % pids)
        os.chmod(cc, 0o755)
        command = [os.path.join(BUILD, "bin", "atc"), "--model=" + os.path.join(MODELS, "conv.onnx"), "--framework=5", "--output=" + self.out, "--cache_dir=off", "--cc=" + cc]
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            atc = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": temporary})
            until = time.time() + 30
            while not contents(pids).endswith("\n") and time.time() < until:
                time.sleep(0.02)
            self.assertTrue(os.listdir(temporary))
            atc.send_signal(number)
            self.assertEqual(atc.communicate(timeout=30)[1], b"")
            self.assertEqual(atc.returncode, -number)
            self.assertEqual(os.listdir(temporary), [])
            for pid in contents(pids).split():
                while time.time() < until and contents("/proc/%s/stat" % pid).rpartition(")")[2][:2] not in ("", " Z"):
                    time.sleep(0.02)
                self.assertLess(time.time(), until, pid)
            os.remove(pids)

    def test_version(self):
        status, out, _ = run("ge", "--version")
        self.assertEqual(status, 0)
        self.assertRegex(out, r"^ge \d+\.\d+\.\d+\n$")

    def test_help(self):
        status, out, _ = run("atc", "--help")
        self.assertEqual(status, 0)
        for option in ("--model", "--framework", "--output", "--input_shape", "--input_format", "--soc_version", "--log"):
            self.assertIn(option, out)

    def test_unknown_option_has_a_hint(self):
        self.refused(self.atc("--input_shap=x:1"), "E10060", "--input_shap", "did you mean --input_shape?")

    def test_missing_model(self):
        self.refused(run("atc", "--framework=5", "--output=" + self.out), "E10004", "--model")

    def test_model_that_is_not_there(self):
        self.refused(self.atc(model="absent.onnx"), "E10410", "absent.onnx")

    def test_framework(self):
        self.refused(run("atc", "--model=a", "--framework=7", "--output=" + self.out), "E10001", "[7]")

    def test_log_level(self):
        self.refused(self.atc("--log=loud"), "E10010", "loud")

    def test_chip(self):
        self.refused(self.atc("--soc_version=pdp11"), "E10001", "pdp11", "x86-64-v3")

    def test_ascend_compiles_for_the_host(self):
        status, out, _ = self.atc("--soc_version=Ascend310P3")
        self.assertEqual(status, 0)
        self.assertIn("note:", out)

    def test_input_shape(self):
        status, _, err = self.atc("--input_shape=x:2,3,16,16")
        self.assertEqual(status, 0, err)
        status, out, _ = run("ge", "run", self.out + ".om")
        self.assertEqual(out.strip(), "y: f32[2,10]")

    def test_input_shape_with_a_wrong_name(self):
        self.refused(self.atc("--input_shape=z:2,3,16,16"), "", "'z'", "x")

    def test_input_shape_with_a_wrong_rank(self):
        self.refused(self.atc("--input_shape=x:2,3,16"), "", "x")

    def test_input_shape_twice_and_bad_dims(self):
        self.refused(self.atc("--input_shape=x:1,3,16,16;x:1,3,16,16"), "E10002", "twice")
        for dim, code in (("0", "E10011"), ("-2", "E10011"), ("a", "E10002"), ("", "E10002")):
            self.refused(self.atc("--input_shape=x:%s,3,16,16" % dim), code, "[%s]" % dim)

    def test_output_that_is_a_folder_or_the_model(self):
        self.refused(run("atc", "--model=" + os.path.join(MODELS, "conv.onnx"), "--framework=5", "--output=" + self.folder.name + "/"),
                     "E10022", "is a folder")
        self.assertEqual(os.listdir(self.folder.name), [])
        with open(os.path.join(MODELS, "conv.onnx"), "rb") as f:
            data = f.read()
        copy = self.out + "2.om"
        with open(copy, "wb") as f:
            f.write(data)
        self.refused(run("atc", "--model=" + copy, "--framework=5", "--output=" + copy), "E10001", "replace the model")
        with open(copy, "rb") as f:
            self.assertEqual(f.read(), data)

    def test_output_that_is_no_name(self):
        for output in (".", "..", self.folder.name + "/.", self.folder.name + "/..", self.folder.name + "/.om"):
            self.refused(run("atc", "--model=" + os.path.join(MODELS, "conv.onnx"), "--framework=5", "--output=" + output), "E10022")
        self.assertEqual(os.listdir(self.folder.name), [])

    def test_empty_value(self):
        self.refused(run("atc", "--model=", "--framework=5", "--output=" + self.out), "E10004", "[--model]")

    def test_info_log(self):
        _, out, _ = self.atc("--log=info")
        self.assertIn("region", out)
        self.assertIn("kernels", out)


class Ge(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.om = os.path.join(cls.folder.name, "conv.om")
        status, _, err = run("atc", "--model=" + os.path.join(MODELS, "conv.onnx"), "--framework=5", "--output=" + cls.om)
        assert status == 0, err

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_run_writes_outputs(self):
        folder = os.path.join(self.folder.name, "out")
        status, out, _ = run("ge", "run", self.om, "--shape", "x:3,3,16,16", "--output", folder, "--topk", "2")
        self.assertEqual(status, 0)
        self.assertIn("y: f32[3,10]", out)
        self.assertIn("y row 2:", out)
        self.assertEqual(os.listdir(folder), ["y.npy"])

    def test_raw_input_of_a_wrong_size(self):
        path = os.path.join(self.folder.name, "x.bin")
        with open(path, "wb") as f:
            f.write(b"1234")
        status, _, err = run("ge", "run", self.om, "--input", path, "--shape", "x:1,3,16,16")
        self.assertNotEqual(status, 0)
        self.assertIn("4 bytes given, 3072 needed", err)

    def test_shape_of_an_input_that_is_not_there(self):
        status, _, err = run("ge", "run", self.om, "--shape", "z:1,3,16,16")
        self.assertEqual(status, 1)
        self.assertIn("the model has no such input; it has x", err)

    @unittest.skipIf("san" in os.path.basename(os.path.normpath(BUILD)), "sanitizers end the program themselves")
    def test_more_memory_than_there_is(self):
        status, _, err = run("ge", "run", self.om, "--shape", "x:900000000000,3,16,16")
        self.assertEqual(status, 1)
        self.assertEqual(len(err.splitlines()), 1)
        self.assertIn(self.om + " --shape x:9", err)

    def test_messages_name_the_file_once(self):
        broken, file = (os.path.join(self.folder.name, name) for name in ("broken.ir", "plain"))
        for path, text in ((broken, "graph \"g\" {\n  %y = Foo(\n"), (file, "x")):
            with open(path, "w") as f:
                f.write(text)
        for args, text in ((["opt", broken], broken), (["opt", "no/file.ir"], "no/file.ir"), (["opt", "no/file.onnx"], "no/file.onnx"),
                           (["compare", "no/file.onnx"], "no/file.onnx"), (["run", "no/file.om"], "no/file.om"), (["run", self.om, "--output", file], file)):
            status, _, err = run("ge", *args)
            self.assertEqual(status, 1)
            self.assertEqual(err.count(text), 1, err)
            self.assertEqual(err.count(os.path.basename(text)), 1, err)

    def test_numbers_out_of_range(self):
        """One short sentence: the option and what it may be."""
        run_, bench, report = ["run", self.om], ["bench", self.om], ["report", self.om, "-o", os.devnull]
        compare = ["compare", os.path.join(MODELS, "chain.onnx")]
        simulate = ["simulate", self.om, "--soc", "Ascend910"]
        for verb, option, values, text in (
                (run_, "--topk", ("-1",), "0 or more"), (run_, "--repeat", ("0", "-2"), "1 or more"),
                (run_, "--threads", ("-1", "1025"), "from 0 to 1024"), (run_, "--std", ("0", "nan"), "above 0"),
                (run_, "--mean", ("inf", "nan"), "finite"), (bench, "--rounds", ("0",), "1 or more"),
                (bench, "--warmup", ("-1",), "0 or more"), (bench, "--seconds", ("0", "-1", "nan", "inf"), "above 0"),
                (bench, "--per-kernel", ("-3",), "0 or more"), (bench, "--threads", ("-4", "99999"), "from 0 to 1024"), (bench, "--instances", ("0", "2000"), "from 1 to 1024"),
                (report, "--threads", ("-1",), "from 0 to 1024"), (compare, "--threads", ("-1",), "from 0 to 1024"),
                (compare, "--tolerance", ("-1", "nan"), "0 or more"), (compare, "--most", ("0",), "1 or more"),
                (simulate, "--streams", ("0", "-1"), "1 or more")):
            for value in values:
                status, out, err = run("ge", *verb, option, value)
                self.assertNotEqual(status, 0, (option, value))
                self.assertIn("%s: %s is not " % (option, value), err)
                self.assertIn(text, err)
                self.assertLess(len(err), 200)
        for option in ("--topk", "--repeat", "--threads"):
            status, out, err = run("ge", *run_, option, "many")
            self.assertNotEqual(status, 0)
            self.assertIn("many", err)

    def test_random_inputs_are_named_when_a_run_fails(self):
        """The branch that random numbers take may want other dims."""
        shape = [mm.value_info("x", mm.F32, ["n"]), mm.value_info("w", mm.F32, ["m"])]
        path = os.path.join(self.folder.name, "two.onnx")
        with open(path, "wb") as f:
            f.write(mm.model(mm.graph("two", [mm.node("Reshape", ["x", "s"], ["r"]), mm.node("Add", ["r", "w"], ["y"])], shape,
                                      [mm.value_info("y", mm.F32, [4])], [mm.tensor("s", mm.I64, [1], [4])])))
        om = path.replace(".onnx", ".om")
        status, _, err = run("atc", "--model=" + path, "--framework=5", "--output=" + om)
        self.assertEqual(status, 0, err)
        for verb, file in ((["run"], om), (["bench", "--seconds", "0.1"], om), (["report", "-o", os.devnull], om), (["compare"], path)):
            status, _, err = run("ge", verb[0], file, *verb[1:])
            self.assertNotEqual(status, 0, verb)
            self.assertIn("random values were given to x, w: --input gives real ones, --shape other dims", err)
        self.assertEqual(run("ge", "run", om, "--shape", "x:4", "w:4")[0], 0)

    def test_folder_without_dumps(self):
        empty = os.path.join(self.folder.name, "empty")
        os.makedirs(os.path.join(empty, "inside"))
        for folder, text in ((empty, "no dump file in this folder"), (os.path.join(self.folder.name, "nowhere"), "nowhere")):
            status, _, err = run("ge", "dump", folder)
            self.assertEqual(status, 1)
            self.assertIn(text, err)

    def test_inputs_by_name_and_in_order(self):
        """Files without a name fill the inputs that none names; nothing that was given is dropped."""
        path, om = (os.path.join(self.folder.name, "less" + end) for end in (".onnx", ".om"))
        ends = [[mm.value_info(n, mm.F32, [2]) for n in names] for names in ("abc", "y")]
        with open(path, "wb") as f:
            f.write(mm.model(mm.graph("less", [mm.node("Sub", ["a", "b"], ["d"]), mm.node("Mul", ["d", "c"], ["y"])], *ends)))
        self.assertEqual(run("atc", "--model=" + path, "--framework=5", "--output=" + om)[0], 0)
        files = {}
        for name, values in (("a", (7, 9)), ("b", (2, 1)), ("c", (3, 5))):
            files[name] = os.path.join(self.folder.name, name + ".bin")
            with open(files[name], "wb") as f:
                f.write(struct.pack("<2f", *values))
        a, b, c = (files[n] for n in "abc")
        out = os.path.join(self.folder.name, "less")
        for given in ([a, b, c], ["a=" + a, b, c], [b, "a=" + a, c], [a, c, "b=" + b], ["c=" + c, "b=" + b, "a=" + a]):
            status, _, err = run("ge", "run", om, "--output", out, *(w for g in given for w in ("--input", g)))
            self.assertEqual(status, 0, err)
            with open(os.path.join(out, "y.npy"), "rb") as f:
                self.assertEqual(struct.unpack("<2f", f.read()[-8:]), (15, 40), given)
        for given, text in ((["a=" + a, "a=" + b], "a has a file already"), (["z=" + a], "no input is called z; the model has a, b, c"),
                            (["a=" + a, a, b, c], "4 input files given"), (["a="], "no file is named")):
            status, _, err = run("ge", "run", om, "--input", *given)
            self.assertEqual(status, 1, given)
            self.assertIn(text, err)

    def test_inputs_that_are_not_files(self):
        for path in (self.folder.name, os.path.join(self.folder.name, "absent.npy")):
            status, _, err = run("ge", "run", self.om, "--input", path)
            self.assertEqual(status, 1)
            self.assertIn(path, err)

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_full_disk(self):
        status, _, err = run("ge", "bench", self.om, "--seconds", "0.1", "--json", "/dev/full")
        self.assertEqual(status, 1)
        self.assertIn("/dev/full: cannot write", err)
        chain = os.path.join(MODELS, "chain.onnx")
        status, _, err = run("ge", "opt", chain, "-o", "/dev/full")
        self.assertEqual(status, 1)
        self.assertIn("/dev/full: cannot write the file: No space left on device", err)
        for command in (["ge", "run", self.om], ["ge", "om", self.om, "--plan"], ["ge", "opt", chain], ["ge", "--help"], ["ge", "--version"], ["atc", "--help"]):
            with open("/dev/full", "w") as full:
                done = subprocess.run([os.path.join(BUILD, "bin", command[0]), *command[1:]], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
            self.assertEqual(done.returncode, 1, command)
            self.assertRegex(done.stderr, r"^standard output: cannot write.*\n$")

    def test_a_file_that_is_cut_is_removed(self):
        path = os.path.join(self.folder.name, "cut.ir")
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
        done = subprocess.run([os.path.join(BUILD, "bin", "ge"), "opt", os.path.join(MODELS, "chain.onnx"), "-o", path], preexec_fn=limit,
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn(path + ": cannot write the file: File too large", done.stderr)
        self.assertFalse(os.path.exists(path))

    def test_command_lines_that_are_not_understood(self):
        """Exit code 2, and a message that names the word."""
        for args, text in ((["frob"], "'frob' is none of run, bench, opt, om,"), (["bech"], "did you mean bench?"), ([], "give one of run, bench"), (["--frob"], "'--frob' is none of"),
                           (["run"], "model is required"), (["run", self.om, "--frob"], "--frob"), (["run", self.om, "--topk", "-1"], "--topk")):
            status, out, err = run("ge", *args)
            self.assertEqual((status, out), (2, ""), args)
            self.assertIn(text, err)
        self.assertEqual(run("ge", "--help")[0], 0)
        self.assertEqual(run("ge", "run", "--help")[0], 0)

    def test_profile_of_bench(self):
        """The peak is the model's, not that of the buffers that measure the memory's rate."""
        path, peaks = os.path.join(self.folder.name, "peak.json"), []
        for option in ((), ("--per-kernel", "2")):
            status, out, err = run("ge", "bench", self.om, "--seconds", "0.1", "--json", path, *option)
            self.assertEqual(status, 0, err)
            with open(path) as f:
                peaks.append(json.load(f)["peak_rss_mb"])
        self.assertIn("estimate, one worker", out)
        self.assertLess(peaks[1], peaks[0] + 32)

    def test_bench(self):
        path = os.path.join(self.folder.name, "bench.json")
        status, out, _ = run("ge", "bench", self.om, "--seconds", "0.2", "--json", path, "--threads", "2")
        self.assertEqual(status, 0)
        self.assertIn("median", out)
        with open(path) as f:
            figures = json.load(f)
        self.assertGreater(figures["median_ms"], 0)
        self.assertEqual(figures["threads"], 2)

    def test_limit_on_the_size_of_files(self):
        """A sentence rather than the end by a signal."""
        out = os.path.join(self.folder.name, "limited")
        for tool, args in (("atc", ["--model=" + os.path.join(MODELS, "conv.onnx"), "--framework=5", "--output=" + out, "--cache_dir=off"]), ("ge", ["run", self.om])):
            command = "ulimit -f 1; exec '%s' %s" % (os.path.join(BUILD, "bin", tool), " ".join("'%s'" % a for a in args))
            done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=300)
            self.assertIn(done.returncode, (1, 255), done.stderr)
            self.assertNotEqual(done.stderr + done.stdout, "")
        # Kernels that are kept leave the linker alone to meet the limit.
        cached = ["--model=" + os.path.join(MODELS, "conv.onnx"), "--framework=5", "--output=" + out,
                  "--cache_dir=" + os.path.join(self.folder.name, "kept")]
        self.assertEqual(run("atc", *cached)[0], 0)
        command = "ulimit -f 4; exec '%s' %s" % (os.path.join(BUILD, "bin", "atc"), " ".join("'%s'" % a for a in cached))
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=300)
        self.assertIn("E13004", done.stderr)
        self.assertIn("File too large", done.stderr)

    def test_instances(self):
        path = os.path.join(self.folder.name, "instances.json")
        status, out, err = run("ge", "bench", self.om, "--seconds", "0.2", "--rounds", "20", "--json", path, "--instances", "3", "--threads", "1")
        self.assertEqual(status, 0, err)
        self.assertRegex(out, r"instances 3 of 1 threads: \d+\.\d runs a second, median \d")
        with open(path) as f:
            figures = json.load(f)["instances"]
        self.assertEqual(figures["count"], 3)
        self.assertGreater(figures["runs_per_second"], 0)
        self.assertGreater(figures["median_ms"], 0)
        self.assertNotIn("instances", run("ge", "bench", self.om, "--seconds", "0.1")[1])

    def test_processes_share_the_weights(self):
        """In the .om or beside it: of two processes that run a model, each pays for half of the weights, nobody for a copy."""
        values = 256 * 300
        w = mm.tensor("w", mm.F32, [256, 300], [i / values for i in range(values)])
        with open(os.path.join(self.folder.name, "wide.onnx"), "wb") as f:
            f.write(mm.model(mm.graph("wide", [mm.node("MatMul", ["x", "w"], ["y"])], [mm.value_info("x", mm.F32, [1, 256])],
                                      [mm.value_info("y", mm.F32, [1, 300])], [w])))
        for external in ("0", "1", "2"):
            out = os.path.join(self.folder.name, "wide" + external)
            status, _, err = run("atc", "--model=" + os.path.join(self.folder.name, "wide.onnx"), "--framework=5", "--output=" + out,
                                 "--external_weight=" + external)
            self.assertEqual(status, 0, err)
            command = [sys.executable, "-c", HOLD, os.path.join(os.path.abspath(BUILD), "lib", "libge_runtime.so"), out + ".om"]
            held = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                     env=dict(os.environ, GE_VERIFY="weights")) for _ in range(2)]
            try:
                for process in held:
                    self.assertEqual(process.stdout.readline(), "loaded\n")
                for process in held:
                    resident, share, own = mapped(process.pid, os.path.realpath(self.folder.name))
                    self.assertGreaterEqual(resident, 4 * values // 1024)
                    self.assertLess(share, 0.55 * resident)
                    self.assertLess(own, 0.1 * resident)
            finally:
                for process in held:
                    process.communicate("\n")

    def test_opt_round_trip(self):
        first = os.path.join(self.folder.name, "a.ir")
        second = os.path.join(self.folder.name, "b.ir")
        self.assertEqual(run("ge", "opt", os.path.join(MODELS, "conv.onnx"), "-o", first)[0], 0)
        self.assertEqual(run("ge", "opt", first, "-o", second)[0], 0)
        with open(first) as a, open(second) as b:
            self.assertEqual(a.read(), b.read())

    def test_opt_lists_names(self):
        status, out, _ = run("ge", "opt", "--list")
        self.assertEqual(status, 0)
        for name in ("cse", "layer_norm", "winograd"):  # a pass, a rule, another step
            self.assertIn("  %s\n" % name, out)

    def test_opt_refuses_unknown_passes(self):
        status, _, err = run("ge", "opt", os.path.join(MODELS, "conv.onnx"), "--passes", "csee")
        self.assertNotEqual(status, 0)
        self.assertIn("did you mean cse?", err)

    def test_om(self):
        status, out, _ = run("ge", "om", self.om, "--verify")
        self.assertEqual(status, 0)
        self.assertIn("all checksums match", out)
        self.assertIn("task 0", run("ge", "om", self.om, "--plan")[1])

    def test_planned_bytes_are_measured_bytes(self):
        """Of a dynamic model, for some shapes: what ge om says beforehand is what the runtime takes."""
        figures = os.path.join(self.folder.name, "figures.json")
        for n in (1, 3, 8):
            shape = "x:%d,3,16,16" % n
            text = run("ge", "om", self.om, "--shape", shape)[1]
            planned, bound = map(int, re.search(r"for this one (\d+) bytes, lower bound (\d+) bytes", text).groups())
            self.assertEqual(run("ge", "bench", self.om, "--shape", shape, "--rounds", "2", "--json", figures)[0], 0)
            with open(figures) as f:
                self.assertEqual(round(json.load(f)["arena_mb"] * 1e6), planned)
            self.assertEqual(planned, bound)

    def test_om_and_simulate_refuse_shapes_that_do_not_fit(self):
        for verb in (["om"], ["simulate", "--soc", "Ascend910"]):
            for shape, fault in (("z:1,3,16,16", "no such input; it has x"), ("x:1,3,16", "the model takes [-1,3,16,16]"),
                                 ("x:1,4,16,16", "the model takes [-1,3,16,16]")):
                status, _, err = run("ge", *verb, self.om, "--shape", shape)
                self.assertEqual(status, 1, shape)
                self.assertIn(fault, err)

    def test_damaged_file_is_refused(self):
        with open(self.om, "rb") as f:
            data = bytearray(f.read())
        data[100] ^= 255
        path = os.path.join(self.folder.name, "damaged.om")
        with open(path, "wb") as f:
            f.write(data)
        status, _, err = run("ge", "run", path)
        self.assertEqual(status, 1)
        self.assertIn("damaged.om", err)


class Usage(unittest.TestCase):
    """Programs and scripts that take files say what they take when they are given an option that they do not know."""

    def test_unknown_options(self):
        root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        programs = [[os.path.join(os.path.abspath(BUILD), "bin", name)] for name in ("bench_planner", "bench_shapes", "soak", "bench_kernels", "case_recipes")]
        scripts = [[sys.executable, os.path.join(root, name)]
                   for name in ("bench/loop.py", "bench/chain.py", "bench/streams.py", "tests/make_models.py")]
        with tempfile.TemporaryDirectory() as folder:
            for command in programs + scripts:
                done = subprocess.run(command + ["--frob"], capture_output=True, text=True, timeout=60, cwd=folder)
                self.assertNotEqual(done.returncode, 0, command)
                self.assertRegex(done.stderr, r"usage: |  python3 \w+/\w+\.py ")
                self.assertNotIn("Traceback", done.stderr)
                asked = subprocess.run(command + ["--help"], capture_output=True, text=True, timeout=60, cwd=folder)
                self.assertEqual((asked.returncode, asked.stderr), (0, ""), command)
                self.assertRegex(asked.stdout, r"usage: |  python3 \w+/\w+\.py ")
                self.assertEqual(os.listdir(folder), [])

    def test_help_installs_nothing(self):
        root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        with tempfile.TemporaryDirectory() as folder:
            for name in ("models", "peers", "arena", "estimates", "ops", "tune", "table"):
                done = subprocess.run([os.path.join(root, "bench", name), "--help"], capture_output=True, text=True, timeout=20,
                                      env={**os.environ, "GE_WORK": folder})
                self.assertEqual((done.returncode, done.stderr), (0, ""), name)
                self.assertIn("bench/%s [--" % name, done.stdout)
                self.assertEqual(os.listdir(folder), [])

    def test_folders_without_a_build(self):
        root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        with tempfile.TemporaryDirectory() as folder:
            for name in ("loop", "chain", "streams"):
                done = subprocess.run([sys.executable, os.path.join(root, "bench", name + ".py"), folder], capture_output=True, text=True, timeout=20)
                self.assertEqual((done.returncode, done.stderr), (1, folder + ": no build: bin/atc is not in it; give a folder such as build/release\n"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
