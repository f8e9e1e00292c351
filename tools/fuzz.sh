#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the libFuzzer targets with Clang, address and undefined-behaviour sanitizers, and runs each
# for a while, two at a time. Fails on the first finding.
#
#   tools/fuzz.sh [SECONDS]      (60 by default)
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
targets=(ring_fuzz trace_csv_fuzz launch_csv_fuzz launch_repeats_fuzz response_table_fuzz model_file_fuzz)
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz --parallel "$(nproc)" --target "${targets[@]}" >/dev/null
run() {
  local binary
  binary=$(find build/fuzz/src -name "$1" -type f -perm -u+x | head -1)
  if "$binary" -max_total_time="$seconds" -rss_limit_mb=2048 -print_final_stats=1 >"build/fuzz/$1.log" 2>&1; then
    echo "fuzz: $1: $(grep -o 'number_of_executed_units: .*' "build/fuzz/$1.log" | tr -s ' ' | cut -d' ' -f2) inputs in $seconds s, no finding"
  else
    echo "fuzz: $1 FAILED:"; tail -40 "build/fuzz/$1.log"; return 1
  fi
}
export -f run
export seconds
printf '%s\n' "${targets[@]}" | xargs -P 2 -I{} bash -c 'run {}'
