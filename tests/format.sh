#!/bin/sh
# clang-format on all C and C++ files; clang-tidy on those changed against $GE_TIDY_BASE (the last commit,
# unless given), at most 20.
set -eu
cd "$(dirname "$0")/.."
git ls-files '*.h' '*.cc' '*.c' | xargs clang-format-19 --dry-run --Werror
echo "format: all files are clean"
base=${GE_TIDY_BASE:-HEAD~1}
commands=build/release/compile_commands.json
[ -f $commands ] || { echo "clang-tidy: no $commands: configure build/release first"; exit 1; }
# What the build does not compile (examples are built against an installed toolkit) has no commands.
changed=$(git diff --name-only --diff-filter=d "$base" -- '*.cc' 2>/dev/null |
  while read -r file; do if grep -q "/$file\"" $commands; then echo "$file"; fi; done | head -20 || true)
[ -z "$changed" ] && { echo "clang-tidy: no changed files"; exit 0; }
# The compile commands are gcc's: clang does not know all of its warnings.
echo "$changed" | xargs -P "$(nproc)" -n 1 clang-tidy-19 -p build/release --quiet --extra-arg=-Wno-unknown-warning-option 2>/dev/null
echo "clang-tidy: $(echo "$changed" | wc -l) changed files are clean"
