"""Model files that must be refused: one message, no crash, bounded time and memory.

  python3 tests/hostile.py BUILD_FOLDER
"""
import os
import random
import resource
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from make_models import F32, field, graph, model, node, tensor, value_info, varint  # noqa: E402

BUILD = sys.argv[1]
# Nodes that are legal: operator, domain, operands as (element type, dims), attributes. 2 is u8, 3 i8.
F, U, ZERO = (F32, []), (2, [2, 3, 4]), (2, [])
LEGAL = [
    ("Sum", "", [(F32, [2, 3])] * 3, {}), ("Mean", "", [(F32, [2, 3])] * 3, {}), ("Concat", "", [(F32, [2, 3])] * 3, {"axis": 1}),
    ("Range", "", [(7, [])] * 3, {}), ("Squeeze", "", [(F32, [1, 2, 1]), (7, [1])], {}), ("Unsqueeze", "", [(8, [2]), (7, [1])], {}),
    ("Slice", "", [(F32, [4, 5])] + [(7, [1])] * 4, {}), ("Einsum", "", [(F32, [2, 3]), (F32, [3])], {"equation": "ij,j->ij"}),
    ("LSTM", "", [(F32, [4, 2, 3]), (F32, [1, 20, 3]), (F32, [1, 20, 5]), (F32, [1, 40])], {"hidden_size": 5}),
    ("DequantizeLinear", "", [U, F, ZERO], {"axis": 1}), ("QuantizeLinear", "", [(F32, [2, 3]), F, ZERO], {"axis": 1}),
    ("QLinearMatMul", "", [(2, [2, 3]), F, ZERO, (3, [3, 4]), F, (3, []), F, ZERO], {}),
    ("DequantizeLinear", "com.microsoft", [U, F, ZERO], {"axis": 1}), ("QLinearAdd", "com.microsoft", [U, F, ZERO, U, F, ZERO, F, ZERO], {}),
    ("QLinearWhere", "com.microsoft", [(9, [3, 4]), U, F, ZERO, U, F, ZERO, F, ZERO], {}),
    ("QLinearSigmoid", "com.microsoft", [U, F, ZERO, F, ZERO], {}), ("QLinearSoftmax", "com.microsoft", [U, F, ZERO, F, ZERO], {"axis": 1, "opset": 12}),
    ("QLinearConcat", "com.microsoft", [F, ZERO, U, F, ZERO, U, F, ZERO], {"axis": 1}),
    ("QLinearGlobalAveragePool", "com.microsoft", [U, F, ZERO, F, ZERO], {"channels_last": 0}),
    ("QGemm", "com.microsoft", [(2, [4, 3]), F, ZERO, (3, [3, 5]), F, (3, [])], {"transA": 0}),
    ("MatMulIntegerToFloat", "com.microsoft", [(2, [4, 3]), (3, [3, 5]), F, F, ZERO, (3, [])], {}),
    ("RotaryEmbedding", "com.microsoft", [(F32, [2, 3, 4, 8]), (7, [2, 4]), (F32, [16, 4]), (F32, [16, 4])], {"interleaved": 0}),
    ("DynamicQuantizeLSTM", "com.microsoft", [(F32, [5, 2, 6]), (3, [1, 6, 32]), (3, [1, 8, 32]), (F32, [1, 64]), (6, [2]), (F32, [1, 2, 8]),
                                              (F32, [1, 2, 8]), (F32, [1, 24]), (F32, [1]), (3, [1]), (F32, [1]), (3, [1])], {"hidden_size": 8}),
]
SANITIZED = "asan" in BUILD or "tsan" in BUILD
X, Y = value_info("x", F32, [2]), value_info("y", F32, [2])


def limit_memory():
    if not SANITIZED:  # sanitizers reserve terabytes of addresses
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))


