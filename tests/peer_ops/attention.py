"""Cases of attention, rotary embedding and packed weights of com.microsoft."""

import numpy as np
from onnx import TensorProto as T

rng = np.random.default_rng(11)
F = T.FLOAT
CLOSE = {"atol": 2e-5}


def f32(*shape, scale=1.0):
    return (rng.standard_normal(shape) * scale).astype(np.float32)


def whole(c):
    x, w, b = f32(2, 5, 16), f32(16, 48, scale=0.3), f32(48)
    raw = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
    add = lambda name, inputs, outputs=(F,), **attrs: c.add(
        "attention_" + name, "Attention", inputs, list(outputs), num_heads=4, tolerance=CLOSE, **attrs)
    add("plain", [x, w, b])
    add("causal", [x, w, b], unidirectional=1)
    add("scale", [x, w, b], scale=0.3)
    add("mask_raw", [x, w, b, raw])
    add("mask_raw_causal", [x, w, b, raw], unidirectional=1)
    add("mask_lengths", [x, w, b, np.array([3, 5], np.int32)])
    add("mask_ends", [x, w, b, np.array([3, 5, 1, 0], np.int32)])
    add("mask_3d", [x, w, b, rng.integers(0, 2, (2, 5, 5)).astype(np.int32) | np.eye(5, dtype=np.int32)])
    add("bias", [x, w, b, None, None, f32(2, 4, 5, 5)])
    add("bias_one", [x, w, b, None, None, f32(1, 4, 5, 5)])
    add("sizes", [x, f32(16, 16 + 16 + 24, scale=0.3), f32(56)], qkv_hidden_sizes=[16, 16, 24])
    add("past", [x, w, b, None, f32(2, 2, 4, 3, 4)], (F, F), unidirectional=1)
    add("present", [x, w, b], (F, F))
    add("past_mask", [x, w, b, np.ones((2, 8), np.int32), f32(2, 2, 4, 3, 4)], (F, F))


def multi_head(c):
    q, k, v = f32(2, 4, 16), f32(2, 6, 16), f32(2, 6, 24)
    add = lambda name, inputs, outputs=(F,), **attrs: c.add(
        "mha_" + name, "MultiHeadAttention", inputs, list(outputs), num_heads=4, tolerance=CLOSE, **attrs)
    add("plain", [q, k, v])
    add("bias", [q, k, v, f32(16 + 16 + 24)])
    add("scale", [q, k, v], scale=0.4)
    add("causal", [q, f32(2, 4, 16), f32(2, 4, 16)], unidirectional=1)
    long = [f32(2, 200, 64) for _ in range(3)]
    add("long_causal", long, unidirectional=1)
    add("long_lengths", [*long, None, np.array([3, 150], np.int32)])
    add("lengths", [q, k, v, None, np.array([3, 6], np.int32)])
    add("padding", [q, k, v, None, rng.integers(0, 2, (2, 6)).astype(np.int32) | np.eye(2, 6, dtype=np.int32)])
    add("attention_bias", [q, k, v, None, None, f32(2, 4, 4, 6)])
    add("attention_bias_one", [q, k, v, None, None, f32(1, 1, 4, 6)])
    add("packed_kv", [q, f32(2, 6, 4, 2, 4)])
    add("packed_qkv", [f32(2, 4, 4, 3, 4)])
    add("cross", [q, f32(2, 4, 6, 4), f32(2, 4, 6, 4)])
    add("past", [q, f32(2, 4, 16), f32(2, 4, 16), None, None, None, f32(2, 4, 3, 4), f32(2, 4, 3, 4)],
        (F, F, F))
    add("present", [q, f32(2, 4, 16), f32(2, 4, 16)], (F, F, F))


