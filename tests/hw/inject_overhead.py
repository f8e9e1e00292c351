#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the injected library costs: time of a step with and without it.

Each process of a loop is compared with itself: launch callbacks off, on, off, on ... in turns of a
tenth of a second (overhead_turns.py), one process at a time on the same cores. The rings are drained
here as gpoeo does, ten times a second. Then nanoseconds a launch of an empty kernel, in interleaved
runs of launch_cost.cu.

usage: inject_overhead.py BUILD_DIR [--runs 5] [--rounds 4] [--pairs 20] [--turn-ms 100] [--loops a,b,c]
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


def real_cupti():
    """The one that PyTorch brings, or the toolkit's."""
    found = subprocess.run(
        [sys.executable, "-c", "import torch, re; print(next(l.split()[-1] for l in open('/proc/self/maps') "
         "if re.search(r'libcupti\\.so', l)))"], capture_output=True, text=True, check=True)
    return found.stdout.strip()


def compare_loop(name, drain, library, shim, options):
    """All processes of one loop at once; they end before the next loop's begin, for the GPU's memory."""
    env = drain.environment(library, False) | {
        "GPOEO_RING_DIR": str(drain.folder), "LD_PRELOAD": shim, "GPOEO_REAL_CUPTI": real_cupti()}
    processes = [subprocess.Popen(
        [sys.executable, str(HERE / "overhead_turns.py"), name, library, str(options.pairs), str(options.turn_ms)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env) for _ in range(options.runs)]
    for process in processes:
        assert process.stdout.readline().strip() == "ready"
        pin(process.pid)  # not before: starting takes every core there is
    pairs = [[] for _ in processes]
    time.sleep(0.3)
    logged = drain.taken
    for _ in range(options.rounds):
        for own, process in zip(pairs, processes):
            process.stdin.write("go\n")
            process.stdin.flush()
            own += [tuple(map(float, p.split(":"))) for p in process.stdout.readline().split()]
    time.sleep(0.3)
    logged = drain.taken - logged
    every = [p for own in pairs for p in own]
    off = statistics.median(o for o, _ in every)
    steps_on = sum(max(1, round(options.turn_ms * 1e3 / off)) + 1 for _ in every)
    medians = [statistics.median(on / off for off, on in own) for own in pairs]
    ratios = sorted(on / off for off, on in every)
    # Of the median of n ratios, from its order statistics.
    half = 1.645 * 0.5 * len(ratios) ** 0.5
    low, high = ratios[max(0, int(len(ratios) / 2 - half))], ratios[min(len(ratios) - 1, int(len(ratios) / 2 + half))]
    print(f"{name:18} {off:9.1f} us a step, about {logged / steps_on:5.0f} launches; on over off: median "
          f"{statistics.median(ratios):.4f} (90 %: {low:.4f} to {high:.4f}), quartiles {ratios[len(ratios) // 4]:.3f} to "
          f"{ratios[3 * len(ratios) // 4]:.3f}, {len(ratios)} pairs; by process "
          + " ".join(f"{m:.4f}" for m in medians), flush=True)
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
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--turn-ms", type=float, default=100)
    parser.add_argument("--loops", default="cnn_large,transformer_large,mlp")
    parser.add_argument("--launch-rounds", type=int, default=10)
    parser.add_argument("--other", help="another injection library to compare with, for its launch cost")
    options = parser.parse_args()
    library = str(pathlib.Path(options.build).resolve() / "lib" / "gpoeo" / "libgpoeo_inject.so")
    drain = Drain()
    drain.start()
    if options.loops:
        shim = str(pathlib.Path(tempfile.mkdtemp()) / "libcupti.so.0")
        subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", shim, str(HERE / "toggle_cupti.c"), "-ldl"], check=True)
        for name in options.loops.split(","):
            compare_loop(name, drain, library, shim, options)
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
