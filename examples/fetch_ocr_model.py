"""Takes the trained PP-OCR v4 recogniser and its characters out of a pinned PyPI package (nothing is installed).

  python3 examples/fetch_ocr_model.py OUT      writes OUT/ppocrv4_rec.onnx and OUT/keys.txt
"""
import glob
import os
import subprocess
import sys
import tempfile
import zipfile

PACKAGE = "rapidocr-onnxruntime==1.4.4"  # Apache-2.0; carries the models of PaddleOCR (Apache-2.0)
MODEL = "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx"


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    """(number, bytes) of each length-delimited field of a protobuf message; others are skipped."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 2:
            length, at = varint(data, at)
            yield tag >> 3, data[at:at + length]
            at += length
        elif tag & 7 == 0:
            _, at = varint(data, at)
        else:
            at += {1: 8, 5: 4}[tag & 7]


def characters(model):
    """The value of the model's metadata entry "character" (ModelProto.metadata_props is field 14)."""
    for number, entry in fields(memoryview(model)):
        if number == 14:
            pair = dict(fields(entry))
            if bytes(pair[1]) == b"character":
                return bytes(pair[2])
    sys.exit("the model has no list of characters")


def main(out):
    os.makedirs(out, exist_ok=True)
    if os.path.exists(os.path.join(out, "keys.txt")):
        return
    with tempfile.TemporaryDirectory() as folder:
        got = subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps",
                              "--disable-pip-version-check", "--only-binary=:all:", "-d", folder, PACKAGE])
        if got.returncode:
            sys.exit(f"pip could not download {PACKAGE} (its messages stand above): "
                     "the model of this demonstration comes from PyPI; check the network and run again")
        wheel, = glob.glob(os.path.join(folder, "*.whl"))
        model = zipfile.ZipFile(wheel).read(MODEL)
    with open(os.path.join(out, "ppocrv4_rec.onnx"), "wb") as f:
        f.write(model)
    with open(os.path.join(out, "keys.txt"), "wb") as f:
        f.write(characters(model))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
