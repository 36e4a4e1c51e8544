"""The GE runtime from Python, through its C face (api/c/ge_c.h) and ctypes."""
import ctypes
import os

import numpy as np

# ONNX TensorProto.DataType of NumPy dtypes.
DTYPES = {"float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9,
          "float16": 10, "float64": 11, "uint32": 12, "uint64": 13}
NUMPY = {v: np.dtype(k) for k, v in DTYPES.items()}


class Tensor(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_int32), ("rank", ctypes.c_int32), ("dims", ctypes.c_int64 * 8),
                ("data", ctypes.c_void_p), ("bytes", ctypes.c_int64)]


def library(build):
    lib = ctypes.CDLL(os.path.join(build, "lib", "libge_runtime.so"))
    lib.ge_last_error.restype = ctypes.c_char_p
    for name in ("ge_model_input_name", "ge_model_output_name"):
        getattr(lib, name).restype = ctypes.c_char_p
        getattr(lib, name).argtypes = [ctypes.c_void_p, ctypes.c_int]
    lib.ge_model_load.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.POINTER(ctypes.c_void_p)]
    lib.ge_run_create.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)]
    lib.ge_run_execute.argtypes = [ctypes.c_void_p, ctypes.POINTER(Tensor), ctypes.POINTER(Tensor)]
    for name in ("ge_model_free", "ge_run_free", "ge_model_num_inputs", "ge_model_num_outputs"):
        getattr(lib, name).argtypes = [ctypes.c_void_p]
    return lib


class Model:
    """One loaded model with one run. `run` takes {input name: array}."""

    def __init__(self, lib, path, threads):
        self.lib = lib
        self.model, self.handle = ctypes.c_void_p(), ctypes.c_void_p()
        self._check(lib.ge_model_load(path.encode(), threads, ctypes.byref(self.model)))
        self._check(lib.ge_run_create(self.model, ctypes.byref(self.handle)))
        self.inputs = [lib.ge_model_input_name(self.model, i).decode() for i in range(lib.ge_model_num_inputs(self.model))]
        self.outputs = [lib.ge_model_output_name(self.model, i).decode() for i in range(lib.ge_model_num_outputs(self.model))]

    def _check(self, code):
        if code:
            raise RuntimeError(self.lib.ge_last_error().decode())

    def bind(self, feeds):
        self.arrays = [np.ascontiguousarray(feeds[n]).reshape(np.shape(feeds[n])) for n in self.inputs]
        self.tin = (Tensor * max(1, len(self.arrays)))()
        self.tout = (Tensor * max(1, len(self.outputs)))()
        for t, a in zip(self.tin, self.arrays):
            t.dtype, t.rank = DTYPES[a.dtype.name], a.ndim
            for i, d in enumerate(a.shape):
                t.dims[i] = d
            t.data, t.bytes = a.ctypes.data, a.nbytes

    def execute(self):
        self._check(self.lib.ge_run_execute(self.handle, self.tin, self.tout))

    def results(self):
        out = []
        for t, _ in zip(self.tout, self.outputs):
            raw = (ctypes.c_char * t.bytes).from_address(t.data) if t.bytes else b""
            out.append(np.frombuffer(raw, NUMPY[t.dtype]).reshape(list(t.dims[:t.rank])).copy())
        return out

    def run(self, feeds):
        self.bind(feeds)
        self.execute()
        return self.results()

    def close(self):
        self.lib.ge_run_free(self.handle)
        self.lib.ge_model_free(self.model)
