"""Preprocessing of atc (--insert_op_conf), pixel by pixel against plain loops; runs with atc_options.py."""
import os
import struct

from atc_case import Case, mm, picture_model


def aipp_reference(keys, data, h, w, channels=3):
    """RGB888 or YUV420SP bytes to f32 [3][H][W]: plain loops, docs/aipp.md word for word."""
    get = lambda k, d=0: keys.get(k, d)
    pixels = [[None] * w for _ in range(h)]
    for y in range(h):
        for x in range(w):
            form = keys["input_format"]
            if form == "RGB888_U8":
                pixels[y][x] = [data[(y * w + x) * 3 + c] for c in range(3)]
            elif form in ("XRGB8888_U8", "ARGB8888_U8", "AYUV444_U8"):
                p = [data[(y * w + x) * 4 + c] for c in range(4)]
                pixels[y][x] = p[1:] + p[:1] if get("ax_swap_switch") == "true" else p
            elif form == "YUYV_U8":
                pair = y * w * 2 + x // 2 * 4
                pixels[y][x] = [data[(y * w + x) * 2], data[pair + 1], data[pair + 3]]
            elif form == "YUV422SP_U8":
                uv = h * w + y * w + x // 2 * 2
                pixels[y][x] = [data[y * w + x], data[uv], data[uv + 1]]
            elif form.startswith("RAW"):
                pixels[y][x] = [data[y * w + x]]
            else:
                uv = h * w + (y // 2) * w + (x // 2) * 2
                pixels[y][x] = [data[y * w + x], data[uv], data[uv + 1]]
    if get("crop") == "true":
        y0, x0 = get("load_start_pos_h"), get("load_start_pos_w")
        pixels = [row[x0:x0 + keys["crop_size_w"]] for row in pixels[y0:y0 + keys["crop_size_h"]]]
    for _ in range(get("rotation_angle") // 90):
        pixels = [list(column)[::-1] for column in zip(*pixels)]
    out = []
    for row in pixels:
        line = []
        for p in row:
            p = list(p)
            if get("rbuv_swap_switch") == "true":
                a, b = (0, 2) if "RGB" in keys["input_format"] else (1, 2)
                if len(p) == 4 and get("ax_swap_switch") != "true":
                    a, b = a + 1, b + 1
                p[a], p[b] = p[b], p[a]
            if get("csc_switch") == "true":
                q = [p[j] - get("input_bias_%d" % j) for j in range(3)]
                p = [min(255, max(0, (sum(get("matrix_r%dc%d" % (i, j)) * q[j] for j in range(3)) >> 8) + get("output_bias_%d" % i)))
                     for i in range(3)]
            scale = 2.0 ** -get("raw_rgbir_to_f16_n")
            line.append([(p[c] * scale - get("mean_chn_%d" % c) - get("min_chn_%d" % c)) * get("var_reci_chn_%d" % c, 1)
                         for c in range(channels)])
        out.append(line)
    if get("padding") == "true":
        width = len(out[0]) + get("left_padding_size") + get("right_padding_size")
        blank = [get("padding_value")] * channels
        out = [[blank] * get("left_padding_size") + r + [blank] * get("right_padding_size") for r in out]
        out = [[blank] * width] * get("top_padding_size") + out + [[blank] * width] * get("bottom_padding_size")
    return [out[y][x][c] for c in range(channels) for y in range(len(out)) for x in range(len(out[0]))]


class Aipp(Case):
    YUV = {"input_format": "YUV420SP_U8", "csc_switch": "true", "matrix_r0c0": 256, "matrix_r0c1": 0, "matrix_r0c2": 359,
           "matrix_r1c0": 256, "matrix_r1c1": -88, "matrix_r1c2": -183, "matrix_r2c0": 256, "matrix_r2c1": 454, "matrix_r2c2": 0,
           "input_bias_1": 128, "input_bias_2": 128}
    NORM = {"mean_chn_0": 104, "mean_chn_1": 117, "mean_chn_2": 123, "var_reci_chn_0": 0.5, "var_reci_chn_1": 0.25, "min_chn_2": 0.5}

    def config(self, keys):
        return self.path("aipp.cfg", "# picture\naipp_op {\n  aipp_mode: static\n" + "".join("  %s : %s\n" % k for k in keys.items()) + "}\n")

    def check(self, keys, h, w, result_h, result_w, channels=3):
        keys = {"src_image_size_w": w, "src_image_size_h": h, **keys}
        identity = mm.model(mm.graph("p", [mm.node("Neg", ["x"], ["n"]), mm.node("Neg", ["n"], ["y"])],
                                     [mm.value_info("x", mm.F32, [1, channels, result_h, result_w])],
                                     [mm.value_info("y", mm.F32, [1, channels, result_h, result_w])]))
        self.works("--insert_op_conf=" + self.config(keys), model=self.path("p.onnx", identity))
        halves = {"RGB888_U8": 6, "YUV420SP_U8": 3, "YUYV_U8": 4, "YUV422SP_U8": 4}.get(keys["input_format"], 8)
        size = h * w * halves // 2
        data = bytes((i * 73 + i * i * 31 + 5) % 256 for i in range(size))
        if keys["input_format"].startswith("RAW"):
            pixels = [(i * 7919 + 11) % 4096 for i in range(h * w)]
            data = struct.pack("<%d%s" % (h * w, "I" if keys["input_format"] == "RAW24" else "H"), *pixels)
        else:
            pixels = data
        self.run_model(self.path("x.bin", data))
        with open(os.path.join(self.folder, "out", "y.npy"), "rb") as f:
            raw = f.read()
        want = aipp_reference(keys, pixels, h, w, channels)
        self.assertEqual(list(struct.unpack("<%df" % len(want), raw[-4 * len(want):])), want)

    def test_rgb(self):
        self.check({"input_format": "RGB888_U8", "rbuv_swap_switch": "true", **self.NORM}, 6, 8, 6, 8)

    def test_yuv(self):
        self.check({**self.YUV, **self.NORM}, 6, 8, 6, 8)

    def test_other_formats(self):
        yuv = {k: v for k, v in self.YUV.items() if k != "input_format"}
        for form in ("YUYV_U8", "YUV422SP_U8"):
            self.check({"input_format": form, **yuv, **self.NORM}, 4, 6, 4, 6)
            self.check({"input_format": form, "rbuv_swap_switch": "true"}, 4, 6, 4, 6)
        for form in ("XRGB8888_U8", "ARGB8888_U8", "AYUV444_U8"):
            for ax in ("true", "false"):
                self.check({"input_format": form, "ax_swap_switch": ax, "rbuv_swap_switch": "true", **self.NORM}, 3, 5, 3, 5)
        self.check({"input_format": "AYUV444_U8", "ax_swap_switch": "true", **yuv}, 3, 5, 3, 5)

    def test_resize_of_a_flat_picture_and_by_two(self):
        keys = {"input_format": "RGB888_U8", "src_image_size_w": 2, "src_image_size_h": 1, "resize": "true",
                "resize_output_w": 4, "resize_output_h": 2}
        model = self.path("p.onnx", picture_model([1, 3, 2, 4]))
        self.works("--insert_op_conf=" + self.config(keys), model=model)
        self.run_model(self.path("x.bin", bytes([0, 10, 8, 100, 10, 16])))
        with open(os.path.join(self.folder, "out", "y.npy"), "rb") as f:
            got = struct.unpack("<24f", f.read()[-96:])
        rows = ([0, 25, 75, 100], [10] * 4, [8, 10, 14, 16])  # half-pixel centres: 0, 1/4, 3/4, 1
        self.assertEqual(list(got), [v for row in rows for v in row * 2])

    def test_uv_swap_without_csc(self):
        self.check({"input_format": "YUV420SP_U8", "rbuv_swap_switch": "true"}, 4, 6, 4, 6)

    def test_crop_and_padding(self):
        self.check({**self.YUV, **self.NORM, "crop": "true", "load_start_pos_h": 2, "load_start_pos_w": 2, "crop_size_h": 4,
                    "crop_size_w": 4, "padding": "true", "left_padding_size": 1, "right_padding_size": 2, "top_padding_size": 3,
                    "bottom_padding_size": 1, "padding_value": 7}, 8, 8, 8, 7)

    def test_rotation(self):
        for angle in (90, 180, 270):
            h, w = (8, 6) if angle != 180 else (6, 8)
            self.check({"input_format": "RGB888_U8", "rotation_angle": angle, **self.NORM}, 6, 8, h, w)
        self.check({**self.YUV, "rotation_angle": 90, "crop": "true", "load_start_pos_h": 0, "load_start_pos_w": 2,
                    "crop_size_h": 4, "crop_size_w": 2}, 6, 8, 2, 4)

    def test_raw(self):
        for form in ("RAW10", "RAW12", "RAW16", "RAW24"):
            self.check({"input_format": form, "raw_rgbir_to_f16_n": 4, "mean_chn_0": 8, "var_reci_chn_0": 0.25}, 4, 6, 4, 6, 1)
        self.check({"input_format": "RAW16"}, 4, 6, 4, 6, 1)

    def test_faults(self):
        p = self.path("p.onnx", picture_model([1, 3, 4, 4]))
        for text in ("", "aipp_op {", "aipp_op { aipp_mode: static }", "aipp_op { input_format: RGB888_U8 crops: true }",
                     "aipp_op { input_format: RAW10 csc_switch: true }", "aipp_op { input_format: RAW11 }",
                     "aipp_op { input_format: RGB888_U8 rotation_angle: 45 }", "aipp_op { input_format: RGB888_U8 mean_chn_0: 300 }",
                     "aipp_op { aipp_mode: dynamic }", "aipp_op { input_format: YUV400_U8 }",
                     "aipp_op { input_format: RGB888_U8 related_input_rank: 3 }",
                     "aipp_op { input_format: RGB888_U8 src_image_size_w: 5 src_image_size_h: 4 }"):
            with self.subTest(text):
                self.refused(self.atc("--insert_op_conf=" + self.path("a.cfg", text), model=p), "E10052")
        ok = self.path("ok.cfg", "aipp_op { aipp_mode: static input_format: RGB888_U8 }")
        self.refused(self.atc("--insert_op_conf=" + ok, "--input_fp16_nodes=x", model=p), "E10034")

    def check_dynamic(self, formats, keys, h, w):
        """Records of a batch of two give what static configurations of the two give."""
        ids = {"YUV420SP_U8": 1, "RGB888_U8": 3}
        model = mm.model(mm.graph("p", [mm.node("Neg", ["x"], ["n"]), mm.node("Neg", ["n"], ["y"])],
                                  [mm.value_info("x", mm.F32, [2, 3, h, w])], [mm.value_info("y", mm.F32, [2, 3, h, w])]))
        self.works("--insert_op_conf=" + self.path("a.cfg", "aipp_op { aipp_mode: dynamic max_src_image_size: 512 }"),
                   model=self.path("p.onnx", model))
        for form in formats:
            k = {"input_format": form, **keys}
            size = h * w * 3 if form == "RGB888_U8" else h * w * 3 // 2
            data = bytes((i * 91 + i * i * 17 + 3) % 256 for i in range(2 * size))
            record = [ids[form], k.get("csc_switch") == "true", k.get("rbuv_swap_switch") == "true", 0, w, h]
            record += [k.get("matrix_r%dc%d" % (i, j), 0) for i in range(3) for j in range(3)]
            record += [k.get("output_bias_%d" % i, 0) for i in range(3)] + [k.get("input_bias_%d" % i, 0) for i in range(3)]
            record += [0] * 15
            record += [k.get("mean_chn_%d" % i, 0) for i in range(4)] + [k.get("min_chn_%d" % i, 0) for i in range(4)]
            record += [k.get("var_reci_chn_%d" % i, 1) for i in range(4)]
            self.assertEqual(len(record), 48)
            self.run_model(self.path("x.bin", data.ljust(512, b"\0")), self.path("r.bin", struct.pack("<96f", *record, *record)))
            with open(os.path.join(self.folder, "out", "y.npy"), "rb") as f:
                raw = f.read()
            want = aipp_reference(k, data[:size], h, w) + aipp_reference(k, data[size:], h, w)
            self.assertEqual(list(struct.unpack("<%df" % len(want), raw[-4 * len(want):])), want)

    def test_dynamic(self):
        self.check_dynamic(["YUV420SP_U8", "RGB888_U8"], {"rbuv_swap_switch": "true", **self.NORM}, 4, 6)
        yuv = {k: v for k, v in self.YUV.items() if k != "input_format"}
        self.check_dynamic(["YUV420SP_U8"], {**yuv, **self.NORM}, 6, 4)

    def test_dynamic_compiles(self):
        p = self.path("p.onnx", picture_model([2, 3, 4, 4]))
        self.works("--insert_op_conf=" + self.path("a.cfg", "aipp_op { aipp_mode: dynamic max_src_image_size: 4096 }"), model=p)
        d = self.description()
        self.assertEqual(d["aipp"][0]["mode"], "dynamic")
        self.assertEqual([(i["name"], i["dims"]) for i in d["inputs"]], [("x", [4096]), ("ascend_dynamic_aipp_data", [2, 48])])
