#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the injected library costs: time of a step with and without it, interleaved runs of three
loops of loops.py. The library writes into a ring that nobody drains where gpoeo is left out, so
both arms run under `gpoeo run --dry-run`, one of them with --no-inject.

usage: inject_overhead.py BUILD_DIR [--runs 5] [--steps 3000]
"""
import argparse
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def step_us(gpoeo, name, steps, inject, env):
    command = [gpoeo, "run", "--dry-run", "-q", *([] if inject else ["--no-inject"]), "--", sys.executable,
               str(HERE / "loops.py"), name, "--steps", str(steps)]
    out = subprocess.run(command, capture_output=True, text=True, env=env, check=True).stdout
    return float(re.search(r"^step_us ([\d.]+)", out, re.M).group(1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--loops", default="cnn,transformer,mlp")
    options = parser.parse_args()
    gpoeo = str(pathlib.Path(options.build).resolve() / "bin" / "gpoeo")
    env = os.environ | {"GPOEO_STATE_DIR": tempfile.mkdtemp()}
    for name in options.loops.split(","):
        ratios, times = [], {True: [], False: []}
        for run in range(options.runs):
            for inject in ((False, True) if run % 2 == 0 else (True, False)):
                times[inject].append(step_us(gpoeo, name, options.steps, inject, env))
            ratios.append(times[True][-1] / times[False][-1])
        spread = statistics.stdev(times[False]) / statistics.mean(times[False])
        print(f"{name:12} without {statistics.median(times[False]):9.2f} us a step (spread {100 * spread:.2f} %), "
              f"with {statistics.median(times[True]):9.2f}, ratio {statistics.median(ratios):.4f} "
              f"({min(ratios):.4f} to {max(ratios):.4f}, {options.runs} pairs)", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
