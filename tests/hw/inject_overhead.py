#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the injected library costs: time of a step with and without it.

Each process of a loop is compared with itself: without the library, with it, and without it again
(overhead_turns.py), in short turns, one process at a time on the same cores; its ratio is the mean
step with over the mean step without. The rings are drained here as gpoeo does, ten times a second.
Then nanoseconds a launch of an empty kernel, in interleaved runs of launch_cost.cu.

usage: inject_overhead.py BUILD_DIR [--runs 10] [--turns 8] [--seconds 0.25] [--loops a,b,c]
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


def turn(process, what="go"):
    process.stdin.write(what + "\n")
    process.stdin.flush()
    return float(process.stdout.readline().split()[1])


def launches(drain):
    time.sleep(0.25)
    return drain.taken


def compare_loop(name, drain, library, options):
    """All processes of one loop at once; they end before the next loop's begin, for the GPU's memory."""
    env = drain.environment(library, False) | {"GPOEO_RING_DIR": str(drain.folder)}
    processes = [subprocess.Popen(
        [sys.executable, str(HERE / "overhead_turns.py"), name, library, str(options.seconds)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env) for _ in range(options.runs)]
    for process in processes:
        assert process.stdout.readline().strip() == "ready"
        pin(process.pid)  # not before: starting takes every core there is
    times = {"before": [[] for _ in processes], "with": [[] for _ in processes], "after": [[] for _ in processes]}
    logged = launches(drain)
    for phase, change in (("before", "go"), ("with", "inject"), ("after", "aside")):
        for process in processes:
            turn(process, change)
        for _ in range(options.turns if phase == "with" else (options.turns + 1) // 2):
            for values, process in zip(times[phase], processes):
                values.append(turn(process))
        if phase == "with":
            logged = launches(drain) - logged
    without = [statistics.mean(a + b) for a, b in zip(times["before"], times["after"])]
    ratios = [statistics.mean(w) / o for w, o in zip(times["with"], without)]
    nothing = [statistics.mean(b) / statistics.mean(a) for a, b in zip(times["before"], times["after"])]
    error = statistics.stdev(ratios) / len(ratios) ** 0.5
    steps = sum(options.seconds * 1e6 / t for w in times["with"] for t in w)
    print(f"{name:18} {statistics.median(without):9.1f} us a step, about {logged / steps:5.0f} launches; ratio mean "
          f"{statistics.mean(ratios):.4f} +- {error:.4f}, median {statistics.median(ratios):.4f}, {min(ratios):.4f} to "
          f"{max(ratios):.4f}, {len(ratios)} processes; after over before (nothing in both) "
          f"{statistics.mean(nothing):.4f} +- {statistics.stdev(nothing) / len(nothing) ** 0.5:.4f}", flush=True)
    for process in processes:
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
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--turns", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=0.25)
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
