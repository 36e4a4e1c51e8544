"""Kinds of nodes for fuzz.py: control flow, sequences, optionals, strings.

A body is drawn with the same kinds on values of one step, so that it captures what stands around it; then its
node is run by the peer like any other."""

import numpy as np
from onnx import TensorProto as T
from onnx import helper, numpy_helper

import fuzz_ops
from draw import B, F32, I32, I64, Refused, Stale, type_proto

BODY = [fuzz_ops.smooth, fuzz_ops.binary, fuzz_ops.binary, fuzz_ops.where, fuzz_ops.clip, fuzz_ops.reduce,
        fuzz_ops.transpose, fuzz_ops.slices, fuzz_ops.compare, fuzz_ops.gather, fuzz_ops.softmax, fuzz_ops.stepwise,
        fuzz_ops.several, fuzz_ops.squeeze]


def info(d, name):
    value = helper.make_value_info(name, type_proto(d.values[name]))
    if d.values[name].ndim or name.startswith("v"):  # the peer wants to know of scalars that they are
        value.type.tensor_type.ClearField("shape")
    return value


class Body:
    """Draws nodes into a graph of their own; `inputs` are names whose values belong to the body."""

    def __init__(self, d):
        self.d, self.inputs = d, []

    def __enter__(self):
        d = self.d
        self.before, self.nodes, d.nodes = set(d.values), d.nodes, []
        d.scopes.append(self)
        return self

    def __exit__(self, *_):
        d = self.d
        d.scopes.pop()
        self.made, d.nodes = d.nodes, self.nodes
        self.consts = [n for n in d.inits if n not in self.before]

    def input(self, array):
        name = self.d.name("b")
        self.d.values[name] = np.asarray(array)
        self.inputs.append(name)
        return name

    def steps(self, count):
        for _ in range(count):
            try:
                nested = len(self.d.scopes) < 3 and self.d.chance(0.12)
                self.d.pick([branch, loop, scan] if nested else BODY)(self.d)
            except (Refused, Stale):
                pass

    def local(self, fits):
        """A value of the body's own nodes, newest first."""
        made = [o for n in self.d.nodes for o in n.output if o in self.d.values]
        for name in reversed(made):
            if fits(self.d.values[name]) and not self.d.wild(self.d.values[name]):
                return name
        raise Stale

    def graph(self, outputs):
        """The GraphProto, and what it takes from outside. Only what the outputs need is kept."""
        d = self.d
        needed, kept = set(outputs), []
        for n in reversed(self.made):
            if needed & set(n.output):
                kept.append(n)
                needed |= set(d.reads(n))
        nodes = kept[::-1]
        local = {o for n in nodes for o in n.output} | set(self.inputs)
        inits = [helper.make_node("Constant", [], [c], value=numpy_helper.from_array(d.values[c], c))
                 for c in self.consts if c in needed]
        local |= set(self.consts)
        captures = [n for n in needed if n and n not in local]
        return helper.make_graph(inits + nodes, "body", [info(d, i) for i in self.inputs],
                                 [info(d, o) for o in outputs]), captures

    def drop(self):
        """Its values do not exist outside."""
        for n in [n for n in self.d.values if n not in self.before]:
            self.d.forget(n)


def plain(d):
    return lambda v: isinstance(v, np.ndarray) and v.dtype == F32


def branch(d):
    flag = d.value((B,), fits=lambda v: v.size == 1) if d.chance(0.5) else d.operand((), B)
    if d.values[flag].ndim:
        flag = d.one("Reshape", [flag, d.const(np.zeros(0, I64))])
    count = d.int(1, 2)
    graphs, captures = [], []
    x = d.value((F32,))
    for _ in range(2):
        with Body(d) as body:
            try:
                d.emit("Identity", [x])
                body.steps(d.int(0, 4))
                out = [body.local(lambda v: plain(d)(v) and v.ndim == d.values[x].ndim) for _ in range(count)]
                if count == 2:
                    out[1] = d.emit("Neg", [out[0]])[0]
            except (Refused, Stale):
                out = None
        if out is None:
            body.drop()
            raise Stale
        graph, outside = body.graph(out)
        graphs.append(graph)
        captures += outside
        body.drop()
    d.emit("If", [flag], count, captures, then_branch=graphs[0], else_branch=graphs[1])


