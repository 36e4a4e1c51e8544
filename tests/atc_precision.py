"""Precision modes of atc: values are rounded where half precision rounds, and only there; node orders.

Runs with atc_options.py.
"""
import json
import os
import re
import struct

from atc_case import Case, mm


def halves(values):
    return [struct.unpack("<e", struct.pack("<e", v))[0] for v in values]


class Precision(Case):
    """y = Relu(x @ w) + b, with values that half precision cannot hold."""
    X = [2049.0, 1.0, -3.0, 0.1]
    W = [1.0, 0.25, 1.0, 2.0, 0.1, 1.0, 4097.0, 1.0]  # 4x2
    B = [0.3, -0.7]

    def model(self):
        tensors = [mm.tensor("w", mm.F32, [4, 2], self.W), mm.tensor("b", mm.F32, [2], self.B)]
        nodes = [mm.node("MatMul", ["x", "w"], ["p"]), mm.node("Relu", ["p"], ["r"]), mm.node("Add", ["r", "b"], ["y"])]
        return self.path("p.onnx", mm.model(mm.graph("p", nodes, [mm.value_info("x", mm.F32, [1, 4])],
                                                     [mm.value_info("y", mm.F32, [1, 2])], tensors)))

    def result(self, *args):
        self.note = self.works(*args, model=self.model())
        self.run_model(self.path("x.bin", struct.pack("<4f", *self.X)))
        with open(os.path.join(self.folder, "out", "y.npy"), "rb") as f:
            return list(struct.unpack("<2f", f.read()[-8:]))

    def expect(self, got, operands, product, total):
        """Rounds operands of the product, the product, the sum, as told."""
        rounded = lambda on, v: halves(v) if on else v
        x, w = rounded(operands, self.X), rounded(operands, self.W)
        p = rounded(product, [sum(x[k] * w[2 * k + j] for k in range(4)) for j in range(2)])
        b = rounded(total, self.B)
        want = rounded(total, [max(0.0, p[j]) + b[j] for j in range(2)])
        for g, v in zip(got, want):
            # f32 arithmetic on both sides; a half's step is 1 and more here.
            self.assertAlmostEqual(g, v, delta=abs(v) * 1e-6)

    def test_modes(self):
        for args in ((), ("--precision_mode=force_fp32",), ("--precision_mode=must_keep_origin_dtype",),
                     ("--precision_mode=allow_fp32_to_fp16",), ("--precision_mode_v2=origin",)):
            self.expect(self.result(*args), False, False, False)
            self.assertNotIn("half precision", self.note)
        for args in ("--precision_mode=force_fp16", "--precision_mode_v2=fp16"):
            self.expect(self.result(args), True, True, True)
            self.assertIn("note: 3 nodes compute in half precision", self.note)
        for args in ("--precision_mode=allow_mix_precision", "--precision_mode=allow_mix_precision_fp16",
                     "--precision_mode_v2=mixed_float16"):
            self.expect(self.result(args), True, True, True)  # Relu and Add follow the product
        for args in ("--precision_mode=cube_fp16in_fp32out", "--precision_mode_v2=cube_fp16in_fp32out"):
            self.expect(self.result(args), True, False, False)
        for args in ("--precision_mode=allow_mix_precision_bf16", "--precision_mode_v2=mixed_bfloat16"):
            got = self.result(args, "--soc_version=x86-64-v3")  # without dots in bf16
            for v in got:
                self.assertEqual(struct.pack("<f", v)[:2], b"\0\0")  # the lower half of an f32

    def test_exceptions(self):
        keep = self.path("keep", "# stays\nOpType::MatMul\ny_Add\n")
        self.expect(self.result("--precision_mode=force_fp16", "--keep_dtype=" + keep), False, True, False)
        black = self.path("black.json", json.dumps({"black-list": {"to-add": ["Add"]}}))
        self.expect(self.result("--precision_mode=allow_mix_precision", "--modify_mixlist=" + black), True, True, False)
        none = self.path("none.json", json.dumps({"white-list": {"to-remove": ["MatMulV2"]}}))
        self.expect(self.result("--precision_mode=allow_mix_precision", "--modify_mixlist=" + none), False, False, False)
        grey = self.path("grey.json", json.dumps({"gray-list": {"to-add": ["MatMul"]}, "white-list": {"to-add": ["Add"]}}))
        self.expect(self.result("--precision_mode=allow_mix_precision", "--modify_mixlist=" + grey), False, True, True)
        custom = self.path("custom", "OpType::MatMul:InputDtype:float16,float16,OutputDtype:float32\n")
        self.expect(self.result("--customize_dtypes=" + custom), True, False, False)
        self.assertIn("note: 1 nodes", self.note)

    def test_overflow(self):
        p = self.path("a.onnx", mm.model(mm.graph("a", [mm.node("Add", ["x", "x"], ["y"])], [mm.value_info("x", mm.F32, [2])],
                                                  [mm.value_info("y", mm.F32, [2])])))
        self.works("--precision_mode=force_fp16", model=p)
        self.run_model(self.path("x.bin", struct.pack("<2f", 40000, 2049)))
        with open(os.path.join(self.folder, "out", "y.npy"), "rb") as f:
            self.assertEqual(struct.unpack("<2f", f.read()[-8:]), (float("inf"), 4096.0))

    def test_weights_are_clipped(self):
        p = self.path("c.onnx", mm.model(mm.graph("c", [mm.node("Mul", ["x", "w"], ["y"])], [mm.value_info("x", mm.F32, [2])],
                                                  [mm.value_info("y", mm.F32, [2])], [mm.tensor("w", mm.F32, [2], [1e6, -1e6])])))
        for args, want in (((), 8188.0), (("--is_weight_clip=0",), float("inf"))):
            self.works("--precision_mode=force_fp16", *args, model=p)
            self.run_model(self.path("x.bin", struct.pack("<2f", 0.125, 0.125)))
            with open(os.path.join(self.folder, "out", "y.npy"), "rb") as f:
                self.assertEqual(struct.unpack("<2f", f.read()[-8:]), (want, -want))

    def test_models_of_halves(self):
        """y = (x + 2048) - 2048 in f16: one step is 2 there. By default only y is rounded."""
        p = self.path("h.onnx", mm.model(mm.graph(
            "h", [mm.node("Add", ["x", "c"], ["a"]), mm.node("Sub", ["a", "c"], ["y"])], [mm.value_info("x", 10, [4])],
            [mm.value_info("y", 10, [4])], [mm.tensor("c", 10, [], [2048.0])])))
        x = [1.0, 2.0, 3.0, 0.5]
        for args, want in (((), x), (("--precision_mode=force_fp32",), x), (("--precision_mode_v2=origin",), [0, 2, 4, 0]),
                           (("--precision_mode=must_keep_origin_dtype",), [0, 2, 4, 0]),
                           (("--precision_mode=force_fp16",), [0, 2, 4, 0])):
            self.works(*args, model=p)
            self.run_model(self.path("x.bin", struct.pack("<4e", *x)))
            with open(os.path.join(self.folder, "out", "y.npy"), "rb") as f:
                self.assertEqual(list(struct.unpack("<4e", f.read()[-8:])), want, args)

    def test_log_names_the_nodes(self):
        out = self.works("--precision_mode=force_fp16", "--log=info", model=self.model())
        self.assertRegex(out, r"precision: \S+ \(MatMul\) computes in f16")

    def test_faults(self):
        for option, text, code in (("modify_mixlist", "[1]", "E13005"), ("modify_mixlist", '{"pink-list": {}}', "E10014"),
                                   ("modify_mixlist", '{"white-list": {"to-add": [1]}}', "E10014"),
                                   ("customize_dtypes", "node", "E10014"), ("customize_dtypes", "n:InputDtype:int4", "E10014"),
                                   ("keep_dtype", None, "E13000")):
            path = self.path("absent") if text is None else self.path("f", text)
            self.refused(self.atc("--%s=%s" % (option, path), model=self.model()), code)


