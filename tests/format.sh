#!/bin/sh
# clang-format on all C and C++ files; clang-tidy on those changed against the main branch's last commit
# that passed (or against HEAD~1 in a clean clone).
set -eu
cd "$(dirname "$0")/.."
git ls-files '*.h' '*.cc' '*.c' | xargs clang-format-19 --dry-run --Werror
echo "format: all files are clean"
base=${GE_TIDY_BASE:-HEAD~1}
changed=$(git diff --name-only --diff-filter=d "$base" -- '*.cc' 2>/dev/null | head -20 || true)
[ -z "$changed" ] && { echo "clang-tidy: no changed files"; exit 0; }
# shellcheck disable=SC2086
clang-tidy-19 -p build/release --quiet $changed 2>/dev/null
echo "clang-tidy: $(echo "$changed" | wc -l) changed files are clean"
