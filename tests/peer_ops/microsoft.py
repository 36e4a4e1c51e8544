"""Cases of the com.microsoft operators: microsoft.py FOLDER"""

import sys

import numpy as np
from onnx import TensorProto as T

from peer import Cases

rng = np.random.default_rng(7)


def f32(*shape, scale=1.0):
    return (rng.standard_normal(shape) * scale).astype(np.float32)


def u8(*shape):
    return rng.integers(0, 256, shape, dtype=np.uint8)


def i8(*shape):
    return rng.integers(-128, 128, shape, dtype=np.int8)


def s(x, dtype=np.float32):
    return np.array(x, dtype=dtype)


CLOSE = {"atol": 1e-5}
UNIT = {"units": 1}  # a tie of the float arithmetic may fall to either side
F = T.FLOAT


def activations(c):
    x, b = f32(3, 8), f32(8)
    c.add("gelu", "Gelu", [x], [F], tolerance=CLOSE)
    c.add("fast_gelu", "FastGelu", [x], [F], tolerance=CLOSE)
    c.add("fast_gelu_bias", "FastGelu", [x, b], [F], tolerance=CLOSE)
    c.add("bias_gelu", "BiasGelu", [x, b], [F], tolerance=CLOSE)
    c.add("quick_gelu", "QuickGelu", [x], [F], tolerance=CLOSE)
    c.add("quick_gelu_alpha", "QuickGelu", [x], [F], alpha=0.7, tolerance=CLOSE)


def products(c):
    for ta in (0, 1):
        for tb in (0, 1):
            a, b = f32(2, 4, 3) if ta else f32(2, 3, 4), f32(2, 5, 4) if tb else f32(2, 4, 5)
            c.add(f"fused_matmul_{ta}{tb}", "FusedMatMul", [a, b], [F], alpha=0.5, transA=ta,
                  transB=tb, tolerance=CLOSE)
    c.add("fused_matmul_batch", "FusedMatMul", [f32(3, 2, 4), f32(4, 2, 5)], [F], transBatchA=1,
          transBatchB=1, tolerance=CLOSE)
    c.add("fused_matmul_batch_both", "FusedMatMul", [f32(4, 2, 3), f32(5, 2, 4)], [F],
          transBatchA=1, transBatchB=1, transA=1, transB=1, tolerance=CLOSE)
    c.add("fused_matmul_vector", "FusedMatMul", [f32(4), f32(4, 5)], [F], alpha=2.0,
          tolerance=CLOSE)
    c.add("transpose_matmul", "TransposeMatMul", [f32(4, 3), f32(4, 5)], [F], transA=1,
          tolerance=CLOSE)
    x, w, b = f32(1, 3, 8, 8), f32(4, 3, 3, 3), f32(4)
    for act, params in (("Relu", None), ("Tanh", None), ("Sigmoid", None), ("LeakyRelu", [0.3]),
                        ("Clip", [-0.5, 0.7]), ("HardSigmoid", [0.3, 0.4])):
        attrs = {"activation_params": params} if params else {}
        c.add(f"fused_conv_{act.lower()}", "FusedConv", [x, w, b], [F], activation=act,
              tolerance=CLOSE, **attrs)
    c.add("fused_conv_sum", "FusedConv", [x, w, b, f32(1, 4, 6, 6)], [F], activation="Relu",
          tolerance=CLOSE)
    c.add("fused_conv_pads", "FusedConv", [x, w], [F], activation="Relu", pads=[1, 1, 1, 1],
          strides=[2, 2], tolerance=CLOSE)
    for act, attrs in (("Relu", {}), ("LeakyRelu", {"activation_alpha": 0.2})):
        c.add(f"fused_gemm_{act.lower()}", "FusedGemm", [f32(4, 3), f32(3, 5), f32(5)], [F],
              activation=act, alpha=0.7, beta=1.5, tolerance=CLOSE, **attrs)
    c.add("nhwc_max_pool", "NhwcMaxPool", [u8(1, 7, 6, 3)], [T.UINT8], kernel_shape=[3, 2],
          strides=[2, 1], pads=[1, 0, 1, 1])
    c.add("nhwc_max_pool_i8", "NhwcMaxPool", [i8(2, 6, 6, 5)], [T.INT8], kernel_shape=[2, 2])


