#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what tools/packages.txt lists and is not there yet. As root, or with sudo.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
missing=()
while read -r package; do
  [[ -z "$package" || "$package" == \#* ]] && continue
  if [[ "$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null)" != "install ok installed" ]]; then
    missing+=("$package")
  fi
done < "$here/packages.txt"
if [[ ${#missing[@]} -eq 0 ]]; then
  echo "packages: all of tools/packages.txt are installed"
  exit 0
fi
echo "packages: installing ${missing[*]}"
sudo=()
if [[ $(id -u) -ne 0 ]]; then
  command -v sudo >/dev/null || { echo "packages: not root and no sudo; run this as root" >&2; exit 1; }
  sudo=(sudo)
fi
"${sudo[@]}" apt-get update -qq
"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