class NodeOrder(Case):
    def test_orders(self):
        """Two chains a and b of three from one input, joined: in which order do their nodes run?"""
        nodes = []
        for chain in "ab":
            for i, kind in enumerate(("Exp", "Sin", "Cos")):
                nodes.append(mm.node(kind, [chain + str(i - 1) if i else "x"], [chain + str(i)]))
        # The file has the chains interleaved.
        nodes = [nodes[0], nodes[3], nodes[4], nodes[1], nodes[2], nodes[5], mm.node("Sub", ["b2", "a2"], ["y"])]
        p = self.path("o.onnx", mm.model(mm.graph("o", nodes, [mm.value_info("x", mm.F32, [4])], [mm.value_info("y", mm.F32, [4])])))

        def order(*args):
            out = self.works("--log=info", "--opt_level=0", *args, model=p)
            return re.findall(r"^region ([ab]\d)_\w+: kernel", out, re.M)
        self.assertEqual(order(), ["a0", "b0", "b1", "a1", "a2", "b2"])
        self.assertEqual(order("--topo_sorting_mode=3"), order())
        self.assertEqual(order("--topo_sorting_mode=0"), ["a0", "b0", "a1", "b1", "a2", "b2"])
        self.assertEqual(order("--topo_sorting_mode=1"), ["a0", "a1", "a2", "b0", "b1", "b2"])
        self.assertEqual(order("--topo_sorting_mode=2"), ["b0", "b1", "b2", "a0", "a1", "a2"])
