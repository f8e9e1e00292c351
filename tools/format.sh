#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Formats the C++ and C sources; with --check only says which are not formatted and exits 1.
set -euo pipefail
cd "$(dirname "$0")/.."
mapfile -t files < <(git ls-files --cached --others --exclude-standard '*.h' '*.cc' '*.c')
if [[ "${1:-}" == --check ]]; then
  clang-format-16 --dry-run -Werror "${files[@]}"
  echo "format: ${#files[@]} files are formatted"
else
  clang-format-16 -i "${files[@]}"
fi
