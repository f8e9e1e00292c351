#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does a counter window in the job's process ever hurt the job? Starts jobs with the injected
library, asks for counter windows through the ring as gpoeo does, and lets the job end before,
during and after one. Each job must end with 0 and without a word of the C library's. Read-only.

usage: window_exit.py BUILD_DIR [--jobs 20] [--torch 6] [--windows 3]       exits 1 when one was hurt
"""
import argparse
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
REQUEST, COUNTERS, HEAD = 136, 256, 64  # src/wire/progress_ring.h


def ring_of(folder, process):
    while process.poll() is None:
        for path in folder.glob("*.ring"):
            ring = os.open(path, os.O_RDWR)
            if struct.unpack("<Q", os.pread(ring, 8, HEAD))[0] > 200:
                return ring
            os.close(ring)
        time.sleep(0.02)
    return None


def answered(ring):
    return struct.unpack("<Q", os.pread(ring, 8, COUNTERS + 8))[0]


def run(command, library, metrics, request_at, windows, env):
    """Asks for `windows` windows one after the other, the first `request_at` seconds after the launches began."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="gpoeo-exit-", dir="/dev/shm"))
    shutil.copy(metrics, folder / "counters.txt")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env | {
        "CUDA_INJECTION64_PATH": library, "GPOEO_RING_DIR": str(folder), "GPOEO_INJECT_LOG": "1"})
    ring, asked, began = ring_of(folder, process), 0, time.monotonic()
    while ring is not None and process.poll() is None:
        if time.monotonic() - began > 60:
            process.kill()
        if time.monotonic() - began > request_at and asked < windows and answered(ring) == asked:
            os.pwrite(ring, struct.pack("<Q", 4_000_000_000), REQUEST + 16)
            asked += 1
            os.pwrite(ring, struct.pack("<Q", asked), REQUEST)
        time.sleep(0.01)
    out = process.communicate()[0]
    done = answered(ring) if ring is not None else 0
    shutil.rmtree(folder)
    return process.returncode, asked, done, out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--jobs", type=int, default=20)
    parser.add_argument("--torch", type=int, default=6)
    parser.add_argument("--windows", type=int, default=3)
    options = parser.parse_args()
    build = pathlib.Path(options.build).resolve()
    library = str(build / "lib" / "gpoeo" / "libgpoeo_inject.so")
    metrics = next(p for p in (build / "data/counters/cupti.txt", build / "share/gpoeo/counters/cupti.txt",
                               HERE.parents[1] / "data/counters/cupti.txt") if p.exists())
    binary = str(pathlib.Path(tempfile.mkdtemp()) / "step_loop")
    subprocess.run(["nvcc", "-O2", "-o", binary, str(HERE / "step_loop.cu")], check=True)
    trials = [([binary, "2.0"], 0.1 * i, 9) for i in range(options.jobs)]
    for i in range(options.torch):
        loop = ("transformer", "cnn")[i % 2]
        trials.append(([sys.executable, str(HERE / "loops.py"), loop, "--seconds", "7"], 0.7 * i, options.windows))
    hurt = 0
    for number, (command, request_at, windows) in enumerate(trials):
        checked = number % 2 == 1  # by glibc's own checks of the heap
        env = dict(os.environ) | ({"LD_PRELOAD": "libc_malloc_debug.so.0", "MALLOC_CHECK_": "3"} if checked else {})
        code, asked, done, out = run(command, library, metrics, request_at, windows, env)
        bad = code != 0 or re.search(r"malloc|corrupt|free\(\)|double|Segmentation|Error", out) is not None
        hurt += bad
        print(f"{'step_loop' if len(command) < 3 else 'torch ' + command[2]:18} first window at {request_at:.1f} s, "
              f"asked {asked}, answered {done}, exit {code}{', heap checked' if checked else ''}{'  HURT' if bad else ''}",
              flush=True)
        if bad:
            print("    " + "\n    ".join(out.splitlines()[-25:]), flush=True)
    print(f"{len(trials)} jobs, {hurt} hurt")
    return 1 if hurt else 0


if __name__ == "__main__":
    sys.exit(main())
