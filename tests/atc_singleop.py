"""--singleop of atc: operators of a JSON list become files that compute what they should; runs with atc_options.py."""
import json
import os
import struct
import subprocess

from atc_case import GE, Case


def desc(shape, dtype="float", form="ND"):
    return {"format": form, "shape": shape, "type": dtype}


class SingleOp(Case):
    def compile(self, ops):
        return self.raw("--singleop=" + self.path("ops.json", json.dumps(ops)), "--output=" + self.path("models"), "--interpret",
                        "--soc_version=Ascend910")

    def values(self, name, *inputs, shapes=()):
        folder = self.path("out")
        args = [GE, "run", os.path.join(self.path("models"), name + ".om"), "--output", folder]
        for i, data in enumerate(inputs):
            args += ["--input", self.path("in%d.bin" % i, struct.pack("<%df" % len(data), *data))]
        for shape in shapes:
            args += ["--shape", shape]
        done = subprocess.run(args, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(os.path.join(folder, "y0.npy"), "rb") as f:
            data = f.read()
        data = data[10 + struct.unpack("<H", data[8:10])[0]:]
        return list(struct.unpack("<%df" % (len(data) // 4), data))

    def test_names_and_values(self):
        two = [desc([2, 2]), desc([2, 2])]
        flag = lambda name: {"name": name, "type": "bool", "value": True}
        status, out, err = self.compile([
            {"op": "Add", "input_desc": [desc([8, 16], "int32"), desc([8, 16], "int32")], "output_desc": [desc([8, 16], "int32")]},
            {"op": "MatMulV2", "name": "product", "input_desc": two, "output_desc": [desc([2, 2])],
             "attr": [flag("transpose_x1"), {"name": "transpose_x2", "type": "bool", "value": False}]},
            {"op": "GEMM", "name": "gemm", "input_desc": two + [desc([2, 2]), desc([]), desc([])], "output_desc": [desc([2, 2])],
             "attr": [flag("transpose_b")]},
            {"op": "ReduceSumD", "name": "sum", "input_desc": [desc([2, 2])], "output_desc": [desc([2])],
             "attr": [{"name": "axes", "type": "list_int", "value": [1]}, {"name": "keep_dims", "type": "bool", "value": False}]},
            {"op": "SoftmaxV2", "name": "softmax", "input_desc": [desc([1, 2])], "output_desc": [desc([1, 2])],
             "attr": [{"name": "axes", "type": "list_int", "value": [-1]}]},
            {"op": "Cast", "name": "cast", "input_desc": [desc([2], "float16")], "output_desc": [desc([2])],
             "attr": [{"name": "dst_type", "type": "int", "value": 0}]},
            {"op": "LeakyRelu", "name": "leaky", "input_desc": [desc([-1, 2])], "output_desc": [desc([-1, 2])],
             "attr": [{"name": "alpha", "type": "float", "value": 0.5}]}])
        self.assertEqual(status, 0, err)
        self.assertIn("0_Add_3_2_8_16_3_2_8_16_3_2_8_16.om", out)
        self.assertEqual(sorted(os.listdir(self.path("models"))), sorted(
            ["0_Add_3_2_8_16_3_2_8_16_3_2_8_16.om"] + [n + ".om" for n in ("product", "gemm", "sum", "softmax", "cast", "leaky")]))
        a, b = [1, 2, 3, 4], [5, 6, 7, 8]
        self.assertEqual(self.values("product", a, b), [26, 30, 38, 44])  # transposed a times b
        self.assertEqual(self.values("gemm", a, b, [1, 1, 1, 1], [2], [10]), [44, 56, 88, 116])  # 2 a b' + 10 c
        self.assertEqual(self.values("sum", a), [3, 7])
        self.assertEqual(self.values("softmax", [3, 3]), [0.5, 0.5])
        self.assertEqual(self.values("leaky", [-2, 2, 4, -8], shapes=["x0:2,2"]), [-1, 2, 4, -4])

    def test_faults(self):
        ok = {"op": "Add", "input_desc": [desc([2]), desc([2])], "output_desc": [desc([2])]}
        attr = lambda a: [{**ok, "attr": [a]}]
        for ops, code in (
                ({}, "E10025"), ([], "E10025"), ([1], "E10032"), ([{**ok, "op": ""}], "E10026"), ([{**ok, "op": "NoSuchOp"}], "E10501"),
                ([{**ok, "input_desc": [desc([2], "float7")]}], "E10027"), ([{**ok, "input_desc": [desc([2], form="HW")]}], "E10027"),
                ([{**ok, "input_desc": [desc([-2])]}], "E10028"), ([{**ok, "input_desc": [{"format": "ND", "type": "float"}]}], "E10028"),
                ([{"op": "Add", "output_desc": []}], "E10032"), ([{**ok, "output_desc": []}], "E10032"),
                (attr({"type": "int", "value": 1}), "E10029"), (attr({"name": "a", "type": "int", "value": "x"}), "E10030"),
                (attr({"name": "a", "type": "list_int", "value": 1}), "E10030"), ([ok, {**ok, "name": "0_Add_0_2_2_0_2_2_0_2_2"}], "E10032"),
                ([{**ok, "name": "a/b"}], "E10032"), ([{**ok, "output_desc": [desc([3])]}], "E10032"),
                ([{**ok, "output_desc": [desc([2], "int32")]}], "E10032")):
            with self.subTest(ops):
                self.refused(self.compile(ops), code)
        self.refused(self.raw("--singleop=" + self.path("absent"), "--output=x"), "E10023")
        self.refused(self.raw("--singleop=" + self.path("bad", "{"), "--output=x"), "E10025")
        self.refused(self.raw("--singleop=" + self.path("ops.json")), "E10004")
        if os.getuid() != 0:
            closed = self.path("closed", "[]")
            os.chmod(closed, 0)
            self.refused(self.raw("--singleop=" + closed, "--output=x"), "E10024")