def norms(c):
    x, skip, g, b = f32(2, 3, 16), f32(2, 3, 16), f32(16), f32(16)
    c.add("skip_layer_norm", "SkipLayerNormalization", [x, skip, g, b, f32(16)],
          [F, None, None, F], epsilon=1e-5, tolerance=CLOSE)
    c.add("skip_layer_norm_plain", "SkipLayerNormalization", [x, skip, g], [F], tolerance=CLOSE)
    c.add("skip_layer_norm_row", "SkipLayerNormalization", [x, f32(3, 16), g, b], [F],
          tolerance=CLOSE)
    c.add("skip_layer_norm_one", "SkipLayerNormalization", [x, f32(1, 3, 16), g, b], [F],
          tolerance=CLOSE)
    c.add("skip_simplified", "SkipSimplifiedLayerNormalization", [x, skip, g, b],
          [F, None, None, F], epsilon=1e-6, tolerance=CLOSE)
    c.add("simplified", "SimplifiedLayerNormalization", [x, g], [F], domain="", axis=-1,
          epsilon=1e-5, stash_type=1, tolerance=CLOSE)
    c.add("simplified_inverse", "SimplifiedLayerNormalization", [x, g], [F, F], domain="",
          axis=-1, epsilon=1e-5, stash_type=1, tolerance=CLOSE)
    c.add("skip_layer_norm_f16", "SkipLayerNormalization",
          [t.astype(np.float16) for t in (x, skip, g, b)], [T.FLOAT16],
          tolerance={"atol": 4e-3})
    ids, segments = rng.integers(0, 20, (2, 5), dtype=np.int32), rng.integers(0, 2, (2, 5), dtype=np.int32)
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
    tables = [f32(20, 8), f32(10, 8), f32(2, 8), f32(8), f32(8)]
    c.add("embed_layer_norm", "EmbedLayerNormalization", [ids, segments, *tables, mask],
          [F, T.INT32], epsilon=1e-5, tolerance=CLOSE)
    c.add("embed_layer_norm_sum", "EmbedLayerNormalization", [ids, segments, *tables, mask],
          [F, T.INT32, F], epsilon=1e-5, mask_index_type=1, tolerance=CLOSE)
    c.add("embed_layer_norm_no_segments", "EmbedLayerNormalization",
          [ids, None, tables[0], tables[1], None, tables[3], tables[4]], [F, T.INT32],
          epsilon=1e-5, tolerance=CLOSE)
    c.add("embed_layer_norm_places", "EmbedLayerNormalization",
          [ids, segments, *tables, None, rng.integers(0, 10, (2, 5), dtype=np.int32)],
          [F, T.INT32], epsilon=1e-5, tolerance=CLOSE)


