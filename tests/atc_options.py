"""Options and error codes of atc: every option has a test, every code that can occur is provoked.

  python3 tests/atc_options.py BUILD_FOLDER MODELS_FOLDER
"""
import json
import os
import re
import struct
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

    def raw(self, *args):
        done = subprocess.run([ATC, *args], capture_output=True, text=True, timeout=300, cwd=self.folder)
        return done.returncode, done.stdout, done.stderr

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
        self.assertIn("Possible Cause", err)
        self.assertIn("ATC run failed", out)
        SEEN.add(code)

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


class Table(Case):
    def test_docs_agree_with_the_table(self):
        with open(os.path.join(ROOT, "docs", "atc.md")) as f:
            self.assertEqual(f.read(), help_markdown())

    def test_help_has_every_option_under_its_group(self):
        _, out, _ = self.raw("--help")
        for option in OPTIONS:
            self.assertIn("--" + option, out)
        for group in ("Basic: General", "Basic: Input", "Advanced: Feature", "Advanced: Debug"):
            self.assertIn(group + ":", out)

    def test_accepted_options_give_a_note(self):
        empty = self.path("empty.txt", "\n")
        given = []
        for option, (values, treatment) in OPTIONS.items():
            if treatment != "accepted" or option in ("enable_compress_weight", "multi_stream_parallel_mode"):
                continue
            first = re.split(r"[|]", values)[0]
            given.append("--%s=%s" % (option, empty if values == "FILE" else first.strip('"')))
        out = self.works(*given)
        for g in given:
            self.assertIn("[%s]" % g.split("=")[0], out)
        self.assertIn("[--enable_compress_weight]", self.works("--enable_compress_weight=true"))
        self.assertIn("[--multi_stream_parallel_mode]", self.works("--multi_stream_parallel_mode=cv"))

    def test_every_choice_is_checked(self):
        for option, (values, treatment) in OPTIONS.items():
            if treatment != "works" or values in ("FILE", "") or "|" not in values and values not in ("0", "1", "true", "false"):
                continue
            code = "E10010" if option == "log" else "E10005" if values in ("true", "false") else "E10006" if values in ("0", "1") else "E10001"
            with self.subTest(option):
                self.refused(self.raw("--model=a", "--framework=5", "--output=b", "--%s=wrong" % option), code)

    def test_value_in_the_next_word(self):
        model = os.path.join(os.path.abspath(MODELS), "conv.onnx")
        status, _, err = self.raw("--model", model, "--framework", "5", "--output", self.out, "--interpret")
        self.assertEqual(status, 0, err)


