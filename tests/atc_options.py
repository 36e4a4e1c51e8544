"""Options and error codes of atc: every option has a test, every code that can occur is provoked.

  python3 tests/atc_options.py BUILD_FOLDER MODELS_FOLDER

Preprocessing, precision and single operators have files of their own, which run with this one.
"""
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import unittest

from atc_aipp import Aipp  # noqa: F401
from atc_case import ATC, CODES, GE, MODELS, OPTIONS, ROOT, SEEN, Case, help_markdown, mm, picture_model
from atc_precision import NodeOrder, Precision  # noqa: F401
from atc_singleop import SingleOp  # noqa: F401


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
            if treatment != "accepted" or option == "enable_compress_weight":
                continue
            first = re.split(r"[|]", values)[0]
            given.append("--%s=%s" % (option, empty if values == "FILE" else first.strip('"')))
        out = self.works(*given)
        for g in given:
            self.assertIn("[%s]" % g.split("=")[0], out)
        self.assertIn("[--enable_compress_weight]", self.works("--enable_compress_weight=true"))

    def test_memory_limit(self):
        self.works("--memory_limit=100000000", "--input_shape=x:1,3,16,16")
        for limit in ("0", "-1", "1M"):
            self.refused(self.raw("--model=" + os.path.join(os.path.abspath(MODELS), "conv.onnx"), "--framework=5", "--output=" + self.out,
                                  "--memory_limit=" + limit), "E10001")
        # Less than one result needs.
        status, _, err = self.raw("--model=" + os.path.join(os.path.abspath(MODELS), "chain.onnx"), "--framework=5", "--output=" + self.out,
                                  "--interpret", "--memory_limit=64", "--opt_level=0")
        self.assertNotEqual(status, 0)
        self.assertIn("E10001: ", err)
        self.assertIn("memory_limit: the arena needs", err)

    def test_spilled_values(self):
        """A limit that spilling alone reaches: the same results, the file says what is moved, and no file stays."""
        ladder = self.path("ladder.onnx", mm.ladder())

        def results(*options):
            said = self.works("--opt_level=0", *options, model=ladder)
            done = subprocess.run([GE, "om", self.out + ".om"], capture_output=True, text=True)
            self.run_model()
            folder = self.path("out")
            values = []
            for name in sorted(os.listdir(folder)):
                with open(os.path.join(folder, name), "rb") as f:
                    values.append(f.read())
            return said, done.stdout, values, int(re.search(r"arena (\d+) bytes", done.stdout).group(1))

        _, shown, plain, arena = results()
        self.assertNotIn("spilled", shown)
        said, shown, spilled, less = results("--disable_passes=recompute,strips", "--memory_limit=%d" % (arena // 2))
        self.assertRegex(said, r"[1-9] are spilled \([1-9]\d* bytes written, [1-9]\d* read in each run\)")
        self.assertRegex(shown, r"spilled values [1-9]")
        self.assertLessEqual(less, arena // 2)
        self.assertEqual(plain, spilled)
        _, _, err = self.atc("--opt_level=0", "--memory_limit=64", model=ladder)
        least = int(re.search(r"the arena needs (\d+) bytes", err).group(1))
        self.assertLessEqual(results("--opt_level=0", "--memory_limit=%d" % least)[3], least)

    def test_steps_in_the_way(self):
        """What one step does may keep another from helping: the least arena is that of the best of them."""
        crossed = self.path("crossed.onnx", mm.crossed())

        def least(*options):
            _, _, err = self.atc("--interpret", "--memory_limit=64", *options, model=crossed)
            return int(re.search(r"the arena needs (\d+) bytes", err).group(1))

        reached = least()
        self.assertEqual(reached, least("--disable_passes=strips"))
        said = self.works("--interpret", "--memory_limit=%d" % reached, model=crossed)
        self.assertRegex(said, r"0 in strips, [1-9] are spilled .* to %d bytes" % reached)

    def test_streams(self):
        self.works("--enable_single_stream=true")
        for mode in ("cv", "LoadBalance:4", "MainStream:16"):
            self.works("--multi_stream_parallel_mode=" + mode)
        for mode in ("LoadBalance:1", "MainStream:17", "Other:2"):
            self.refused(self.raw("--model=a", "--framework=5", "--output=b", "--multi_stream_parallel_mode=" + mode),
                         "E10001")

    def test_stream_labels(self):
        nodes = [mm.node("Abs", ["x"], ["a"]), mm.node("Relu", ["a"], ["b"]), mm.node("Neg", ["a"], ["c"]),
                 mm.node("Mul", ["b", "c"], ["d"])]
        model = self.path("fork.onnx", mm.model(mm.graph("fork", nodes, [mm.value_info("x", mm.F32, [4])],
                                                         [mm.value_info("d", mm.F32, [4])])))
        def lanes(*options):
            self.works("--opt_level=0", *options, model=model)
            plan = subprocess.run([GE, "om", self.out + ".om", "--plan"], capture_output=True, text=True).stdout
            return [int(m) for m in re.findall(r"^task .* lane=(\d+)", plan, re.M)]
        self.assertEqual(lanes(), [])
        self.assertEqual(lanes("--stream_labels=b_Relu:left;c_Neg:right"), [0, 1])
        self.assertEqual(lanes("--stream_labels=c_Neg:left"), [1, 0])
        self.assertEqual(lanes("--stream_labels=b_Relu:one;c_Neg:one"), [0, 0])
        self.assertEqual(lanes("--stream_labels=b_Relu:left;c_Neg:right", "--enable_single_stream=true"), [])
        for bad, code in (("b", "E10003"), (":x", "E10003"), ("b:", "E10003"), (";".join("n%d:%d" % (i, i) for i in range(17)), "E10001")):
            self.refused(self.atc("--stream_labels=" + bad, model=model), code)
        self.assertIn("[b_Relu]", self.refused(self.atc("--stream_labels=b_Relu:left;b_Relu:right", model=model), "E10003"))
        self.works("--stream_labels=b_Relu:left;b_Relu:left", model=model)
        status, _, err = self.atc("--stream_labels=nobody:left", model=model)
        self.assertNotEqual(status, 0)
        self.assertIn("E10016: ", err)
        self.assertIn("stream_labels: the model has no node nobody", err)

    def test_every_option_that_works_has_a_test(self):
        folder, text = os.path.join(ROOT, "tests"), ""
        for name in os.listdir(folder):
            if name.startswith("atc_") or name == "command_lines.py":
                with open(os.path.join(folder, name)) as f:
                    text += f.read()
        works = [o for o, (_, treatment) in OPTIONS.items() if treatment == "works"]
        self.assertEqual([o for o in works if "--" + o not in text], [])

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


class Known(Case):
    """The options that public command lines use, by what is to be done with them."""

    WORKS = """help mode model framework output output_type soc_version input_shape input_shape_range input_format
        dynamic_batch_size dynamic_image_size dynamic_dims singleop om json dump_mode check_report display_model_info out_nodes
        input_fp16_nodes insert_op_conf op_name_map external_weight host_env_os host_env_cpu precision_mode precision_mode_v2
        modify_mixlist keep_dtype customize_dtypes op_precision_mode op_select_implmode optypelist_for_implmode
        fusion_switch_file optimization_switch oo_level oo_constant_folding oo_dead_code_elimination export_compile_stat
        topo_sorting_mode disable_reuse_memory enable_single_stream multi_stream_parallel_mode is_weight_clip deterministic
        deterministic_level raw_ge_options raw_ge_options_ignore_unsupported log"""
    ACCEPTED = """input_hint_shape is_input_adjust_hw_layout is_output_adjust_hw_layout allow_hf32 buffer_optimize
        ac_parallel_enable tiling_schedule_optimize h2d_overlapped_with_compute enable_small_channel atomic_clean_policy
        virtual_type core_type jit_compile shape_generalized_build_mode static_model_ops_lower_limit aicore_num quant_dumpable
        enable_compress_weight compress_weight_conf sparsity enable_attr_compression mdl_bank_path op_compiler_cache_mode
        op_compiler_cache_dir debug_dir op_debug_level op_debug_config status_check save_original_model build_config
        enable_scope_fusion_passes cal_conf target device_id"""
    REFUSED = "weight cluster_config hccl_sub_comm_config compression_optimize_conf auto_tune_mode"

    def test_treatment(self):
        for treatment, names in (("works", self.WORKS), ("accepted", self.ACCEPTED), ("refused", self.REFUSED)):
            for name in names.split():
                self.assertEqual(OPTIONS.get(name, (None, None))[1], treatment, name)

    def test_refused_are_refused(self):
        file = self.path("f", "x")
        for option, (_, treatment) in OPTIONS.items():
            if treatment == "refused":
                with self.subTest(option):
                    self.refused(self.atc("--%s=%s" % (option, file)), "E10060" if option == "auto_tune_mode" else "E10055")


class Refusals(Case):
    def test_refused_options(self):
        f = self.path("f", "x")
        for args, code in (
                (["--mode=30"], "E10055"), (["--cluster_config=" + f], "E10055"),
                (["--hccl_sub_comm_config=" + f], "E10055"), (["--compression_optimize_conf=" + f], "E10055"),
                (["--host_env_cpu=aarch64", "--soc_version=x86-64-v3"], "E10056"),
                (["--host_env_cpu=aarch64", "--tune", "--op_bank_path=" + self.folder], "E10055"), (["--precision_mode_v2=cube_hif8"], "E10055"),
                (["--weight=" + f], "E10055"), (["--output_type=HIF8"], "E10055"), (["--auto_tune_mode=GA"], "E10060"),
                (["--nothing=1"], "E10060"), (["stray"], "E10060"),
                (["--output_type=FP7"], "E10001"), (["--opt_level=9"], "E10001"), (["--cc="], "E10004"),
                (["--precision_mode=force_fp32", "--precision_mode_v2=origin"], "E10056"),
                (["--enable_single_stream=true", "--multi_stream_parallel_mode=cv"], "E10056"),
                (["--optypelist_for_implmode=Conv"], "E10057"), (["--tune"], "E10057"),
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

    def test_output(self):
        os.mkdir(self.path("folder.om"))
        conv = "--model=" + os.path.join(os.path.abspath(MODELS), "conv.onnx")
        self.refused(self.raw(conv, "--framework=5", "--output=" + self.path("folder")), "E10022")
        self.refused(self.raw(conv, "--framework=5", "--output=" + self.path("no/where")), "E13000")

    def test_solutions_fit(self):
        for args, text in ((["--framework=5", "--model=" + self.folder, "--output=" + self.path("o")], "a plain file, no folder"),
                           (["--mode=6", "--om=" + self.path("absent.om")], "check the path"),
                           (["--framework=0", "--model=a", "--output=b"], "export the model as ONNX")):
            done = self.raw(*args)
            self.assertEqual(done[0], 1)
            self.assertIn("Solution: " + text, done[2])

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
        self.refused(self.atc(model=self.path("nothing.onnx", b"\x08\x08")), "E16004")
        unknown = mm.model(mm.graph("u", [mm.node("NoSuchOp", ["x"], ["y"])], [mm.value_info("x", mm.F32, [2])],
                                    [mm.value_info("y", mm.F32, [2])]))
        self.refused(self.atc(model=self.path("unknown.onnx", unknown)), "E16002")
        closed = self.path("closed", "x")
        os.chmod(closed, 0)
        conv = self.path("conv.onnx")
        shutil.copy(os.path.join(os.path.abspath(MODELS), "conv.onnx"), conv)
        self.assertIn("check its rights", self.refused(
            self.as_nobody("--model=" + conv, "--framework=5", "--output=" + self.out, option + closed), "E13001"))
        self.refused(self.as_nobody("--singleop=" + closed, "--output=" + self.folder), "E10024")

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
        self.refused(self.atc("--out_nodes=v3", "--output_type=v3:FP16;v3:FP32", model=chain), "E10003")

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
        self.refused(self.atc("--op_name_map=" + self.path("map", "MyRelu:Relu\nMyRelu:Abs\n"), model=self.path("c.onnx", custom)), "E10014")

    def test_switches(self):
        norm = [mm.tensor(n, mm.F32, [4], [0.5, 1.0, 2.0, 4.0]) for n in ("s", "b", "m", "v")]
        pair = [mm.node("Conv", ["x", "w"], ["c"]), mm.node("BatchNormalization", ["c", "s", "b", "m", "v"], ["y"])]
        model = self.path("bn.onnx", mm.model(mm.graph(
            "bn", pair, [mm.value_info("x", mm.F32, [1, 3, 5, 5])], [mm.value_info("y", mm.F32, [1, 4, 3, 3])],
            [mm.tensor("w", mm.F32, [4, 3, 3, 3], [0.1 * i for i in range(108)])] + norm)))
        log = self.works("--log=info", model=model)
        self.assertRegex(log, r"(?m)^conv_batch_norm: c_Conv \+ y_BatchNormalization: applied$")
        applied = set(re.findall(r"^rule (\S+) applied", log, re.M))
        self.assertIn("conv_batch_norm", applied)
        off = self.path("all", '{"Switch":{"GraphFusion":{"ALL":"off"},"UBFusion":{"ALL":"off"}}}')
        self.assertNotIn("applied", self.works("--fusion_switch_file=" + off, "--log=info", model=model))
        for rule in applied:
            lines, text = self.path("lines", "%s:off\n" % rule), "rule %s applied" % rule
            file, line = "--fusion_switch_file=" + lines, "--optimization_switch=%s:" % rule
            self.assertNotIn(text, self.works(file, "--log=info", model=model))
            self.assertNotIn(text, self.works(line + "off", "--log=info", model=model))
            self.assertIn(text, self.works(file, line + "on", "--log=info", model=model))
        steps = ["layout", "cube", "winograd", "order", "strips", "recompute", "spill", "write_over", "channel_parts"]
        for option in ("--optimization_switch=" + ";".join(s + ":off" for s in ["NoSuchPass"] + steps),
                       "--disable_passes=" + ",".join(["NoSuchPass"] + steps)):
            said = self.works(option)
            self.assertIn("[NoSuchPass] names no pass or rule", said)
            self.assertEqual(said.count("names no pass"), 1)
            self.assertTrue(all(step in self.description()["policy"] for step in steps))
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

    def test_determinism_and_host(self):
        chain = os.path.join(os.path.abspath(MODELS), "chain.onnx")
        results = set()
        for args in ((), ("--deterministic=1",), ("--deterministic_level=2",), ("--host_env_os=linux", "--host_env_cpu=x86_64")):
            self.works(*args, model=chain)
            self.run_model()
            for name in os.listdir(self.path("out")):
                with open(os.path.join(self.folder, "out", name), "rb") as f:
                    results.add((name, f.read()))
        self.assertEqual(len(results), 1)
        self.refused(self.atc("--host_env_os=other"), "E10001")

    def test_kernels_are_kept(self):
        kernels = lambda: int(re.search(r"\((\d+) compiled", self.raw(
            "--model=" + os.path.join(os.path.abspath(MODELS), "branch.onnx"), "--framework=5", "--output=" + self.out,
            "--log=info", "--cache_dir=" + self.path("cache"))[1]).group(1))
        self.assertGreater(kernels(), 0)
        self.assertEqual(kernels(), 0)

    def test_tuning(self):
        conv, bank, tiles = ["--input_shape=x:1,3,16,16"], "--op_bank_path=" + self.folder, self.path("tiles.txt")
        model = os.path.join(os.path.abspath(MODELS), "conv.onnx")
        out = self.works("--tune", bank, *conv, model=model)
        self.assertRegex(out, r"untuned [0-9.]+ ms, tuned [0-9.]+ ms")
        with open(tiles) as f:
            self.assertTrue(f.readline().startswith("#"))
        problem = next(t["problem"] for t in self.description()["tasks"] if t.get("problem", "").startswith("conv"))
        self.assertFalse([name for name in os.listdir(self.folder) if name.startswith("trial")])
        tile = lambda: [task.get("tile", "") for task in self.description()["tasks"]]
        self.path("tiles.txt", "# by hand\n%s = 2x1 rows=3 order=mn\n" % problem)
        self.works(bank, *conv, model=model)
        self.assertIn(problem + " = 2x1 rows=3 order=mn", self.description()["policy"])
        self.assertTrue(any("2x1 rows=3 order=mn" in t for t in tile()), tile())
        # By node, with what it may be and what it may not.
        self.path("tiles.txt", "a_Conv = rows=2\nnowhere = 2x1\n%s = 40x9\n" % problem)
        out = self.works(bank, *conv, model=model)
        self.assertTrue(any("rows=2" in t for t in tile()), tile())
        self.assertIn("tiles.txt line 2: the model has no node nowhere", out)
        self.path("tiles.txt", "%s = 40x9\n" % problem)
        self.assertRegex(self.works(bank, *conv, model=model), "note: .*tiles.txt line 1: tile 40x9 of problem .* is not possible")
        for line, text in (("a_Conv = 40x9", "line 1: tile 40x9 of node a_Conv is not possible: it takes 370 of"),
                           ("a_Conv = rows=99", "line 1: rows=99 of node a_Conv is not possible: there are"),
                           ("c_MaxPool = 2x1", "line 1: node c_MaxPool has no tiling to choose"),
                           ("a_Conv = 2x1 fast", r"line 1: [fast] is none of ROWSxVECTORS, rows=N"),
                           ("a_Conv = rows=2 2x1 rows=3", "line 1: [rows=2] and [rows=3] choose the same"),
                           ("a_Conv = winograd direct", "line 1: [winograd] and [direct] choose the same"),
                           ("a_Conv = rows=2\na_Conv = 2x1", "line 2: a_Conv has a line already: %s line 1" % tiles),
                           ("f_Flatten = strips=2", "line 1: strips=2 of node f_Flatten is not possible: it makes no picture")):
            self.path("tiles.txt", line + "\n")
            self.assertIn(text, self.refused(self.atc(bank, *conv, model=model), "E10014"))
        self.path("tiles.txt", "nonsense\n")
        self.refused(self.atc(bank, *conv, model=model), "E10014")
        self.refused(self.atc("--op_bank_path=" + self.path("nowhere"), *conv, model=model), "E13000")

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

    def test_report_names_every_fault(self):
        """Faults of all kinds in one model, in the branches of an If and behind each other, all in one run."""
        f32 = lambda name: mm.value_info(name, mm.F32, [2, 3])
        bad = mm.node("Relu", ["x"], ["g"]) + mm.field(5, mm.field(1, "many") + mm.field(20, 9))  # a list of tensors
        then = mm.graph("then", [mm.node("Mystery", ["x"], ["t"])], [], [f32("t")])
        other = mm.graph("else", [mm.node("Cos", ["x"], ["e0"]), mm.node("BitwiseNot", ["e0"], ["e"])], [], [f32("e")])
        nodes = [mm.node("FindMax", ["x"], ["a"]), mm.node("BitwiseNot", ["a"], ["b"]), mm.node("Neg", ["b"], ["unseen"]),
                 mm.node("If", ["c"], ["d"], then_branch=then, else_branch=other), bad, mm.node("Abs", ["odd"], ["h"]),
                 mm.node("ArgMax", ["x"], ["i"], axis=7), mm.node("Relu", ["x"], ["y"])]
        inputs = [f32("x"), mm.value_info("c", mm.BOOL, []), mm.value_info("odd", 99, [1])]
        graph = mm.graph("g", nodes, inputs, [f32("y"), f32("d")]) + mm.field(13, f32("a"))
        model, result = self.path("faults.onnx", mm.model(graph, 20)), self.path("faults.json")
        message = self.refused(self.raw("--mode=3", "--model=" + model, "--framework=5", "--check_report=" + result), "E16002")
        with open(result) as f:
            report = json.load(f)
        self.assertEqual(report["result"], "failed")
        found = {f["node"]: f for f in report["unsupported"]}
        self.assertEqual({n: (f["kind"], f["operator"], f["opset"]) for n, f in found.items()},
                         {"a_FindMax": ("operator", "FindMax", 20), "t_Mystery": ("operator", "Mystery", 20),
                          "b_BitwiseNot": ("node", "BitwiseNot", 20), "e_BitwiseNot": ("node", "BitwiseNot", 20),
                          "g_Relu": ("attribute", "Relu", 20), "odd": ("type", "", 0), "i_ArgMax": ("node", "ArgMax", 20)})
        for text in ("axis 7", "rank 2"):
            self.assertIn(text, found["i_ArgMax"]["reason"])
        self.assertIn("node 'd_If' (If)", found["e_BitwiseNot"]["reason"])
        # An ordinary compile says the same.
        compiled = self.refused(self.atc(model=model), "E16002")
        for name in found:
            self.assertIn("'%s'" % name, message)
            self.assertIn("'%s'" % name, compiled)


class Machine(Case):
    """What goes wrong around atc: compilers, disks, folders."""

    ARGS = ["--framework=5", "--model=" + os.path.join(os.path.abspath(MODELS), "chain.onnx")]

    def compiler(self, body):
        """A compiler that can say its version; the rest is `body`."""
        path = self.path("cc", "#!/bin/sh\n[ \"$1\" = --version ] && echo a compiler 1.0 && exit 0\n%s\n" % body)
        os.chmod(path, 0o755)
        return path

    def test_compilers_that_fail(self):
        for body, text in (("echo internal compiler error: unreachable >&2; exit 4", "internal compiler error: unreachable"),
                           ("kill -9 $$", "failed on generated code"), ("exit 0", "made no file"),
                           ("case \"$*\" in *-shared*) echo no linker; exit 1;; esac; touch $(echo $* | sed 's/.* //')", "no linker"),
                           ("case \"$*\" in *-shared*) exit 0;; esac; touch $(echo $* | sed 's/.* //')", "made no file")):
            with self.subTest(body):
                cc = self.compiler(body)
                done = self.raw(*self.ARGS, "--output=" + self.out, "--cache_dir=off", "--cc=" + cc)
                self.assertIn(text, self.refused(done, "E19999"))
                self.assertEqual(self.raw(*self.ARGS, "--output=" + self.out, "--cache_dir=off", env={**os.environ, "GE_CC": cc})[0], 1)
                self.assertFalse(os.path.exists(self.out + ".om"))

    def test_no_compiler(self):
        out = self.raw(*self.ARGS, "--output=" + self.out, "--cc=" + self.path("nowhere"))
        self.assertEqual(out[0], 0, out[2])
        self.assertIn("no C compiler found", out[1])
        self.run_model()

    def test_disks_and_folders(self):
        self.refused(self.raw(*self.ARGS, "--output=/proc/self/model", "--interpret"), "E13004")
        self.assertIn("cannot be written: kernels are not kept", self.works("--cache_dir=/proc/self/cache"))
        self.assertNotIn("are not kept", self.works("--cache_dir=" + self.path("kept")))
        done = self.raw(*self.ARGS, "--output=" + self.out, env={**os.environ, "GE_CACHE_DIR": "/proc/self/cache"})
        self.assertIn("[GE_CACHE_DIR] /proc/self/cache cannot be written: kernels are not kept", done[1])
        self.refused(self.raw(*self.ARGS, "--output=" + self.out, "--cache_dir=off", env={**os.environ, "TMPDIR": self.path("nowhere")}),
                     "E13004")
        # A disk that is full after 1 KB.
        full = subprocess.run(["sh", "-c", "trap '' XFSZ; ulimit -f 2; exec \"$0\" \"$@\"", ATC, *self.ARGS, "--interpret",
                               "--output=" + self.out + "2"], capture_output=True, text=True, cwd=self.folder)
        self.refused((full.returncode, full.stdout, full.stderr), "E13004")
        self.assertEqual([f for f in os.listdir(self.folder) if f.startswith("m2")], [])


class ZEveryCode(unittest.TestCase):
    """Last by name: what the tests before have provoked."""

    def test_every_code_is_provoked(self):
        self.assertEqual(set(CODES) - SEEN, set())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
