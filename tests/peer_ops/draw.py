"""One random graph: see fuzz.py. Each node is run by the peer as it is drawn, so that shapes and types need
no second inference here; what the peer refuses is left out."""

import collections
import json
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper

from peer import session

F32, F16, F64 = np.float32, np.float16, np.float64
I64, I32, I16, I8 = np.int64, np.int32, np.int16, np.int8
U64, U32, U16, U8, B = np.uint64, np.uint32, np.uint16, np.uint8, np.bool_
FLOATS, INTS = (F32, F32, F32, F32, F16, F64), (I64, I32, I8, U8, I16, U16, U32, U64)
SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, 2.5, 1e-3, 1e4]
SIZES = [1, 2, 3, 4, 5, 7, 8, 16, 17]
WORDS = ["", "a", "b", "GE", "naive \u00e9", "two words", "Ab", "zz"]
NEWEST = 26


class Refused(Exception):
    """The peer does not run what was drawn."""


class Stale(Exception):
    """Nothing fits what was drawn."""


def is_float(a):
    return isinstance(a, np.ndarray) and a.dtype.kind == "f"


def exact(a):
    """Whether sums of such values round nowhere, so that their order does not matter."""
    if not is_float(a):
        return True
    x = a[np.isfinite(a)].astype(np.float64)
    scale, most = (16, 64) if a.dtype == F16 else (64, 512)
    return bool(np.all(x * scale == np.rint(x * scale)) and np.all(np.abs(x) <= most))


def finite(a):
    return not is_float(a) or bool(np.all(np.isfinite(a)))


def type_proto(v):
    if isinstance(v, list):
        return helper.make_sequence_type_proto(type_proto(v[0]) if v else helper.make_tensor_type_proto(T.FLOAT, None))
    kind = T.STRING if v.dtype.kind in "OU" else helper.np_dtype_to_tensor_dtype(v.dtype)
    return helper.make_tensor_type_proto(kind, v.shape)


def as_value(v):
    if isinstance(v, list):
        return [as_value(i) for i in v]
    return np.asarray(v)