def loop(d):
    trips = d.int(0 if d.chance(0.2) else 1, 5)
    carried = [d.value((F32,), is_finite=True) for _ in range(d.int(1, 2))]
    stop_early = d.chance(0.4)
    with Body(d) as body:
        try:
            i, c = body.input(np.array(0, I64)), body.input(np.array(True))
            states = [body.input(d.values[v]) for v in carried]
            body.steps(d.int(1, 4))
            nexts = []
            for s in states:
                shape = d.values[s].shape
                try:
                    nexts.append(body.local(lambda v: plain(d)(v) and v.shape == shape))
                except Stale:
                    nexts.append(d.emit("Tanh", [s])[0])
                nexts[-1] = d.emit("Tanh", [nexts[-1]])[0] if d.chance(0.7) else d.emit("Mul", [nexts[-1], d.const(F32(0.5))])[0]
            cond = d.emit("Less", [i, d.const(np.array(2, I64))])[0] if stop_early else d.emit("Identity", [c])[0]
            # Of no rounds the peer does not say what shape they have.
            scans = [d.emit("Abs", [nexts[0]])[0]] if trips > 0 and d.chance(0.6) else []
            out = [cond, *nexts, *scans]
        except (Refused, Stale):
            out = None
    if out is None:
        body.drop()
        raise Stale
    graph, captures = body.graph(out)
    count = len(out) - 1
    body.drop()
    if len(set(out)) < len(out):
        raise Stale
    m = d.input((), I64, trips, trips) if d.chance(0.4) else d.const(np.array(trips, I64))
    d.emit("Loop", [m if d.chance(0.9) or not stop_early else "", d.const(np.array(True)) if d.chance(0.8) else "", *carried],
           count, captures, body=graph)


def scan(d):
    length = d.int(1, 5)
    shape = (d.int(1, 3), d.int(1, 4))
    n = d.int(1, 2)
    state = d.operand(shape)
    axes = [d.int(0, 1) for _ in range(n)]
    items = [d.operand((*shape[:a], length, *shape[a:])) for a in axes]
    with Body(d) as body:
        try:
            s = body.input(d.values[state])
            parts = [body.input(np.zeros(shape, F32)) for _ in range(n)]
            t = d.emit("Add", [s, parts[-1]])[0]
            body.steps(d.int(0, 3))
            final = body.local(lambda v: plain(d)(v) and v.shape == shape)
            out = [d.emit("Tanh", [final])[0], d.emit("Sub", [t, parts[0]])[0]]
        except (Refused, Stale):
            out = None
    if out is None:
        body.drop()
        raise Stale
    graph, captures = body.graph(out)
    body.drop()
    d.emit("Scan", [state, *items], 2, captures, body=graph, num_scan_inputs=n, scan_input_axes=axes,
           scan_input_directions=[d.int(0, 1) for _ in range(n)], scan_output_axes=[d.int(-2, 2)],
           scan_output_directions=[d.int(0, 1)])


def sequence_value(d, fits=lambda v: True):
    found = [n for n, v in d.values.items() if isinstance(v, list) and v and fits(v)]
    if found and d.chance(0.8):
        return d.pick(found)
    x = d.value((F32,), rank=(1, 3))
    return d.emit("SequenceConstruct", [x, *[d.operand(d.values[x].shape) for _ in range(d.int(0, 3))]])[0]


def sequences(d):
    kind = d.pick(["at", "insert", "erase", "length", "concat", "split", "empty", "map"])
    if kind == "split":
        x = d.value((F32,), rank=(1, 3), fits=lambda v: v.size)
        attrs = {"axis": d.axis(x, 1)}
        n = d.values[x].shape[attrs["axis"]]
        inputs = [x] + ([d.const(np.array(d.int(1, n), I64))] if d.chance(0.5) else [])
        return d.emit("SplitToSequence", inputs, **attrs, **({} if len(inputs) > 1 else {"keepdims": d.int(0, 1)}))
    if kind == "empty":
        a, b = d.name("v"), d.name("v")
        x = d.value((F32,))
        nodes = [helper.make_node("SequenceEmpty", [], [a], dtype=T.FLOAT),
                 helper.make_node("SequenceInsert", [a, x], [b])]
        return d.chain(nodes, [b])
    s = sequence_value(d)
    n = len(d.values[s])
    at = d.const(np.array(d.int(-n, n - 1), d.pick([I64, I32])))
    if kind == "at":
        d.emit("SequenceAt", [s, at])
    elif kind == "insert":
        item = d.operand(d.values[s][0].shape)
        d.emit("SequenceInsert", [s, item, at] if d.chance(0.6) else [s, item])
    elif kind == "erase":
        d.emit("SequenceErase", [s, at] if d.chance(0.6) else [s])
    elif kind == "length":
        d.emit("SequenceLength", [s])
    elif kind == "map":
        with Body(d) as body:
            item = body.input(d.values[s][0])
            out = [d.emit(d.pick(["Relu", "Neg", "Tanh"]), [item])[0]]
        graph, captures = body.graph(out)
        body.drop()
        d.emit("SequenceMap", [s], 1, captures, body=graph)
    else:
        shapes = {v.shape for v in d.values[s]}
        if len(shapes) > 1:
            raise Stale
        d.symbolic = False  # the peer joins empty tensors to those of any shape
        rank = len(shapes.pop())
        d.emit("ConcatFromSequence", [s], axis=d.int(0, rank - 1), new_axis=d.int(0, 1))


