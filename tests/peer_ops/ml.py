"""Cases of the ai.onnx.ml operators: ml.py FOLDER"""

import sys

import numpy as np
from onnx import TensorProto as T
from onnx import helper

from peer import Cases, session, write_case

rng = np.random.default_rng(5)
F, I = T.FLOAT, T.INT64
CLOSE = {"atol": 1e-5}


def f32(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def fs(*shape):
    return [float(v) for v in f32(*shape).ravel()]


def linear(c):
    x = f32(5, 3)
    add = lambda name, op, outputs, **attrs: c.add(
        name, op, [x], outputs, domain="ai.onnx.ml", opsets={"ai.onnx.ml": 1}, tolerance=CLOSE, **attrs)
    add("linear_regressor", "LinearRegressor", [F], coefficients=fs(3), intercepts=[0.5])
    add("linear_regressor_two", "LinearRegressor", [F], coefficients=fs(6), intercepts=[0.5, -1.0], targets=2)
    for post in ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"):
        add(f"linear_classifier_{post}", "LinearClassifier", [I, F], coefficients=fs(9), intercepts=fs(3),
            classlabels_ints=[10, 20, 30], post_transform=post, multi_class=1)
        add(f"linear_classifier_two_{post}", "LinearClassifier", [I, F], coefficients=fs(6), intercepts=fs(2),
            classlabels_ints=[3, 7], post_transform=post)
    for post in ("NONE", "LOGISTIC"):
        add(f"linear_classifier_one_{post}", "LinearClassifier", [I, F], coefficients=fs(3), intercepts=fs(1),
            classlabels_ints=[3, 7], post_transform=post)
    add("linear_classifier_strings", "LinearClassifier", [T.STRING, F], coefficients=fs(9), intercepts=fs(3),
        classlabels_strings=["a", "b", "c"], post_transform="SOFTMAX")


def features(c):
    x = f32(4, 3)
    x[2] = 0
    add = lambda name, op, inputs, outputs=(F,), **attrs: c.add(
        name, op, inputs, list(outputs), domain="ai.onnx.ml", opsets={"ai.onnx.ml": 1}, tolerance=CLOSE, **attrs)
    add("scaler", "Scaler", [x], offset=fs(3), scale=fs(3))
    add("scaler_one", "Scaler", [x], offset=[0.5], scale=[2.0])
    add("scaler_int", "Scaler", [np.arange(6).reshape(2, 3).astype(np.int64)], offset=[0.5], scale=[2.0])
    for norm in ("MAX", "L1", "L2"):
        add(f"normalizer_{norm}", "Normalizer", [x], norm=norm)
    y = x.copy()
    y[0, 1] = np.nan
    add("imputer_nan", "Imputer", [y], imputed_value_floats=fs(3), replaced_value_float=float("nan"))
    add("imputer_zero", "Imputer", [x], imputed_value_floats=[9.0], replaced_value_float=0.0)
    add("imputer_int", "Imputer", [np.array([[1, 2], [2, 3]], np.int64)], (I,), imputed_value_int64s=[9],
        replaced_value_int64=2)
    add("one_hot", "OneHotEncoder", [np.array([1, 3, 2, 9], np.int64)], cats_int64s=[1, 2, 3], zeros=1)
    add("one_hot_2d", "OneHotEncoder", [np.array([[1, 3], [2, 1]], np.int64)], cats_int64s=[1, 2, 3], zeros=1)
    add("one_hot_float", "OneHotEncoder", [np.array([1, 3, 2], np.float32)], cats_int64s=[1, 2, 3], zeros=1)
    add("one_hot_strings", "OneHotEncoder", [np.array(["b", "x", "a"], object)], cats_strings=["a", "b"], zeros=1)
    add("vectorizer", "FeatureVectorizer", [x, f32(4, 2)], inputdimensions=[3, 2])
    add("binarizer", "Binarizer", [x], threshold=0.1)
    add("array_features", "ArrayFeatureExtractor", [x, np.array([2, 0], np.int64)])
    c.add("label_encoder", "LabelEncoder", [np.array([1, 3, 5], np.int64)], [I], domain="ai.onnx.ml",
          opsets={"ai.onnx.ml": 2}, keys_int64s=[1, 3], values_int64s=[10, 30], default_int64=-7)
    c.add("label_encoder_text", "LabelEncoder", [np.array(["a", "z"], object)], [I], domain="ai.onnx.ml",
          opsets={"ai.onnx.ml": 2}, keys_strings=["a", "b"], values_int64s=[10, 30], default_int64=-7)


def maps(c):
    """The last node of most exported classifiers."""
    for name, labels in (("ints", {"classlabels_int64s": [3, 5, 7]}), ("strings", {"classlabels_strings": ["a", "b", "c"]})):
        node = helper.make_node("ZipMap", ["x"], ["y"], domain="ai.onnx.ml", **labels)
        key = T.INT64 if name == "ints" else T.STRING
        row = helper.make_map_type_proto(key, helper.make_tensor_type_proto(F, []))
        result = helper.make_value_info("y", helper.make_sequence_type_proto(row))
        graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", F, ["n", 3])], [result])
        opsets = [helper.make_opsetid("", 15), helper.make_opsetid("ai.onnx.ml", 1)]
        model, feeds = helper.make_model(graph, opset_imports=opsets, ir_version=8), {"x": f32(4, 3)}
        scores = [list(r.values()) for r in session(model).run(None, feeds)[0]]
        model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", F, None))
        write_case(c.folder / f"zip_map_{name}", model, feeds, [np.array(scores, np.float32)])
        c.count += 1


def tree(number, depth):
    """A full tree: lists of nodes, and the ids of its leaves."""
    nodes, inner = [], 2 ** depth - 1
    modes = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT"]
    for i in range(2 ** (depth + 1) - 1):
        leaf = i >= inner
        nodes.append((number, i, 0 if leaf else int(rng.integers(3)), "LEAF" if leaf else modes[number % 4],
                      0 if leaf else 2 * i + 1, 0 if leaf else 2 * i + 2,
                      0.0 if leaf else float(np.float32(rng.standard_normal()))))
    return nodes, list(range(inner, 2 ** (depth + 1) - 1))


def forest(prefix, targets, count=4, depth=3, several=False, positive=False):
    nodes, weights = [], []
    for t in range(count):
        n, leaves = tree(t, depth)
        nodes += n
        for leaf in leaves:
            chosen = range(targets) if several else [int(rng.integers(targets))]
            for k in chosen:
                w = abs(float(np.float32(rng.standard_normal()))) / 8 if positive else float(np.float32(rng.standard_normal()))
                weights.append((t, leaf, k, w))
    keys = ("treeids", "nodeids", "featureids", "modes", "truenodeids", "falsenodeids", "values")
    attrs = {"nodes_" + k: list(v) for k, v in zip(keys, zip(*nodes))}
    for k, v in zip(("treeids", "nodeids", "ids", "weights"), zip(*weights)):
        attrs[f"{prefix}_{k}"] = list(v)
    return attrs


# Not compared: post_transform of a regressor with one target, which the peer leaves out; and classes
# that no leaf of a row's way weighs, whose score is 0 here and in the reference, but out of the
# choice there.
def forests(c):
    x = f32(20, 3)
    x[3, 1] = np.nan
    add = lambda name, op, outputs, **attrs: c.add(
        name, op, [x], outputs, domain="ai.onnx.ml", opsets={"ai.onnx.ml": 3}, tolerance=CLOSE, **attrs)
    for how in ("SUM", "AVERAGE", "MIN", "MAX"):
        add(f"forest_{how}", "TreeEnsembleRegressor", [F], n_targets=1, aggregate_function=how, **forest("target", 1))
    add("forest_base", "TreeEnsembleRegressor", [F], n_targets=1, base_values=[0.5],
        **forest("target", 1))
    add("forest_targets", "TreeEnsembleRegressor", [F], n_targets=3, **forest("target", 3, several=True))
    for how in ("MIN", "MAX"):  # over those leaves that name the target
        add(f"forest_targets_{how}", "TreeEnsembleRegressor", [F], n_targets=3, aggregate_function=how,
            **forest("target", 3, count=12, depth=2))
    for post in ("NONE", "SOFTMAX", "LOGISTIC"):
        add(f"forest_classes_{post}", "TreeEnsembleClassifier", [I, F], classlabels_int64s=[4, 5, 6],
            post_transform=post, **forest("class", 3, several=True))
    add("forest_classes_one", "TreeEnsembleClassifier", [I, F], classlabels_int64s=[4, 5, 6],
        **forest("class", 3, positive=True))
    add("forest_binary_positive", "TreeEnsembleClassifier", [I, F], classlabels_int64s=[4, 5],
        **forest("class", 1, positive=True))
    add("forest_binary", "TreeEnsembleClassifier", [I, F], classlabels_int64s=[4, 5], post_transform="LOGISTIC",
        **forest("class", 1))
    add("forest_binary_plain", "TreeEnsembleClassifier", [I, F], classlabels_int64s=[4, 5], **forest("class", 1))
    add("forest_strings", "TreeEnsembleClassifier", [T.STRING, F], classlabels_strings=["a", "b", "c"],
        **forest("class", 3, several=True))


def mixed_forests(c):
    """More trees than a block has, in other numbers of rows; every way to compare, NaN on either side; scores of a class
    from trees of its own."""
    modes = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
    for name, rows, count, targets in (("few", 3, 21, 1), ("many", 37, 35, 1), ("two", 20, 2, 2), ("row", 1, 40, 3)):
        x = rng.integers(-4, 5, (rows, 3)).astype(np.float32) / 2
        x[rng.random(x.shape) < 0.1] = np.nan
        attrs = forest("target", targets, count=count, depth=5, several=targets > 1)
        inner = [m != "LEAF" for m in attrs["nodes_modes"]]
        attrs["nodes_modes"] = [modes[int(rng.integers(6))] if i else "LEAF" for i in inner]
        attrs["nodes_values"] = [float(rng.integers(-4, 5)) / 2 if i else 0.0 for i in inner]
        attrs["nodes_missing_value_tracks_true"] = [int(rng.integers(2)) if i else 0 for i in inner]
        c.add(f"forest_mixed_{name}", "TreeEnsembleRegressor", [x], [F], domain="ai.onnx.ml", opsets={"ai.onnx.ml": 3},
              tolerance=CLOSE, n_targets=targets, **attrs)
    for missing in (0, 1):  # NaN is not equal to any split; the second is for the host's walk
        for name, op in (("sum", "SUM"), ("least", "MIN")):
            attrs = forest("target", 1, count=5)
            attrs["nodes_modes"] = ["LEAF" if m == "LEAF" else "BRANCH_NEQ" for m in attrs["nodes_modes"]]
            attrs["nodes_values"] = [0.5] * len(attrs["nodes_modes"])
            attrs["nodes_missing_value_tracks_true"] = [missing] * len(attrs["nodes_modes"])
            c.add(f"forest_not_equal_{name}_{missing}", "TreeEnsembleRegressor",
                  [np.array([[np.nan, 0.5, 1], [0.5, np.nan, 0.5], [np.nan] * 3, [0.5] * 3, [0, 1, 2]], np.float32)], [F],
                  domain="ai.onnx.ml", opsets={"ai.onnx.ml": 3}, tolerance=CLOSE, n_targets=1, aggregate_function=op, **attrs)
    for count in (3, 18):
        attrs = forest("class", 3, count=count)
        attrs["class_ids"] = [t % 3 for t in attrs["class_treeids"]]
        c.add(f"forest_class_each_{count}", "TreeEnsembleClassifier", [f32(19, 3)], [I, F], domain="ai.onnx.ml",
              opsets={"ai.onnx.ml": 3}, tolerance=CLOSE, classlabels_int64s=[4, 5, 6], post_transform="SOFTMAX", **attrs)
    c.add("forest_tiny_splits", "TreeEnsembleRegressor", [np.array([[0, -0.0, 1e-30]] * 3, np.float32).T.copy()], [F],
          domain="ai.onnx.ml", opsets={"ai.onnx.ml": 3}, n_targets=1, nodes_treeids=[0] * 3, nodes_nodeids=[0, 1, 2],
          nodes_featureids=[0] * 3, nodes_modes=["BRANCH_LT", "LEAF", "LEAF"], nodes_truenodeids=[1, 0, 0],
          nodes_falsenodeids=[2, 0, 0], nodes_values=[0.0, 0.0, 0.0], target_treeids=[0, 0], target_nodeids=[1, 2],
          target_ids=[0, 0], target_weights=[1.0, 2.0])


def vectors(c):
    x = f32(12, 3)
    add = lambda name, op, outputs, **attrs: c.add(
        name, op, [x], outputs, domain="ai.onnx.ml", opsets={"ai.onnx.ml": 1}, tolerance=CLOSE, **attrs)
    for kernel in ("LINEAR", "POLY", "RBF", "SIGMOID"):
        common = dict(kernel_type=kernel, kernel_params=[0.5, 0.3, 2.0])
        add(f"svr_{kernel}", "SVMRegressor", [F], coefficients=fs(4), support_vectors=fs(12), n_supports=4,
            rho=[0.3], **common)
        add(f"svc_{kernel}", "SVMClassifier", [I, F], coefficients=fs(10), support_vectors=fs(15),
            vectors_per_class=[2, 2, 1], rho=fs(3), classlabels_ints=[1, 5, 9], **common)
        for post in ("NONE", "SOFTMAX"):
            add(f"svc_probabilities_{kernel}_{post}", "SVMClassifier", [I, F], coefficients=fs(10), support_vectors=fs(15),
                vectors_per_class=[2, 2, 1], rho=fs(3), classlabels_ints=[1, 5, 9], prob_a=[-1.5, -0.7, -2.0],
                prob_b=[0.1, -0.2, 0.3], post_transform=post, **common)
        add(f"svc_two_probabilities_{kernel}", "SVMClassifier", [I, F], coefficients=fs(4), support_vectors=fs(12),
            vectors_per_class=[2, 2], rho=fs(1), classlabels_ints=[1, 5], prob_a=[-1.5], prob_b=[0.1], **common)
        add(f"svc_two_{kernel}", "SVMClassifier", [I, F], coefficients=fs(4), support_vectors=fs(12),
            vectors_per_class=[2, 2], rho=fs(1), classlabels_ints=[1, 5], **common)
    add("svr_one_class", "SVMRegressor", [F], coefficients=fs(4), support_vectors=fs(12), n_supports=4, rho=[0.3],
        one_class=1, kernel_type="RBF", kernel_params=[0.5, 0.0, 3.0])


def main():
    c = Cases(sys.argv[1])
    for family in (linear, features, maps, forests, mixed_forests, vectors):
        family(c)
    for line in c.refused:
        print("peer refuses", line)
    print(f"{c.count} cases")


if __name__ == "__main__":
    main()
