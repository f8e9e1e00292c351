#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Counts a program's steps with each version of CUPTI that is named, and none at all. Read-only.
#
# usage: cupti_versions.sh BUILD_DIR FOLDER...      (each FOLDER holds a libcupti.so.*)
set -u
build=$(realpath "$1"); shift
here=$(dirname "$(realpath "$0")")
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
nvcc -O2 -o "$work/step_loop" "$here/step_loop.cu" || exit 1
export GPOEO_STATE_DIR="$work/state" GPOEO_INJECT_LOG=1
bad=0
for folder in "$@"; do
  echo "== $folder: $(cd "$folder" && ls -d libcupti.so* 2>/dev/null | tr '\n' ' ')"
  LD_LIBRARY_PATH="$(realpath "$folder")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
    "$build/bin/gpoeo" run --dry-run -q --counters "${COUNTERS:-cupti}" --report "$work/report.json" -- "$work/step_loop" "${SECONDS_EACH:-20}" \
    >"$work/out" 2>"$work/err"
  own=$(sed -n 's/^iterations //p' "$work/out")
  python3 - "$work/report.json" "$own" <<'END' || bad=1
import json, sys
report = json.load(open(sys.argv[1]))
same = str(report["iterations"]) == sys.argv[2]
print(f"job {sys.argv[2]}  gpoeo {report['iterations']}  {'exact' if same else 'DIFFERENT'}  launch log {report['launch_log']}")
for p in report["profiles"]:
    print(f"  profile {p['source']} {p['seconds']:.2f} s {p['why'] or ''} " + ", ".join(f"{k} {v:.3g}" for k, v in p["activity"].items()))
sys.exit(not same)
END
  grep -iE 'gpoeo.inject|cupti|counter' "$work/err" | head -8
done
exit $bad