def quantised(c):
    for kind, make, t, zero in (("u8", u8, T.UINT8, 128), ("i8", i8, T.INT8, 3)):
        dtype = np.uint8 if kind == "u8" else np.int8
        z = s(zero, dtype)
        q = (s(0.02), z)
        x = make(2, 3, 6, 6)
        c.add(f"qadd_{kind}", "QLinearAdd", [x, *q, make(6), s(0.03), z, s(0.04), z], [t],
              tolerance=UNIT)
        c.add(f"qmul_{kind}", "QLinearMul", [x, *q, make(3, 1, 6), s(0.03), z, s(0.06), z], [t],
              tolerance=UNIT)
        c.add(f"qsigmoid_{kind}", "QLinearSigmoid", [x, *q, s(1 / 256), z], [t], tolerance=UNIT)
        c.add(f"qleaky_{kind}", "QLinearLeakyRelu", [x, *q, s(0.015), z], [t], alpha=0.2,
              tolerance=UNIT)
        c.add(f"qsoftmax_{kind}", "QLinearSoftmax", [x, *q, s(1 / 256), s(0 if kind == "u8" else -128, dtype)],
              [t], axis=-1, opset=13, tolerance=UNIT)
        c.add(f"qsoftmax_old_{kind}", "QLinearSoftmax",
              [x, *q, s(1 / 256), s(0 if kind == "u8" else -128, dtype)], [t], axis=2, opset=12,
              tolerance=UNIT)
        c.add(f"qglobal_{kind}", "QLinearGlobalAveragePool", [x, *q, s(0.01), z], [t],
              tolerance=UNIT)
        c.add(f"qglobal_last_{kind}", "QLinearGlobalAveragePool", [x, *q, s(0.01), z], [t],
              channels_last=1, tolerance=UNIT)
        c.add(f"qpool_{kind}", "QLinearAveragePool", [x, *q, s(0.02), z], [t],
              kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1], tolerance=UNIT)
        c.add(f"qpool_count_{kind}", "QLinearAveragePool", [x, *q, s(0.02), z], [t],
              kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1, tolerance=UNIT)
        c.add(f"qpool_last_{kind}", "QLinearAveragePool", [make(1, 6, 6, 4), *q, s(0.02), z], [t],
              kernel_shape=[2, 2], channels_last=1, tolerance=UNIT)
        c.add(f"qconcat_{kind}", "QLinearConcat",
              [s(0.03), z, make(2, 3), *q, make(2, 4), s(0.05), s(1, dtype)], [t], axis=1,
              tolerance=UNIT)
        c.add(f"qmean_{kind}", "QLinearReduceMean", [x, *q, s(0.01), z], [t], axes=[2, 3],
              keepdims=1, tolerance=UNIT)
        c.add(f"qwhere_{kind}", "QLinearWhere",
              [rng.integers(0, 2, (2, 3)).astype(bool), make(2, 3), *q, make(2, 3), s(0.03), z,
               s(0.04), z], [t], tolerance=UNIT)
    a, b = u8(4, 8), i8(8, 6)
    qa, qb = (s(0.02), s(120, np.uint8)), (s(0.01), s(3, np.int8))
    bias = rng.integers(-500, 500, 6, dtype=np.int32)
    c.add("qgemm", "QGemm", [a, *qa, b, *qb, bias, s(0.05), s(100, np.uint8)], [T.UINT8],
          tolerance=UNIT)
    c.add("qgemm_float", "QGemm", [a, *qa, b, *qb, bias], [F], alpha=0.5, tolerance=CLOSE)
    c.add("qgemm_trans", "QGemm", [u8(8, 4), *qa, i8(6, 8), *qb], [F], transA=1, transB=1,
          tolerance=CLOSE)
    c.add("qgemm_columns", "QGemm",
          [a, *qa, b, np.abs(f32(6)) + 0.01, rng.integers(-5, 5, 6, dtype=np.int8), bias, s(0.05),
           s(100, np.uint8)], [T.UINT8], constants=(3, 4, 5), tolerance=UNIT)
    c.add("matmul_integer_to_float", "MatMulIntegerToFloat", [a, b, s(0.02), s(0.01)], [F],
          tolerance=CLOSE)
    c.add("matmul_integer_to_float_full", "MatMulIntegerToFloat",
          [u8(2, 4, 8), b, s(0.02), np.abs(f32(6)), s(120, np.uint8),
           rng.integers(-5, 5, 6, dtype=np.int8), f32(6)], [F], tolerance=CLOSE)
    x = f32(2, 4, 8)
    c.add("dynamic_quantize_matmul", "DynamicQuantizeMatMul", [x, b, s(0.01)], [F],
          tolerance=CLOSE)
    c.add("dynamic_quantize_matmul_full", "DynamicQuantizeMatMul",
          [x, b, np.abs(f32(6)) * 0.01, rng.integers(-5, 5, 6, dtype=np.int8), f32(6)], [F],
          tolerance=CLOSE)
    # The peer rounds activations to bytes in every step, which the definition here leaves out.
    steps = f32(5, 2, 6)
    for name, directions, by_column in (("", 1, False), ("_both_columns", 2, True)):
        width = 4 * 8
        scale = (lambda: np.abs(f32(directions, width)) * 0.002 + 0.001) if by_column else (
            lambda: np.full(directions, 0.003, np.float32))
        zero = (lambda: np.zeros((directions, width), np.int8)) if by_column else (
            lambda: np.zeros(directions, np.int8))
        c.add("dynamic_quantize_lstm" + name, "DynamicQuantizeLSTM",
              [steps, i8(directions, 6, width), i8(directions, 8, width), f32(directions, 2 * width),
               None, f32(directions, 2, 8), f32(directions, 2, 8), None, scale(), zero(), scale(), zero()],
              [F, F, F], constants=(1, 2, 8, 9, 10, 11), hidden_size=8,
              direction="bidirectional" if directions == 2 else "forward", tolerance={"atol": 0.03})
    c.add("quantize_u16", "QuantizeLinear", [f32(3, 5), s(0.001), s(30000, np.uint16)],
          [T.UINT16], tolerance=UNIT)
    c.add("dequantize_u16", "DequantizeLinear",
          [rng.integers(0, 65535, (3, 5)).astype(np.uint16), s(0.001), s(30000, np.uint16)], [F],
          tolerance=CLOSE)
    c.add("quantize_axis", "QuantizeLinear",
          [f32(3, 5), np.abs(f32(3)) + 0.01, rng.integers(0, 9, 3).astype(np.uint8)], [T.UINT8],
          axis=0, tolerance=UNIT)


def main():
    c = Cases(sys.argv[1])
    for family in (activations, products, norms, quantised):
        family(c)
    from attention import attention
    attention(c)
    for line in c.refused:
        print("peer refuses", line)
    print(f"{c.count} cases")


if __name__ == "__main__":
    main()
