#!/bin/sh
# Writes ONNX's node tests into a folder with the pinned onnx package's own generator.
set -eu
out=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
venv="$root/build/conformance-venv"
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check -r "$root/bench/requirements.txt" pillow
mkdir -p "$out.part"
"$venv/bin/python" -m onnx.backend.test.cmd_tools generate-data -o "$out.part" >/dev/null
mv "$out.part" "$out"