def external(location, offset=None, length=None):
    """An initialiser f32[2] whose data lies in a file."""
    entries = [("location", location)] + [(k, str(v)) for k, v in (("offset", offset), ("length", length)) if v is not None]
    return field(1, 2) + field(2, F32) + field(8, "w") + b"".join(field(13, field(1, k) + field(2, v)) for k, v in entries) + field(14, 1)


class Hostile(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()

    def tearDown(self):
        self.folder.cleanup()

    def compile(self, data, name="m.onnx", *options):
        path = os.path.join(self.folder.name, name)
        with open(path, "wb") as f:
            f.write(data)
        if os.path.exists(path + ".om"):
            os.remove(path + ".om")
        done = subprocess.run([os.path.join(BUILD, "bin", "atc"), "--model=" + path, "--framework=5", "--output=" + path, *options],
                              capture_output=True, text=True, timeout=120, preexec_fn=limit_memory)
        self.assertFalse(os.path.exists(path + ".om") and done.returncode)
        return done

    def refused(self, data, *texts):
        done = self.compile(data)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        for text in texts:
            self.assertIn(text, done.stderr)
        self.assertLess(len(done.stderr), 4000)

    def add_model(self, initializer):
        return model(graph("g", [node("Add", ["x", "w"], ["y"])], [X], [Y], [initializer]))

    def test_operands_of_different_types(self):
        """Where ONNX has one type for them, in initialisers and in values."""
        for op, first, second, more in (("Conv", F32, 11, {}), ("Conv", 11, F32, {}), ("MatMul", F32, 11, {}), ("PRelu", F32, 10, {}),
                                        ("Concat", F32, 6, {"axis": 0}), ("Max", F32, 7, {}), ("Gemm", F32, 10, {})):
            dims = [2, 2, 3, 3] if op == "Conv" else [2, 2]
            w = tensor("w", second, dims, [1] * (36 if op == "Conv" else 4))
            x, y = value_info("x", first, [1, 2, 5, 5] if op == "Conv" else [2, 2]), value_info("y", first, ["a"] * len(dims))
            given = model(graph("g", [node(op, ["x", "w"], ["y"], **more)], [x], [y], [w]))
            self.refused(given, "'y_%s' (%s)" % (op, op), "operand 0 is ", "operand 1 is ", "one type")

    def test_changed_operands(self):
        """A node whose operand or attribute is another than it should be: compiled, or refused with its name."""
        rng = random.Random(11)
        for case in range(40 * len(LEGAL)):
            op, domain, operands, attributes = LEGAL[case % len(LEGAL)]
            operands, attributes = [(t, list(dims)) for t, dims in operands], dict(attributes)
            names = ["x%d" % i for i in range(len(operands))]
            at = rng.randrange(len(operands))
            t, dims = operands[at]
            numbers = [a for a, v in attributes.items() if isinstance(v, int)]
            how = "nothing" if case < len(LEGAL) else rng.choice(["absent", "another", "type", "dim", "rank", "attribute"])
            if how == "absent":
                names[at] = ""
            elif how == "another":
                names[at] = rng.choice(names)
            elif how == "type":
                operands[at] = (rng.choice([1, 2, 3, 4, 6, 7, 8, 9, 10, 11]), dims)
            elif how == "dim" and dims:
                dims[rng.randrange(len(dims))] = rng.choice([0, 1, 2, 7, "n"])
            elif how == "rank":
                operands[at] = (t, dims[:-1] if dims and rng.random() < .5 else dims + [rng.choice([1, 2, "n"])])
            elif how == "attribute" and numbers:
                attributes[rng.choice(numbers)] = rng.choice([0, -1, 1, 3, 7, 1 << 31, 1 << 62, -1 << 63])
            inputs = [value_info("x%d" % i, *operand) for i, operand in enumerate(operands)]
            body = node(op, names, ["y"], **attributes) + (field(7, domain) if domain else b"")
            given = model(graph("g", [body], inputs, [field(1, "y")])) + field(8, field(1, "com.microsoft") + field(2, 1))
            with self.subTest(op=op, domain=domain, operands=operands, names=names, attributes=attributes):
                done = self.compile(given, "m.onnx", "--interpret", "--cache_dir=off")
                self.assertIn(done.returncode, (0,) if how == "nothing" else (0, 1), done.stderr)
                # The planner names the size that it cannot know before the run.
                self.assertTrue(done.returncode == 0 or "y_" + op in done.stderr or "plan: size" in done.stderr, done.stderr)

    def test_empty_and_garbage(self):
        self.refused(b"", "m.onnx")
        self.refused(b"\xff" * 100, "m.onnx")
        self.refused(b"this is not a model", "m.onnx")

    def test_cycle(self):
        nodes = [node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"]), node("Relu", ["b"], ["y"])]
        self.refused(model(graph("g", nodes, [X], [Y])), "cycle")

    def test_undefined_input(self):
        self.refused(model(graph("g", [node("Relu", ["nowhere"], ["y"])], [X], [Y])), "nowhere")

    def test_all_unsupported_operators_at_once(self):
        nodes = [node("Frobnicate", ["x"], ["a"]), node("Defenestrate", ["a"], ["y"])]
        self.refused(model(graph("g", nodes, [X], [Y])), "Frobnicate", "Defenestrate")

    def test_dims_that_overflow(self):
        self.refused(self.add_model(b"".join(field(1, 1 << 40) for _ in range(4)) + field(2, F32) + field(8, "w")), "w")

    def test_more_elements_declared_than_present(self):
        self.refused(self.add_model(field(1, 1 << 20) + field(2, F32) + field(8, "w") + field(9, b"\0" * 8)), "w")

    def test_negative_dim(self):
        self.refused(self.add_model(field(1, -2) + field(2, F32) + field(8, "w") + field(9, b"")), "w")

    def test_unknown_element_type(self):
        self.refused(self.add_model(field(1, 2) + field(2, 99) + field(8, "w") + field(9, b"\0" * 8)), "99")

    def test_external_data_outside_the_folder(self):
        for location in ("../secret.bin", "/etc/passwd", "a/../../secret.bin"):
            self.refused(self.add_model(external(location)), location)
        os.symlink("/etc/passwd", os.path.join(self.folder.name, "link.bin"))
        self.refused(self.add_model(external("link.bin")), "link.bin")

    def test_external_data_past_the_end(self):
        with open(os.path.join(self.folder.name, "w.bin"), "wb") as f:
            f.write(b"\0" * 8)
        self.assertEqual(self.compile(self.add_model(external("w.bin"))).returncode, 0)
        self.refused(self.add_model(external("w.bin", offset=4)), "w.bin")
        self.refused(self.add_model(external("w.bin", offset=1 << 62, length=8)), "w.bin")

    def test_deep_nesting(self):
        # 100,000 levels of If bodies: each a graph inside an attribute inside a node inside a graph.
        inner = b""
        for _ in range(2000):
            inner = field(1, node("If", ["c"], ["y"], then_branch=inner, else_branch=b""))
        self.refused(model(inner + field(11, X) + field(12, Y)), "deep")

    def test_deep_wire_nesting(self):
        # Length-delimited fields in one another, built from the inside with lengths only (cheap for 100,000 levels).
        sizes, size = [], 0
        for _ in range(100000):
            sizes.append(size)
            size += 1 + len(varint(size))
        data = bytearray()
        for s in reversed(sizes):
            data += bytes([6 << 3 | 2]) + varint(s)
        self.refused(model(field(1, field(5, field(1, "then_branch") + field(20, 5) + field(6, bytes(data))))), "m.onnx")

    def test_truncations(self):
        whole = self.add_model(tensor("w", F32, [2], [1.0, 2.0]))
        self.assertEqual(self.compile(whole).returncode, 0)
        for n in range(1, len(whole), 13):
            done = self.compile(whole[:n])
            self.assertIn(done.returncode, (0, 1))  # a cut may leave a smaller legal model
            self.assertTrue(done.returncode == 0 or "m.onnx" in done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
