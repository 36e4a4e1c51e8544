"""What the comparisons with ONNX Runtime share: a model and its inputs become a case folder in the
layout of ONNX's backend tests, with the peer's outputs as the expected ones, and tolerance.json
where the usual tolerance does not hold. tests/peer_ops/run then compiles and runs them all."""

import json
import pathlib

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

OPSETS = {"": 20, "com.microsoft": 1, "ai.onnx.ml": 3}


def session(model, optimise=False):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    if not optimise:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def write_case(folder, model, feeds, outputs, tolerance=None, number=0):
    """feeds: name to array, in the order of the graph's inputs; outputs: arrays; number: of the data set."""
    data = folder / f"test_data_set_{number}"
    data.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    for kind, arrays in (("input", feeds.values()), ("output", outputs)):
        for i, array in enumerate(arrays):
            tensor = numpy_helper.from_array(np.asarray(array))
            (data / f"{kind}_{i}.pb").write_bytes(tensor.SerializeToString())
    if tolerance:
        (folder / "tolerance.json").write_text(json.dumps(tolerance))


def value_info(name, array):
    kind = helper.np_dtype_to_tensor_dtype(array.dtype) if array.dtype.kind not in "OU" else TensorProto.STRING
    return helper.make_tensor_value_info(name, kind, array.shape)


def one_node(op, domain, inputs, outputs, attrs, constants=(), opsets=None):
    """inputs: arrays or None. Those whose number is in `constants` become initialisers."""
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    while names and not names[-1]:
        names.pop()
    node = helper.make_node(op, names, [f"y{i}" if k else "" for i, k in enumerate(outputs)],
                            domain=domain, name="n", **attrs)
    infos, inits, feeds = [], [], {}
    for i, x in enumerate(inputs):
        if x is None:
            continue
        x = np.asarray(x)
        if i in constants:
            inits.append(numpy_helper.from_array(x, names[i]))
        else:
            infos.append(value_info(names[i], x))
            feeds[names[i]] = x
    results = [helper.make_tensor_value_info(f"y{i}", k, None) for i, k in enumerate(outputs) if k]
    graph = helper.make_graph([node], "g", infos, results, inits)
    versions = {**OPSETS, **(opsets or {})}
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid(d, v) for d, v in versions.items()],
        ir_version=9)
    return model, feeds


class Cases:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.count = 0
        self.refused = []

    def add(self, name, op, inputs, outputs, domain="com.microsoft", constants=(), opsets=None,
            tolerance=None, **attrs):
        """outputs: a dtype per output, None where it is not wanted."""
        model, feeds = one_node(op, domain, inputs, outputs, attrs, constants, opsets)
        self.add_model(name, model, feeds, tolerance)

    def add_model(self, name, model, feeds, tolerance=None):
        try:
            results = session(model).run(None, feeds)
        except Exception as fault:  # the peer refuses this form: nothing to compare with
            self.refused.append(f"{name}: {str(fault).splitlines()[0][:200]}")
            return
        if any(not isinstance(r, np.ndarray) for r in results):
            self.refused.append(f"{name}: a result is no tensor")
            return
        write_case(self.folder / name, model, feeds, results, tolerance)
        self.count += 1