def optionals(d):
    d.opsets(18)
    x = d.value((F32,))
    o, y, h = d.name("v"), d.name("v"), d.name("v")
    kind = type_proto(d.values[x])
    kind.tensor_type.ClearField("shape")
    nodes = [helper.make_node("Optional", [x], [o]), helper.make_node("OptionalHasElement", [o], [h]),
             helper.make_node("OptionalGetElement", [o], [y])]
    d.chain(nodes, [y, h])


def words(d):
    kind = d.pick(["concat", "split", "normal", "regex", "equal", "gather", "where", "shape", "join", "tfidf",
                   "unique", "cast", "slice"])
    shape = (d.int(1, 4),) if d.chance(0.6) else (d.int(1, 3), d.int(1, 3))
    found = [n for n, v in d.values.items() if isinstance(v, np.ndarray) and v.dtype.kind in "OU" and v.ndim and v.size]
    x = d.pick(found) if found and d.chance(0.6) else d.input(shape, str)
    shape = d.values[x].shape
    other = d.input(shape, str) if d.chance(0.5) else d.const(d.data(shape, str))
    if kind in ("concat", "split", "regex"):
        d.opsets(20)
    if kind == "concat":
        d.emit("StringConcat", [x, other])
    elif kind == "split":
        d.emit("StringSplit", [x], 2, delimiter=d.pick(["", " ", "a"]), **({"maxsplit": 1} if d.chance(0.4) else {}))
    elif kind == "normal":
        x = d.input((d.int(1, 4),), str)
        d.emit("StringNormalizer", [x], case_change_action=d.pick(["UPPER", "LOWER", "NONE"]), is_case_sensitive=1,
               locale="C", stopwords=["a"])
    elif kind == "regex":
        d.emit("RegexFullMatch", [x], pattern=d.pick(["a+", "[a-z]*", "G.", "(a|b)?"]))
    elif kind == "equal":
        d.emit("Equal", [x, other])
    elif kind == "gather":
        if len(shape) > 1:
            raise Stale  # the peer takes the first string of each part
        d.emit("Gather", [x, d.const(d.rng.integers(0, shape[0], d.int(1, 4)))], axis=0)
    elif kind == "where":
        d.emit("Where", [d.operand(shape, B), x, other])
    elif kind == "shape":
        op = d.pick(["Reshape", "Flatten", "Unsqueeze", "Transpose", "Tile", "Expand", "Identity", "Shape", "Squeeze"])
        extra = {"Reshape": [d.ints(-1)], "Unsqueeze": [d.ints(0)], "Tile": [d.ints(*[2] * len(shape))],
                 "Expand": [d.ints(2, *shape)]}.get(op, [])
        d.emit(op, [x, *extra])
    elif kind == "slice":
        d.emit("Slice", [x, d.ints(0), d.ints(d.int(1, 3)), d.ints(0)])
    elif kind == "join":
        d.never_empty()  # as in concat of fuzz_ops.py
        d.emit("Concat", [x, other], axis=d.int(0, len(shape) - 1))
    elif kind == "unique":
        d.emit("Unique", [d.input((d.int(1, 5),), str)], d.int(1, 4), sorted=d.int(0, 1))
    elif kind == "cast":
        y = d.value((I64, I32, B))
        d.emit("Cast", [y], to=T.STRING)
    else:
        y = d.operand((d.int(1, 6),), I32, 0, 4)
        d.emit("TfIdfVectorizer", [y], mode=d.pick(["TF", "IDF", "TFIDF"]), min_gram_length=1, max_gram_length=2,
               max_skip_count=d.int(0, 1), ngram_counts=[0, 2], ngram_indexes=[0, 1, 2], pool_int64s=[1, 2, 1, 3],
               weights=[1.0, 0.5, 2.0])


KINDS = [branch, branch, loop, loop, loop, scan, scan, sequences, sequences, sequences, optionals, words, words, words,
         words]
