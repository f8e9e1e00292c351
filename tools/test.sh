#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# README command two: installs what is missing, builds with warnings as errors, and runs every check
# and test. Needs no GPU.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/install_packages.sh
tools/format.sh --check
python3 tools/check_includes.py
python3 tools/make_twin71.py --check
cmake --preset ci
cmake --build --preset ci --parallel "$(nproc)"
python3 tools/check_tests_built.py build/ci
ctest --preset ci --parallel "$(nproc)"
tools/fuzz.sh 60
