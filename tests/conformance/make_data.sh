#!/bin/sh
# Copies ONNX's backend tests out of the pinned onnx package, which carries them, into a folder.
# Exit code 77: the package cannot be installed.
set -eu
out=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
python=$("$root/bench/venv")
data=$("$python" -c 'import onnx.backend.test, os; print(os.path.join(os.path.dirname(onnx.backend.test.__file__), "data"))')
rm -rf "$out.part"
cp -R "$data" "$out.part"
mv "$out.part" "$out"
