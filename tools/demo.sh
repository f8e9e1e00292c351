#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# README command one: installs what is missing, builds, and runs the main job on a simulated A100:
# one job that computes little and one that is bound by memory. Takes no GPU and sets no clock of a
# real one.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/install_packages.sh
cmake --preset release -DGPOEO_BUILD_TESTS=OFF -DGPOEO_BUILD_BENCH=OFF -B build/demo >/dev/null
cmake --build build/demo --parallel "$(nproc)"
bin=build/demo/bin
echo
echo "== An LSTM training job, 15 simulated minutes at 25 times the speed (measured A100 response)"
"$bin/gpoeo" run --twin a100 --twin-speed 25 -- "$bin/gpoeo-twin-job" lstm --seconds 900
echo
echo "== A memory-bound job, STREAM, likewise"
"$bin/gpoeo" run --twin a100 --twin-speed 25 -- "$bin/gpoeo-twin-job" stream --seconds 900
