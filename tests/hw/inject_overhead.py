#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the injected library costs: time of a step with and without it. For each loop RUNS processes
with and RUNS without are started together and then measured in short turns, one at a time on the same
four cores, a pair (with, without; then without, with) after the other; the rings are drained here as
gpoeo does, ten times a second. Then nanoseconds a launch of an empty kernel, in interleaved runs of launch_cost.cu.

usage: inject_overhead.py BUILD_DIR [--runs 5] [--rounds 6] [--seconds 0.5]
"""
import argparse
import os
import pathlib
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
CORES = set(sorted(os.sched_getaffinity(0))[-4:])
HEAD, TAIL = 64, 128  # of the progress ring: src/wire/progress_ring.h


class Drain(threading.Thread):
    """Takes whatever lies in the rings of a folder."""

    def __init__(self):
        super().__init__(daemon=True)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="gpoeo-overhead-", dir="/dev/shm"))
        self.taken = 0
        self.done = threading.Event()

    def run(self):
        files = {}
        while not self.done.wait(0.1):
            for path in self.folder.glob("*.ring"):
                if path not in files:
                    files[path] = [os.open(path, os.O_RDWR), 0]
            for entry in files.values():
                head = struct.unpack("<Q", os.pread(entry[0], 8, HEAD))[0]
                os.pwrite(entry[0], struct.pack("<Q", head), TAIL)
                self.taken += head - entry[1]
                entry[1] = head

    def environment(self, library, inject):
        env = {k: v for k, v in os.environ.items() if k not in ("CUDA_INJECTION64_PATH", "GPOEO_RING_DIR")}
        if inject:
            env |= {"CUDA_INJECTION64_PATH": library, "GPOEO_RING_DIR": str(self.folder)}
        return env


def pin(pid):
    for thread in os.listdir(f"/proc/{pid}/task"):
        os.sched_setaffinity(int(thread), CORES)


def turn(process):
    process.stdin.write("go\n")
    process.stdin.flush()
    return float(process.stdout.readline().split()[1])


def compare_loop(name, drain, library, options):
    """All processes of one loop at once; they end before the next loop's begin, for the GPU's memory."""
    processes = {}
    for inject in (False, True):
        for run in range(options.runs):
            processes[inject, run] = subprocess.Popen(
                [sys.executable, str(HERE / "loops.py"), name, "--turns", "--seconds", str(options.seconds)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                env=drain.environment(library, inject))
    for process in processes.values():
        assert process.stdout.readline().strip() == "ready"
        pin(process.pid)  # not before: starting takes every core there is
    ratios, times = [], {False: [], True: []}
    for round_ in range(options.rounds):
        for run in range(options.runs):
            for inject in ((False, True) if (run + round_) % 2 == 0 else (True, False)):
                times[inject].append(turn(processes[inject, run]))
            ratios.append(times[True][-1] / times[False][-1])
    error = statistics.stdev(ratios) / len(ratios) ** 0.5
    print(f"{name:12} without {statistics.median(times[False]):8.1f} us a step (spread "
          f"{100 * statistics.stdev(times[False]) / statistics.mean(times[False]):.1f} %), with "
          f"{statistics.median(times[True]):8.1f}; ratio mean {statistics.mean(ratios):.4f} +- {error:.4f}, median "
          f"{statistics.median(ratios):.4f}, {min(ratios):.4f} to {max(ratios):.4f}, {len(ratios)} pairs", flush=True)
    for process in processes.values():
        process.stdin.close()
        process.wait()


def launch_cost(drain, variants, rounds):
    binary = str(pathlib.Path(tempfile.mkdtemp()) / "launch_cost")
    subprocess.run(["nvcc", "-O2", "-o", binary, str(HERE / "launch_cost.cu")], check=True)
    best = {name: [] for name in variants}
    for _ in range(rounds):
        for name, env in variants.items():
            out = subprocess.run([binary], capture_output=True, text=True, env=env, check=True).stdout
            best[name].append(float(out.split()[2]))
    plain = statistics.median(next(iter(best.values())))
    for name, values in best.items():
        print(f"launch, {name:26} {statistics.median(values):7.0f} ns (median of {rounds} runs, {min(values):.0f} to "
              f"{max(values):.0f}), {statistics.median(values) - plain:+.0f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--loops", default="cnn_large,transformer_large,mlp")
    parser.add_argument("--launch-rounds", type=int, default=10)
    parser.add_argument("--other", help="another injection library to compare with, for its launch cost")
    options = parser.parse_args()
    library = str(pathlib.Path(options.build).resolve() / "lib" / "gpoeo" / "libgpoeo_inject.so")
    drain = Drain()
    drain.start()
    if options.loops:
        for name in options.loops.split(","):
            compare_loop(name, drain, library, options)
    variants = {"without": drain.environment(library, False), "with the library": drain.environment(library, True)}
    if options.other:
        variants[f"with {pathlib.Path(options.other).name}"] = drain.environment(options.other, True)
    launch_cost(drain, variants, options.launch_rounds)
    print(f"{drain.taken} launches were logged")
    drain.done.set()
    shutil.rmtree(drain.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