def grouped(c):
    def add(name, batch, seq, past, heads=4, kv=2, head=16, lengths=None, packed=False, extra=(),
            sink=False, **attrs):
        q = f32(batch, seq, (heads + (2 * kv if packed else 0)) * head)
        k = None if packed else f32(batch, seq, kv * head)
        v = None if packed else f32(batch, seq, kv * head)
        pk, pv = f32(batch, kv, past, head), f32(batch, kv, past, head)
        total = past + seq
        lens = np.array(lengths if lengths else [total - 1] * batch, np.int32)
        inputs = [q, k, v, pk, pv, lens, np.array(total, np.int32)]
        if attrs.get("do_rotary"):
            inputs += [f32(32, head // 2), f32(32, head // 2)]
        inputs += [None] * (11 - len(inputs)) if sink else []
        inputs += [f32(heads)] if sink else list(extra)
        c.add("gqa_" + name, "GroupQueryAttention", inputs, [F, F, F], num_heads=heads,
              kv_num_heads=kv, tolerance=CLOSE, **attrs)

    add("prompt", 2, 5, 0)
    add("step", 2, 1, 6)
    add("packed", 1, 5, 0, packed=True)
    add("rotary", 2, 5, 0, do_rotary=1)
    add("rotary_step", 2, 1, 6, do_rotary=1)
    add("rotary_interleaved", 2, 1, 6, do_rotary=1, rotary_interleaved=1)
    add("rotary_packed", 1, 4, 0, packed=True, do_rotary=1)
    add("window", 1, 7, 0, local_window_size=3)
    add("window_step", 1, 1, 6, local_window_size=3)
    add("scale", 1, 5, 0, scale=0.2)
    add("softcap", 1, 5, 0, softcap=0.5)
    add("same_heads", 1, 5, 0, heads=2, kv=2)
    add("chunk", 1, 3, 6)
    add("smooth", 2, 5, 0, smooth_softmax=1)
    add("smooth_step", 2, 1, 6, smooth_softmax=1)
    add("sink", 2, 5, 0, sink=True)
    add("sink_step", 2, 1, 6, sink=True)
    add("sink_window", 1, 7, 0, sink=True, local_window_size=3)
    add("window_rotary_step", 2, 1, 6, do_rotary=1, local_window_size=3)
    # More keys than are left out together.
    add("long", 2, 150, 0)
    add("long_window", 1, 150, 0, local_window_size=20)
    add("long_chunk", 1, 70, 130, heads=2)
    add("long_step", 2, 1, 199)
    add("long_step_window", 2, 1, 199, local_window_size=30)


def rotary(c):
    x4, x3 = f32(2, 3, 4, 8), f32(2, 4, 24)
    caches = [f32(16, 4), f32(16, 4)]
    ids = rng.integers(0, 16, (2, 4)).astype(np.int64)
    add = lambda name, inputs, **attrs: c.add(
        "rotary_" + name, "RotaryEmbedding", inputs, [F], tolerance=CLOSE, **attrs)
    add("rank4", [x4, ids, *caches])
    add("rank3", [x3, ids, *caches])
    add("offset", [x3, np.array([5], np.int64), *caches])
    add("interleaved", [x3, ids, *caches], interleaved=1)
    add("partial", [x3, ids, f32(16, 2), f32(16, 2)], num_heads=3, rotary_embedding_dim=4)


def packed_weights(c):
    for bits in (4, 8):
        for block in (16, 32):
            n, k = 6, 64
            blocks = k // block
            b = rng.integers(0, 256, (n, blocks, block * bits // 8), dtype=np.uint8)
            scales = np.abs(f32(n * blocks)) * 0.05
            zeros = rng.integers(0, 256, n * ((blocks * bits + 7) // 8), dtype=np.uint8)
            common = dict(K=k, N=n, bits=bits, block_size=block, tolerance={"atol": 1e-4})
            x = f32(2, 3, k)
            c.add(f"nbits{bits}_{block}", "MatMulNBits", [x, b, scales], [F], constants=(1, 2), **common)
            c.add(f"nbits{bits}_{block}_zeros", "MatMulNBits", [x, b, scales, zeros], [F],
                  constants=(1, 2, 3), **common)
    for rows, n in ((1, 40), (4, 16), (2, 3)):  # so few that the weights stay packed
        for bits, zeros in ((4, f32(n * 2)), (4, rng.integers(0, 256, n, dtype=np.uint8)),
                            (8, rng.integers(0, 256, 2 * n, dtype=np.uint8)), (4, None)):
            b = rng.integers(0, 256, (n, 2, 32 * bits // 8), dtype=np.uint8)
            c.add(f"nbits{bits}_few_{rows}_{'none' if zeros is None else zeros.dtype}", "MatMulNBits",
                  [f32(rows, 64), b, np.abs(f32(n * 2)) * 0.05, zeros, None, f32(n)], [F], constants=(1, 2, 3, 5), K=64, N=n,
                  bits=bits, block_size=32, tolerance={"atol": 1e-4})
    n, k, block = 5, 48, 32
    b = rng.integers(0, 256, (n, 2, 16), dtype=np.uint8)
    scales = np.abs(f32(n * 2)) * 0.05
    c.add("nbits4_rest", "MatMulNBits", [f32(3, k), b, scales], [F], constants=(1, 2), K=k, N=n,
          bits=4, block_size=block, tolerance={"atol": 1e-4})
    c.add("nbits4_bias", "MatMulNBits", [f32(3, k), b, scales, None, None, f32(n)], [F],
          constants=(1, 2), K=k, N=n, bits=4, block_size=block, tolerance={"atol": 1e-4})
    # Not compared: packed zero points with g_idx, which the peer leaves out of the sum.
    for name, zero in (("", None), ("_float_zeros", f32(n * 2))):
        groups = rng.integers(0, 2, k).astype(np.int32)
        c.add("nbits4_groups" + name, "MatMulNBits", [f32(3, k), b, scales, zero, groups], [F],
              constants=(1, 2, 3, 4), K=k, N=n, bits=4, block_size=block, tolerance={"atol": 1e-4})
    c.add("nbits4_float_zeros", "MatMulNBits", [f32(3, k), b, scales, f32(n * 2)], [F],
          constants=(1, 2, 3), K=k, N=n, bits=4, block_size=block, tolerance={"atol": 1e-4})


def attention(c):
    for family in (whole, multi_head, grouped, rotary, packed_weights):
        family(c)
