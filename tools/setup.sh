#!/bin/sh
# Installs the Debian packages of dependencies.txt that are missing. Needs root or sudo only if some are.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
missing=""
for package in $(awk '$1 == "debian" {print $2}' "$root/dependencies.txt"); do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q '^install ok installed' || missing="$missing $package"
done
[ -z "$missing" ] && exit 0
echo "installing:$missing"
if [ "$(id -u)" = 0 ]; then run=""; else run="sudo"; fi
export DEBIAN_FRONTEND=noninteractive
$run apt-get update -qq
# shellcheck disable=SC2086
$run apt-get install -y -qq --no-install-recommends $missing >/dev/null