class Draw:
    """One graph under construction. values: name to what it holds for the first data set."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.large = seed % 5 == 4  # some sizes over a vector and a tile
        self.nodes, self.inits, self.inputs, self.values, self.recipes = [], [], [], {}, {}
        self.special = self.rng.random() < 0.15
        self.opset = int(self.pick([13, 15, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26]))
        self.grid = self.rng.random() < 0.7
        self.symbolic = self.rng.random() < 0.4
        self.loose = False
        self.least_size = 0  # of symbols in the other data sets
        self.scopes, self.count = [], 0
        self.drawn, self.refused = collections.Counter(), collections.Counter()

    # Choices.
    def pick(self, items):
        return items[int(self.rng.integers(len(items)))]

    def chance(self, p):
        return bool(self.rng.random() < p)

    def int(self, low, high):
        """low <= n <= high"""
        return int(self.rng.integers(low, high + 1))

    def size(self, sizes=None):
        if self.large and self.chance(0.3):
            return self.pick([24, 33, 64, 100])
        if sizes:
            return self.pick(sizes)
        return 0 if self.chance(0.03) else self.pick(SIZES)

    def shape(self, low=1, high=4):
        if self.large:
            high = max(low, min(high, 3))
        return tuple(self.size() for _ in range(self.int(low, high)))

    def perm(self, n):
        return [int(i) for i in self.rng.permutation(n)]

    def axis(self, x, least=0):
        shape = self.values[x].shape
        fit = [i for i, d in enumerate(shape) if d >= least]
        if not fit:
            raise Stale
        a = self.pick(fit)
        return a if self.chance(0.7) else a - len(shape)

    def data(self, shape, dtype=F32, low=None, high=None):
        if dtype is str:
            return np.array([self.pick(WORDS) for _ in range(int(np.prod(shape)))], object).reshape(shape)
        dtype = np.dtype(dtype)
        if dtype == B:
            return np.asarray(self.rng.random(shape) < 0.5)
        if dtype.kind in "iu":
            low = (0 if dtype.kind == "u" else -6) if low is None else low
            return self.rng.integers(low, (7 if high is None else high) + 1, shape).astype(dtype)
        if self.grid:
            x = self.rng.integers(-12, 13, shape) / 4
        else:
            x = self.rng.standard_normal(shape)
        if low is not None:
            x = low + np.abs(x) % (high - low)
        x = np.asarray(x).astype(dtype)
        if self.special and low is None and x.size:
            hits = np.asarray(self.rng.random(shape) < 0.15)
            x[hits] = self.rng.choice(np.array(SPECIAL, dtype), int(hits.sum()))
        return x

    def opsets(self, low=13, high=NEWEST):
        """Moves the graph's opset into a range, while it has no nodes."""
        if not self.nodes and not self.scopes:
            self.opset = min(max(self.opset, low), high)
        if not low <= self.opset <= high:
            raise Stale

    def never_smaller(self):
        """A window larger than its input: the peer's sizes round to zero."""
        self.least_size = 2

    def never_empty(self):
        self.least_size = max(self.least_size, 1)

    def plain(self):
        """Without NaN and infinities."""
        if not self.nodes and not self.scopes and not self.inputs:
            self.special = False
        if self.special:
            raise Stale

    # Values.
    def name(self, prefix):
        self.count += 1
        return f"{prefix}{self.count}"

    def input(self, shape, dtype=F32, low=None, high=None):
        if self.scopes:  # a body's own inputs are its node's affair
            return self.const(self.data(shape, dtype, low, high))
        name = self.name("x")
        self.values[name] = self.data(shape, dtype, low, high)
        self.inputs.append(name)
        self.recipes[name] = (dtype, low, high)
        return name

    def const(self, array):
        name = self.name("c")
        array = np.asarray(array)
        self.values[name] = array
        self.inits.append(name)
        return name

    def ints(self, *v):
        return self.const(np.array(v, I64))

    def operand(self, shape, dtype=F32, low=None, high=None):
        """A new input or a constant."""
        if self.chance(0.5):
            return self.input(shape, dtype, low, high)
        return self.const(self.data(shape, dtype, low, high))

    def visible(self):
        return [n for n in self.values if n not in self.inits]

    def value(self, dtypes=FLOATS, rank=(0, 5), fits=None, is_exact=False, is_finite=False):
        """An earlier value of these types, or a new input."""
        def ok(name):
            v = self.values[name]
            return (isinstance(v, np.ndarray) and v.dtype in [np.dtype(d) for d in dtypes if d is not str]
                    and rank[0] <= v.ndim <= rank[1] and (not is_exact or exact(v)) and (not is_finite or finite(v))
                    and (fits is None or fits(v)) and v.size < 20000 and not self.wild(v))
        found = [n for n in self.visible() if ok(n)]
        if found and self.chance(0.8):
            return self.pick(found)
        for _ in range(20):
            name = self.input(self.shape(max(rank[0], 1 if self.chance(0.9) else 0), min(rank[1], 4)), self.pick(dtypes))
            if ok(name):
                return name
            self.forget(name)
        raise Stale

    def forget(self, name):
        del self.values[name]
        if name in self.inputs:
            self.inputs.remove(name)
        if name in self.inits:
            self.inits.remove(name)

    @staticmethod
    def wild(v):
        return is_float(v) and bool(np.any(np.abs(v[np.isfinite(v)].astype(np.float64)) > 2000))

    def like(self, x, dtype=None, low=None, high=None):
        """An operand that broadcasts with x."""
        v = self.values[x]
        dtype = dtype or v.dtype.type
        same = [n for n in self.visible() if isinstance(self.values[n], np.ndarray) and self.values[n].shape == v.shape
                and self.values[n].dtype == np.dtype(dtype) and not self.wild(self.values[n])]
        if same and self.chance(0.4) and low is None:
            return self.pick(same)
        part = tuple(d if self.chance(0.7) else 1 for d in v.shape)
        return self.operand(part[self.int(0, len(part)):], dtype, low, high)

    # Nodes.
    def emit(self, op, inputs, outputs=1, captures=(), domain="", **attrs):
        """Adds a node, run by the peer on its own; the names of its outputs."""
        out = [self.name("v") for _ in range(outputs)]
        node = helper.make_node(op, inputs, out, name="n_" + out[0], domain=domain, **attrs)
        return self.chain([node], out, captures)

    def one(self, *args, **attrs):
        return self.emit(*args, **attrs)[0]

    def chain(self, nodes, out, captures=()):
        """Several nodes at once: for values that Python cannot hold."""
        made = {o for n in nodes for o in n.output}
        need = [i for n in nodes for i in n.input if i and i not in made]
        need = list(dict.fromkeys([*need, *captures]))
        for op in {n.op_type for n in nodes}:
            self.drawn[op] += 1
        model = self.model_of(nodes, need, out)
        feeds = {n: self.values[n] for n in need if n not in self.inits}
        try:
            results = session(model).run(None, feeds)
        except Exception as fault:
            for op in {n.op_type for n in nodes}:
                self.refused[op] += 1
            raise Refused(str(fault).splitlines()[0][:300]) from None
        for name, v in zip(out, results):
            if v is None:
                raise Refused("an output is an empty optional")
            self.values[name] = as_value(v)
            self.loose |= is_float(self.values[name]) and self.values[name].dtype == F16
        self.nodes += nodes
        return out

    def model_of(self, nodes, need, out, infos=None):
        inits = [numpy_helper.from_array(self.values[n], n) for n in need if n in self.inits]
        infos = infos or [helper.make_value_info(n, type_proto(self.values[n])) for n in need if n not in self.inits]
        results = [helper.make_value_info(o, onnx.TypeProto()) for o in out]
        graph = helper.make_graph(nodes, "g", infos, results, inits)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=10)

    # The whole.
    def grow(self, kinds, first):
        for step in range(self.int(1, 7)):
            kind = kinds[first % len(kinds)] if step == 0 else self.pick(kinds)
            for attempt in range(6 if step == 0 else 2):
                before = list(self.values)
                try:
                    kind(self)
                    break
                except (Refused, Stale) as fault:
                    if os.environ.get("FUZZ_LOG"):
                        print(kind.__name__, repr(fault), file=sys.stderr)
                    used = {i for n in self.nodes for i in n.input}
                    made = {o for n in self.nodes for o in n.output}
                    for n in [n for n in self.values if n not in before and n not in used and n not in made]:
                        self.forget(n)

    def outputs(self):
        used = {i for n in self.nodes for i in self.reads(n)}
        made = [o for n in self.nodes for o in n.output if o in self.values]
        return [m for m in made if m not in used or self.chance(0.15)]

    def reads(self, node):
        """What a node takes, and its bodies from outside."""
        names = list(node.input)
        for a in node.attribute:
            if a.type == onnx.AttributeProto.GRAPH:
                own = {i.name for i in a.g.input} | {o for n in a.g.node for o in n.output}
                inner = [i for n in a.g.node for i in self.reads(n)] + [o.name for o in a.g.output]
                names += [i for i in inner if i not in own]
        return names

    def dims_of(self, name, symbols):
        v = self.values[name]
        return [f"d{d}" if d in symbols else d for d in v.shape]

    def finish(self, folder):
        """Writes the case; what was wrong, if it could not."""
        out = self.outputs()
        if not out:
            return "no output"
        used = {i for n in self.nodes for i in self.reads(n)} | set(out)
        inputs = [i for i in self.inputs if i in used]
        inits = [i for i in self.inits if i in used]
        sizes = sorted({d for i in inputs for d in self.values[i].shape})
        symbols = {d for d in sizes if self.symbolic and self.chance(0.6)}
        infos = []
        for i in inputs:
            t = type_proto(self.values[i])
            infos.append(helper.make_tensor_value_info(i, t.tensor_type.elem_type, self.dims_of(i, symbols)))
        model = self.model_of(self.nodes, [*inits], out, infos)
        if not infos:
            del model.graph.input[:]
        try:
            run = session(model)
            sets = [({i: self.values[i] for i in inputs}, None)]
            sets[0] = (sets[0][0], run.run(None, sets[0][0]))
        except Exception as fault:
            return f"the peer refuses the whole: {str(fault).splitlines()[0][:200]}"
        for o, v in zip(model.graph.output, sets[0][1]):
            if v is None:
                return "an output is an empty optional"
            o.type.CopyFrom(type_proto(as_value(v)))
            if not isinstance(v, list):
                o.type.tensor_type.ClearField("shape")
        for _ in range(6 if symbols else 0):
            to = {s: self.pick([s + 1, s + 3, s]) if self.least_size == 2 else
                  max(self.pick([0, 1, 2, 3, 6, s]), self.least_size) for s in symbols}
            if len(sets) > 3 or all(s == t for s, t in to.items()):
                continue
            feeds = {}
            for i in inputs:
                dtype, low, high = self.recipes[i]
                feeds[i] = self.data(tuple(to.get(d, d) for d in self.values[i].shape), dtype, low, high)
            try:
                sets.append((feeds, run.run(None, feeds)))
            except Exception:
                pass
        write(folder, model, sets, {"atol": 0.03, "rtol": 0.02} if self.loose else {"atol": 2e-4})
        return None


def proto_of(v):
    return numpy_helper.from_list(v) if isinstance(v, list) else numpy_helper.from_array(v)


def write(folder, model, sets, tolerance):
    for s, (feeds, results) in enumerate(sets):
        data = folder / f"test_data_set_{s}"
        data.mkdir(parents=True, exist_ok=True)
        for kind, values in (("input", feeds.values()), ("output", results)):
            for i, v in enumerate(values):
                (data / f"{kind}_{i}.pb").write_bytes(proto_of(as_value(v)).SerializeToString())
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    (folder / "tolerance.json").write_text(json.dumps(tolerance))