class Refusals(Case):
    def test_refused_options(self):
        f = self.path("f", "x")
        for args, code in (
                (["--mode=30"], "E10055"), (["--singleop=" + f], "E10055"), (["--cluster_config=" + f], "E10055"),
                (["--hccl_sub_comm_config=" + f], "E10055"), (["--compression_optimize_conf=" + f], "E10055"),
                (["--host_env_cpu=aarch64"], "E10055"), (["--precision_mode_v2=cube_hif8"], "E10055"),
                (["--weight=" + f], "E10055"), (["--output_type=HIF8"], "E10055"), (["--auto_tune_mode=GA"], "E10060"),
                (["--nothing=1"], "E10060"), (["stray"], "E10060"),
                (["--output_type=FP7"], "E10001"), (["--opt_level=9"], "E10001"), (["--cc="], "E10004"),
                (["--precision_mode=force_fp32", "--precision_mode_v2=origin"], "E10056"),
                (["--enable_single_stream=true", "--multi_stream_parallel_mode=cv"], "E10056"),
                (["--optypelist_for_implmode=Conv"], "E10057"),
                (["--enable_compress_weight=true", "--compress_weight_conf=" + f], "E10047"),
                (["--input_shape=x:1", "--input_shape_range=x:[1]"], "E10047"),
                (["--output_type=a:FP16"], "E10057"), (["--optimization_switch=a=b"], "E10003"),
                (["--out_nodes=nothing:0"], "E11017"), (["--input_fp16_nodes=nothing"], "E10016"),
                (["--input_shape=x"], "E10002"), (["--input_shape=x:0,3,16,16"], "E10011"),
                (["--input_shape=x:5~2,3,16,16"], "E10048"), (["--input_shape=x:1,3,16"], "E10049"),
                (["--input_shape=x:1,4,16,16"], "E10050")):
            with self.subTest(args):
                self.refused(self.atc(*args), code)

    def test_frameworks_and_required_options(self):
        for args, code in ((["--framework=0"], "E10008"), (["--framework=1"], "E10001"), (["--framework=3"], "E10001"), ([], "E10007")):
            self.refused(self.raw("--model=a", "--output=b", *args), code)
        self.refused(self.raw("--framework=5", "--output=b"), "E10004")
        for mode in "156":
            self.refused(self.raw("--mode=" + mode), "E10007")

    def test_files(self):
        option = "--fusion_switch_file="
        self.refused(self.atc(option + self.path("absent")), "E13000")
        self.refused(self.atc(option + "x" * 5000), "E13002")
        self.refused(self.atc(option + self.folder), "E13003")
        self.refused(self.atc(option + self.path("a", "Name")), "E10014")
        self.refused(self.atc(option + self.path("b", "{ damaged")), "E13005")
        self.refused(self.atc(option + self.path("c", '{"Switch":{"GraphFusion":{"x":"maybe"}}}')), "E10014")
        self.refused(self.atc("--op_name_map=" + self.path("d", "A:NoSuchOperator")), "E13010")
        self.refused(self.atc(model=self.path("absent.onnx")), "E10410")
        self.refused(self.atc(model=self.path("damaged.onnx", b"\xff" * 40)), "E16001")
        unknown = mm.model(mm.graph("u", [mm.node("NoSuchOp", ["x"], ["y"])], [mm.value_info("x", mm.F32, [2])],
                                    [mm.value_info("y", mm.F32, [2])]))
        self.refused(self.atc(model=self.path("unknown.onnx", unknown)), "E16002")
        if os.getuid() != 0:
            closed = self.path("closed", "x")
            os.chmod(closed, 0)
            self.refused(self.atc(option + closed), "E13001")

    def test_gears(self):
        free = self.path("free.onnx", picture_model(["n", 3, "h", "w"]))
        for args, code in (
                (["--dynamic_batch_size=1,2", "--dynamic_image_size=1,1;2,2"], "E10009"),
                (["--dynamic_batch_size=1"], "E10035"),
                (["--dynamic_batch_size=" + ",".join(map(str, range(1, 102)))], "E10036"),
                (["--dynamic_batch_size=1,2,1"], "E10037"), (["--dynamic_batch_size=1,0"], "E10038"),
                (["--dynamic_batch_size=1,2", "--input_shape=x:1,3,4,4"], "E10040"),
                (["--dynamic_batch_size=1,2", "--input_shape=x:-1,3,-1,4"], "E10018"),
                (["--dynamic_batch_size=1,2", "--input_shape=x:1,3,-1,4"], "E10012"),
                (["--dynamic_image_size=4,4;8", "--input_shape=x:1,3,-1,-1"], "E10020"),
                (["--dynamic_image_size=4,4;8,8", "--input_shape=x:-1,3,4,4"], "E10019"),
                (["--dynamic_dims=1,2;3,4", "--input_shape=x:-1,3,-1,4"], "E10057"),
                (["--dynamic_dims=1,2;3", "--input_format=ND", "--input_shape=x:-1,3,-1,4"], "E10039"),
                (["--dynamic_dims=1;3", "--input_format=ND", "--input_shape=x:-1,3,-1,4"], "E10045")):
            with self.subTest(args):
                self.refused(self.atc(*args, model=free), code)
        fixed = self.path("fixed.onnx", picture_model([1, 3, 4, 4]))
        self.refused(self.atc("--dynamic_batch_size=1,2", "--input_shape=x:-1,3,4,4", model=fixed), "E10050")


