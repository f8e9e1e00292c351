#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a real card shows, beside a real training loop. Read-only: no setter is called anywhere here
# (doctor, monitor and --dry-run open the driver without them). Needs a GPU, PyTorch and the build.
#
#   tests/hw/read_only.sh BUILD_DIR
set -uo pipefail
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
export GPOEO_STATE_DIR=$(mktemp -d)
say() { printf '\n== %s\n' "$*"; }

say "date, driver, card"
date -u +%F; nvidia-smi --query-gpu=name,driver_version,power.limit --format=csv,noheader
say "training loop in the background"
python3 "$here/training_loop.py" 75 & loop=$!
sleep 12
say "gpoeo doctor"
"$build/bin/gpoeo" doctor; echo "exit $?"
say "gpoeo monitor --seconds 20 --interval 2"
"$build/bin/gpoeo" monitor --seconds 20 --interval 2; echo "exit $?"
say "sampler cost"
"$build/bench/sampler_cost" --nvml libnvidia-ml.so.1 --seconds 20
wait $loop
say "gpoeo run --dry-run -- training loop"
"$build/bin/gpoeo" run --dry-run -- python3 "$here/training_loop.py" 15; echo "exit $?"
say "adapter test on the card"
"$build/tests/nvml_card_test" | tail -15
say "stock pynvml on the twin's library"
LD_LIBRARY_PATH="$build/lib/twin" "$build/tests/twin_scene" h200 resnet50 2 python3 "$here/pynvml_walk.py" | tail -25
say "clocks and limit afterwards (as found)"
nvidia-smi --query-gpu=clocks.max.sm,power.limit,persistence_mode --format=csv,noheader
