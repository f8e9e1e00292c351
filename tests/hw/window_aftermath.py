#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a launch costs before, during and after a counter window: CUPTI's profiler interface stays
initialised when the window is over (docs/counters.md). Without a window too, for comparison.
Read-only.

usage: window_aftermath.py BUILD_DIR [--seconds 24] [--runs 3]
"""
import argparse
import os
import pathlib
import statistics
import struct
import subprocess
import tempfile
import threading
import time

from window_exit import REQUEST, answered, ring_of

HERE = pathlib.Path(__file__).resolve().parent
ASK_AT_S = 6


def run(binary, library, metrics, seconds, window):
    """(seconds since the first line, median ns per launch) of each round, and when the window was asked for and answered."""
    with tempfile.TemporaryDirectory(prefix="gpoeo-aftermath-", dir="/dev/shm") as folder:
        folder = pathlib.Path(folder)
        (folder / "counters.txt").write_text(metrics.read_text())
        process = subprocess.Popen([binary, str(seconds)], stdout=subprocess.PIPE, text=True, env=os.environ | {
            "CUDA_INJECTION64_PATH": library, "GPOEO_RING_DIR": str(folder)})
        rounds, began = [], time.monotonic()

        def read():
            for line in process.stdout:
                rounds.append((time.monotonic() - began, float(line.split()[2])))

        reader = threading.Thread(target=read)
        reader.start()
        ring, asked_at, answered_at = ring_of(folder, process), None, None
        while process.poll() is None:
            now = time.monotonic() - began
            # The ring is drained by nobody else: with a full one a launch would cost less.
            os.pwrite(ring, os.pread(ring, 8, 64), 128)
            if window and asked_at is None and now > ASK_AT_S:
                os.pwrite(ring, struct.pack("<Q", 4_000_000_000), REQUEST + 16)
                os.pwrite(ring, struct.pack("<Q", 1), REQUEST)
                asked_at = now
            if asked_at is not None and answered_at is None and answered(ring) == 1:
                answered_at = now
            time.sleep(0.02)
        reader.join()
        return rounds, asked_at, answered_at


def middle(rounds, begin, end):
    values = [ns for t, ns in rounds if begin < t < end]
    return f"{statistics.median(values):7.0f} ns ({len(values)} rounds)" if values else "none"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--seconds", type=int, default=24)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    build = pathlib.Path(options.build).resolve()
    library = str(build / "lib" / "gpoeo" / "libgpoeo_inject.so")
    metrics = HERE.parents[1] / "data" / "counters" / "cupti.txt"
    with tempfile.TemporaryDirectory() as folder:
        binary = folder + "/launch_cost"
        subprocess.run(["nvcc", "-O2", "-o", binary, str(HERE / "launch_cost.cu")], check=True)
        for _ in range(options.runs):
            for window in (False, True):
                rounds, asked, done = run(binary, library, metrics, options.seconds, window)
                asked, done = asked or ASK_AT_S, done or ASK_AT_S + 6
                print(f"{'with' if window else 'without'} a window: before {middle(rounds, 1, asked)}, "
                      f"during {middle(rounds, asked, done)}, after {middle(rounds, done + 0.5, 1e9)}", flush=True)


if __name__ == "__main__":
    main()