class Works(Case):
    def test_gears(self):
        free = self.path("free.onnx", picture_model(["n", 3, "h", "w"]))
        self.works("--dynamic_batch_size=1,4,2", "--input_shape=x:-1,3,4,4", model=free)
        d = self.description()
        self.assertEqual(d["gears"], {"mode": "batch", "values": [[1], [4], [2]]})
        self.assertEqual(d["inputs"][0]["dims"], [-1, 3, 4, 4])
        self.assertIn("f32[4,3,4,4]", self.run_model(shapes=["x:4,3,4,4"]))
        self.works("--dynamic_image_size=4,6;8,8", "--input_shape=x:1,3,-1,-1", model=free)
        self.assertEqual(self.description()["gears"], {"mode": "image", "values": [[4, 6], [8, 8]]})
        self.works("--dynamic_dims=1,4;2,8", "--input_format=ND", "--input_shape=x:-1,3,-1,4", model=free)
        self.assertEqual(self.description()["gears"], {"mode": "dims", "values": [[1, 4], [2, 8]]})
        self.assertEqual(self.description()["input_format"], "ND")

    def test_ranges(self):
        free = self.path("free.onnx", picture_model(["n", 3, 4, 4]))
        for args in ("--input_shape=x:1~3,3,4,4", "--input_shape_range=x:[1~3,3,4,4]"):
            self.works(args, model=free)
            self.assertIn("f32[3,3,4,4]", self.run_model(shapes=["x:3,3,4,4"]))
            done = subprocess.run([GE, "run", self.out + ".om", "--shape", "x:4,3,4,4"], capture_output=True, text=True)
            self.assertNotEqual(done.returncode, 0)

    def test_outputs(self):
        chain = os.path.join(os.path.abspath(MODELS), "chain.onnx")
        for nodes in ("v3;v1", "v3_Sigmoid:0;v1_Relu:0"):
            self.works("--out_nodes=" + nodes, "--output_type=" + nodes.split(";")[1] + ":FP16", model=chain)
            self.assertEqual([(o["name"], o["dtype"]) for o in self.description()["outputs"]], [("v3", "f32"), ("v1", "f16")])
        for name, dtype in (("FP16", "f16"), ("UINT8", "u8"), ("DOUBLE", "f64"), ("FP32", "f32")):
            self.works("--output_type=" + name, model=chain)
            self.assertEqual(self.description()["outputs"][0]["dtype"], dtype)
        self.refused(self.atc("--out_nodes=v3", "--output_type=v4:FP16", model=chain), "E10003")

    def test_fp16_inputs(self):
        p = self.path("p.onnx", picture_model([1, 3, 4, 4]))
        self.works("--input_fp16_nodes=x", model=p)
        self.assertEqual(self.description()["inputs"][0]["dtype"], "f16")
        self.assertIn("f32[1,3,4,4]", self.run_model())
        self.refused(self.atc("--input_fp16_nodes=y_Relu", model=p), "E10017")

    def test_op_name_map(self):
        custom = mm.model(mm.graph("c", [mm.node("MyRelu", ["x"], ["y"])], [mm.value_info("x", mm.F32, [2])],
                                   [mm.value_info("y", mm.F32, [2])]))
        self.works("--op_name_map=" + self.path("map", "# names\nMyRelu:Relu\n"), model=self.path("c.onnx", custom))

    def test_switches(self):
        conv = ["--log=info"]
        applied = set(re.findall(r"^rule (\S+) applied", self.works(*conv), re.M))
        off = self.path("all", '{"Switch":{"GraphFusion":{"ALL":"off"},"UBFusion":{"ALL":"off"}}}')
        self.assertNotIn("applied", self.works("--fusion_switch_file=" + off, *conv))
        for rule in applied:
            lines = self.path("lines", "%s:off\n" % rule)
            self.assertNotIn("rule %s applied" % rule, self.works("--fusion_switch_file=" + lines, *conv))
            self.assertNotIn("rule %s applied" % rule, self.works("--optimization_switch=%s:off" % rule, *conv))
            self.assertIn("rule %s applied" % rule,
                          self.works("--fusion_switch_file=" + lines, "--optimization_switch=%s:on" % rule, *conv))
        self.assertIn("[NoSuchPass]", self.works("--optimization_switch=NoSuchPass:off"))
        for option, text in (("--oo_level=O1", "opt=1"), ("--oo_constant_folding=false", "constant_folding"),
                             ("--oo_dead_code_elimination=false", "dead_code"), ("--disable_passes=cse", "off=cse"),
                             ("--op_select_implmode=high_precision", "conv_tolerance=0 "),
                             ("--optimization_switch=ConstantFoldingPass:off", "constant_folding")):
            self.works(option)
            self.assertIn(text, self.description()["policy"])

    def test_precision(self):
        self.works("--op_precision_mode=" + self.path("p.ini", "[ByOpType]\nConv=high_precision\n"))
        self.assertIn("conv_tolerance=0 ", self.description()["policy"])
        self.works("--op_select_implmode=high_precision", "--optypelist_for_implmode=Gelu")
        self.assertNotIn("conv_tolerance=0 ", self.description()["policy"])

    def test_raw_options(self):
        raw = self.path("raw.json", json.dumps({"compile options": {"global": {"ge.oo.level": "O1"}, "graph": {"ge.none": "1"}}}))
        self.refused(self.atc("--raw_ge_options=" + raw), "E10060")
        self.works("--raw_ge_options=" + raw, "--raw_ge_options_ignore_unsupported=true")
        self.assertIn("opt=1", self.description()["policy"])

    def test_memory(self):
        def arena(*args):
            out = self.works("--log=info", "--opt_level=0", *args, model=os.path.join(os.path.abspath(MODELS), "chain.onnx"))
            return float(re.search(r"arena ([0-9.]+) MB \(lower bound", out).group(1))
        self.assertLess(arena(), arena("--disable_reuse_memory=1"))

    def test_external_weights(self):
        def result():
            self.run_model(shapes=["x:1,3,16,16"])
            with open(os.path.join(self.folder, "out", "y.npy"), "rb") as f:
                return f.read()
        self.works("--external_weight=0")
        want, size = result(), os.path.getsize(self.out + ".om")
        for mode, names in (("1", "weight_[0-9a-f]{16}"), ("2", "m_weight_combined")):
            shown = self.works("--external_weight=" + mode, "--display_model_info=1")
            self.assertGreater(int(re.search(r"weight_size\[(\d+) B\]", shown).group(1)), 0)
            self.assertEqual(result(), want)
            self.assertLess(os.path.getsize(self.out + ".om"), size)
            files = os.listdir(self.path("weight"))
            self.assertTrue(any(re.fullmatch(names, f) for f in files), files)
            for f in files:
                os.remove(os.path.join(self.path("weight"), f))
            done = subprocess.run([GE, "run", self.out + ".om"], capture_output=True, text=True)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("external weights", done.stderr)

    def test_info_log_shows_decisions(self):
        chain = self.works("--log=info", model=os.path.join(os.path.abspath(MODELS), "chain.onnx"))
        self.assertRegex(chain, r"region \S+: fused \S+ \+ \S+")
        plain = self.works("--log=info", "--opt_level=0", model=os.path.join(os.path.abspath(MODELS), "chain.onnx"))
        self.assertRegex(plain, r"memory: \S+ has \d+ bytes at \d+, tasks \d+ to \d+")
        conv = self.works("--log=info")
        self.assertRegex(conv, r"layout of \S+ is ")
        self.assertRegex(conv, r"fuse: \S+ with \S+: ")
        self.assertEqual(self.works("--log=error").count("\n"), 2)

    def test_fusion_result(self):
        self.works("--export_compile_stat=0", "--log=info")
        self.assertFalse(os.path.exists(self.path("fusion_result.json")))
        self.works("--export_compile_stat=2")
        with open(self.path("fusion_result.json")) as f:
            self.assertIn("graph_fusion", json.load(f)[0]["session_and_graph_id_0_0"])

    def test_modes(self):
        self.assertIn("weight_size", self.works("--display_model_info=1"))
        status, out, _ = self.raw("--mode=6", "--om=" + self.out + ".om")
        self.assertEqual(status, 0)
        for text in ("Display Model Info start", "soc_version[", "modeldef_size["):
            self.assertIn(text, out)
        result = self.path("r.json")
        self.assertEqual(self.raw("--mode=1", "--om=" + self.out + ".om", "--json=" + result)[0], 0)
        with open(result) as f:
            self.assertEqual(json.load(f)["input"][0]["name"], "x")
        conv = os.path.join(os.path.abspath(MODELS), "conv.onnx")
        self.assertEqual(self.raw("--mode=1", "--om=" + conv, "--framework=5", "--dump_mode=1", "--json=" + result)[0], 0)
        with open(result) as f:
            self.assertIn("shape", json.load(f)["graph"][0]["input"][0])
        self.refused(self.raw("--mode=6", "--om=" + self.path("bad.om", "x" * 100)), "E10041")
        self.refused(self.raw("--mode=1", "--om=" + self.out + ".om", "--json=" + self.path("no/r.json")), "E13004")
        self.works(model=os.path.join(os.path.abspath(MODELS), "chain.onnx"))
        text = subprocess.run([GE, "om", self.out + ".om", "--ir"], capture_output=True, text=True).stdout
        self.assertEqual(self.raw("--mode=5", "--om=" + self.path("dump.ir", text), "--json=" + result)[0], 0)
        self.refused(self.raw("--mode=5", "--om=" + self.path("bad.ir", "?"), "--json=" + result), "E13005")
        self.assertEqual(self.raw("--mode=3", "--model=" + conv, "--framework=5", "--check_report=" + result)[0], 0)
        with open(result) as f:
            self.assertEqual(json.load(f)["result"], "success")


def aipp_reference(keys, data, h, w):
    """RGB888 or YUV420SP bytes to f32 [3][H][W]: plain loops, docs/aipp.md word for word."""
    get = lambda k, d=0: keys.get(k, d)
    pixels = [[None] * w for _ in range(h)]
    for y in range(h):
        for x in range(w):
            form = keys["input_format"]
            if form == "RGB888_U8":
                pixels[y][x] = [data[(y * w + x) * 3 + c] for c in range(3)]
            elif form in ("XRGB8888_U8", "ARGB8888_U8", "AYUV444_U8"):
                p = [data[(y * w + x) * 4 + c] for c in range(4)]
                pixels[y][x] = p[1:] + p[:1] if get("ax_swap_switch") == "true" else p
            elif form == "YUYV_U8":
                pair = y * w * 2 + x // 2 * 4
                pixels[y][x] = [data[(y * w + x) * 2], data[pair + 1], data[pair + 3]]
            elif form == "YUV422SP_U8":
                uv = h * w + y * w + x // 2 * 2
                pixels[y][x] = [data[y * w + x], data[uv], data[uv + 1]]
            else:
                uv = h * w + (y // 2) * w + (x // 2) * 2
                pixels[y][x] = [data[y * w + x], data[uv], data[uv + 1]]
    if get("crop") == "true":
        y0, x0 = get("load_start_pos_h"), get("load_start_pos_w")
        pixels = [row[x0:x0 + keys["crop_size_w"]] for row in pixels[y0:y0 + keys["crop_size_h"]]]
    out = []
    for row in pixels:
        line = []
        for p in row:
            p = list(p)
            if get("rbuv_swap_switch") == "true":
                a, b = (0, 2) if "RGB" in keys["input_format"] else (1, 2)
                if len(p) == 4 and get("ax_swap_switch") != "true":
                    a, b = a + 1, b + 1
                p[a], p[b] = p[b], p[a]
            if get("csc_switch") == "true":
                q = [p[j] - get("input_bias_%d" % j) for j in range(3)]
                p = [min(255, max(0, (sum(get("matrix_r%dc%d" % (i, j)) * q[j] for j in range(3)) >> 8) + get("output_bias_%d" % i)))
                     for i in range(3)]
            line.append([(p[c] - get("mean_chn_%d" % c) - get("min_chn_%d" % c)) * get("var_reci_chn_%d" % c, 1) for c in range(3)])
        out.append(line)
    if get("padding") == "true":
        width = len(out[0]) + get("left_padding_size") + get("right_padding_size")
        blank = [get("padding_value")] * 3
        out = [[blank] * get("left_padding_size") + r + [blank] * get("right_padding_size") for r in out]
        out = [[blank] * width] * get("top_padding_size") + out + [[blank] * width] * get("bottom_padding_size")
    return [out[y][x][c] for c in range(3) for y in range(len(out)) for x in range(len(out[0]))]


class Aipp(Case):
    YUV = {"input_format": "YUV420SP_U8", "csc_switch": "true", "matrix_r0c0": 256, "matrix_r0c1": 0, "matrix_r0c2": 359,
           "matrix_r1c0": 256, "matrix_r1c1": -88, "matrix_r1c2": -183, "matrix_r2c0": 256, "matrix_r2c1": 454, "matrix_r2c2": 0,
           "input_bias_1": 128, "input_bias_2": 128}
    NORM = {"mean_chn_0": 104, "mean_chn_1": 117, "mean_chn_2": 123, "var_reci_chn_0": 0.5, "var_reci_chn_1": 0.25, "min_chn_2": 0.5}

    def config(self, keys):
        return self.path("aipp.cfg", "# picture\naipp_op {\n  aipp_mode: static\n" + "".join("  %s : %s\n" % k for k in keys.items()) + "}\n")

    def check(self, keys, h, w, result_h, result_w):
        keys = {"src_image_size_w": w, "src_image_size_h": h, **keys}
        identity = mm.model(mm.graph("p", [mm.node("Neg", ["x"], ["n"]), mm.node("Neg", ["n"], ["y"])],
                                     [mm.value_info("x", mm.F32, [1, 3, result_h, result_w])],
                                     [mm.value_info("y", mm.F32, [1, 3, result_h, result_w])]))
        self.works("--insert_op_conf=" + self.config(keys), model=self.path("p.onnx", identity))
        halves = {"RGB888_U8": 6, "YUV420SP_U8": 3, "YUYV_U8": 4, "YUV422SP_U8": 4}.get(keys["input_format"], 8)
        size = h * w * halves // 2
        data = bytes((i * 73 + i * i * 31 + 5) % 256 for i in range(size))
        self.run_model(self.path("x.bin", data))
        with open(os.path.join(self.folder, "out", "y.npy"), "rb") as f:
            raw = f.read()
        want = aipp_reference(keys, data, h, w)
        self.assertEqual(list(struct.unpack("<%df" % len(want), raw[-4 * len(want):])), want)

    def test_rgb(self):
        self.check({"input_format": "RGB888_U8", "rbuv_swap_switch": "true", **self.NORM}, 6, 8, 6, 8)

    def test_yuv(self):
        self.check({**self.YUV, **self.NORM}, 6, 8, 6, 8)

    def test_other_formats(self):
        yuv = {k: v for k, v in self.YUV.items() if k != "input_format"}
        for form in ("YUYV_U8", "YUV422SP_U8"):
            self.check({"input_format": form, **yuv, **self.NORM}, 4, 6, 4, 6)
            self.check({"input_format": form, "rbuv_swap_switch": "true"}, 4, 6, 4, 6)
        for form in ("XRGB8888_U8", "ARGB8888_U8", "AYUV444_U8"):
            for ax in ("true", "false"):
                self.check({"input_format": form, "ax_swap_switch": ax, "rbuv_swap_switch": "true", **self.NORM}, 3, 5, 3, 5)
        self.check({"input_format": "AYUV444_U8", "ax_swap_switch": "true", **yuv}, 3, 5, 3, 5)

    def test_resize_of_a_flat_picture_and_by_two(self):
        keys = {"input_format": "RGB888_U8", "src_image_size_w": 2, "src_image_size_h": 1, "resize": "true",
                "resize_output_w": 4, "resize_output_h": 2}
        model = self.path("p.onnx", picture_model([1, 3, 2, 4]))
        self.works("--insert_op_conf=" + self.config(keys), model=model)
        self.run_model(self.path("x.bin", bytes([0, 10, 8, 100, 10, 16])))
        with open(os.path.join(self.folder, "out", "y.npy"), "rb") as f:
            got = struct.unpack("<24f", f.read()[-96:])
        rows = ([0, 25, 75, 100], [10] * 4, [8, 10, 14, 16])  # half-pixel centres: 0, 1/4, 3/4, 1
        self.assertEqual(list(got), [v for row in rows for v in row * 2])

    def test_uv_swap_without_csc(self):
        self.check({"input_format": "YUV420SP_U8", "rbuv_swap_switch": "true"}, 4, 6, 4, 6)

    def test_crop_and_padding(self):
        self.check({**self.YUV, **self.NORM, "crop": "true", "load_start_pos_h": 2, "load_start_pos_w": 2, "crop_size_h": 4,
                    "crop_size_w": 4, "padding": "true", "left_padding_size": 1, "right_padding_size": 2, "top_padding_size": 3,
                    "bottom_padding_size": 1, "padding_value": 7}, 8, 8, 8, 7)

    def test_faults(self):
        p = self.path("p.onnx", picture_model([1, 3, 4, 4]))
        for text in ("", "aipp_op {", "aipp_op { aipp_mode: static }", "aipp_op { input_format: RGB888_U8 crops: true }",
                     "aipp_op { input_format: RAW10 }", "aipp_op { input_format: RGB888_U8 mean_chn_0: 300 }",
                     "aipp_op { aipp_mode: dynamic }", "aipp_op { input_format: YUV400_U8 }",
                     "aipp_op { input_format: RGB888_U8 related_input_rank: 3 }",
                     "aipp_op { input_format: RGB888_U8 src_image_size_w: 5 src_image_size_h: 4 }"):
            with self.subTest(text):
                self.refused(self.atc("--insert_op_conf=" + self.path("a.cfg", text), model=p), "E10052")
        ok = self.path("ok.cfg", "aipp_op { aipp_mode: static input_format: RGB888_U8 }")
        self.refused(self.atc("--insert_op_conf=" + ok, "--input_fp16_nodes=x", model=p), "E10034")

    def check_dynamic(self, formats, keys, h, w):
        """Records of a batch of two give what static configurations of the two give."""
        ids = {"YUV420SP_U8": 1, "RGB888_U8": 3}
        model = mm.model(mm.graph("p", [mm.node("Neg", ["x"], ["n"]), mm.node("Neg", ["n"], ["y"])],
                                  [mm.value_info("x", mm.F32, [2, 3, h, w])], [mm.value_info("y", mm.F32, [2, 3, h, w])]))
        self.works("--insert_op_conf=" + self.path("a.cfg", "aipp_op { aipp_mode: dynamic max_src_image_size: 512 }"),
                   model=self.path("p.onnx", model))
        for form in formats:
            k = {"input_format": form, **keys}
            size = h * w * 3 if form == "RGB888_U8" else h * w * 3 // 2
            data = bytes((i * 91 + i * i * 17 + 3) % 256 for i in range(2 * size))
            record = [ids[form], k.get("csc_switch") == "true", k.get("rbuv_swap_switch") == "true", 0, w, h]
            record += [k.get("matrix_r%dc%d" % (i, j), 0) for i in range(3) for j in range(3)]
            record += [k.get("output_bias_%d" % i, 0) for i in range(3)] + [k.get("input_bias_%d" % i, 0) for i in range(3)]
            record += [0] * 15
            record += [k.get("mean_chn_%d" % i, 0) for i in range(4)] + [k.get("min_chn_%d" % i, 0) for i in range(4)]
            record += [k.get("var_reci_chn_%d" % i, 1) for i in range(4)]
            self.assertEqual(len(record), 48)
            self.run_model(self.path("x.bin", data.ljust(512, b"\0")), self.path("r.bin", struct.pack("<96f", *record, *record)))
            with open(os.path.join(self.folder, "out", "y.npy"), "rb") as f:
                raw = f.read()
            want = aipp_reference(k, data[:size], h, w) + aipp_reference(k, data[size:], h, w)
            self.assertEqual(list(struct.unpack("<%df" % len(want), raw[-4 * len(want):])), want)

    def test_dynamic(self):
        self.check_dynamic(["YUV420SP_U8", "RGB888_U8"], {"rbuv_swap_switch": "true", **self.NORM}, 4, 6)
        yuv = {k: v for k, v in self.YUV.items() if k != "input_format"}
        self.check_dynamic(["YUV420SP_U8"], {**yuv, **self.NORM}, 6, 4)

    def test_dynamic_compiles(self):
        p = self.path("p.onnx", picture_model([2, 3, 4, 4]))
        self.works("--insert_op_conf=" + self.path("a.cfg", "aipp_op { aipp_mode: dynamic max_src_image_size: 4096 }"), model=p)
        d = self.description()
        self.assertEqual(d["aipp"][0]["mode"], "dynamic")
        self.assertEqual([(i["name"], i["dims"]) for i in d["inputs"]], [("x", [4096]), ("ascend_dynamic_aipp_data", [2, 48])])


class ZEveryCode(unittest.TestCase):
    """Last by name: what the tests before have provoked."""

    def test_every_code_is_provoked(self):
        # E13001 cannot happen to root, E19999 is a fault of GE itself.
        self.assertEqual(set(CODES) - SEEN - {"E13001", "E19999"}, set())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
