#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Both CUPTI sources against GPM on one running loop of counters_loop.py: first the range profiler
inside the job, asked through the ring as gpoeo asks, then PM sampling by gpoeo-counters beside it.
No gpoeo runs; read-only. Prints what each says and the loop's time of a step, second by second.

usage: counter_sources.py BUILD_DIR [--launches 3000] [--loops cnn,transformer]
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time

from window_exit import COUNTERS, HEAD, REQUEST, answered, ring_of

HERE = pathlib.Path(__file__).resolve().parent
BLOCK = struct.Struct("<QQqq16sIIIIIIQ")  # wire::CounterBlock, before its values
SHOWN = ("gr_active", "sm_active", "sm_occupancy", "tensor_active", "dram_active", "fp32_active", "fp16_active")


def words(source):
    """Numbers of the wire format, from the one place that has them."""
    return {int(n): name for n, name in re.findall(r'\{(\d+), "(\w+)"', source.read_text())}


def block(ring, names):
    data = os.pread(ring, 1024 - COUNTERS, COUNTERS)
    fields = BLOCK.unpack_from(data)
    begin, end, source, error, detail, count, passes, covered = fields[2], fields[3], *fields[6:]
    values = {}
    for i in range(count):
        number, _, value = struct.unpack_from("<IId", data, BLOCK.size + 16 * i)
        values[names.get(number, number)] = value
    return {"source": source, "error": error, "detail": detail, "passes": passes, "window_s": (end - begin) * 1e-9,
            "covered_s": covered * 1e-9, "values": values}


def one(loop, build, launches, names):
    library = str(build / "lib" / "gpoeo" / "libgpoeo_inject.so")
    metrics = build / "data" / "counters" / "cupti.txt"
    folder = pathlib.Path(tempfile.mkdtemp(prefix="gpoeo-sources-", dir="/dev/shm"))
    (folder / "counters.txt").write_text(f"launches_per_iteration {launches}\n" + metrics.read_text())
    process = subprocess.Popen(
        [sys.executable, str(HERE / "counters_loop.py"), loop, "19"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, env=os.environ | {"CUDA_INJECTION64_PATH": library, "GPOEO_RING_DIR": str(folder),
                                     "GPOEO_INJECT_LOG": "1"})
    said = {}
    reader = threading.Thread(target=lambda: said.update(zip(("out", "err"), process.communicate())))
    reader.start()
    ring, inside, began = ring_of(folder, process), None, time.monotonic()
    time.sleep(4.5)
    first = struct.unpack("<Q", os.pread(ring, 8, HEAD))[0]
    os.pwrite(ring, struct.pack("<Q", 8_000_000_000), REQUEST + 16)
    os.pwrite(ring, struct.pack("<Q", 1), REQUEST)
    asked = time.monotonic()
    while process.poll() is None and time.monotonic() - asked < 9:
        if answered(ring) == 1:
            inside = block(ring, names)
            inside["after_s"] = time.monotonic() - asked
            break
        os.pwrite(ring, os.pread(ring, 8, HEAD), 128)  # the log is not wanted here
        time.sleep(0.02)
    at = time.monotonic() - began
    tool = subprocess.run([str(build / "lib" / "gpoeo" / "gpoeo-counters"), "--gpu", "0", "--metrics", str(metrics),
                           "--seconds", "4"], capture_output=True, text=True)
    beside = json.loads(tool.stdout or '{"error": "nothing"}')
    reader.join()
    told = json.loads(said["out"].split("COUNTERS_LOOP ")[1]) if "COUNTERS_LOOP" in said["out"] else None
    print(f"== {loop}: exit {process.returncode}, range asked at 4.5 s of the launches, PM sampling from {at:.1f} s")
    print("   " + "\n   ".join(said["err"].splitlines()[-14:]))
    print(f"  range: {None if inside is None else {k: v for k, v in inside.items() if k != 'values'}}")
    print(f"  beside: {dict((k, v) for k, v in beside.items() if k != 'values')}")
    if told is None:
        return
    seconds = {}
    for t, gap in told["gaps"]:
        seconds.setdefault(int(t), []).append(gap)
    print("  ms a step by the second: " + " ".join(f"{1e3 * sum(g) / len(g):.2f}" for _, g in sorted(seconds.items())))
    for word in SHOWN:
        shares = [told["gpm"][word], inside["values"].get(word) if inside else None, beside.get("values", {}).get(word)]
        print(f"  {word:14} GPM {100 * shares[0]:6.2f} %  " + "  ".join(
            f"{name} " + ("   none" if s is None else f"{100 * s:6.2f} % ({100 * (s - shares[0]):+.2f})")
            for name, s in zip(("range", "beside"), shares[1:])))
    print(f"  launches a step: about {first / max(1, sum(1 for t, _ in told['gaps'] if t < 4.5) * 4):.0f}")
    shutil.rmtree(folder)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--launches", type=int, default=3000)
    parser.add_argument("--words", default=str(HERE.parents[1] / "src/base/activity.h"))
    parser.add_argument("--loops", default="cnn,transformer")
    options = parser.parse_args()
    names = words(pathlib.Path(options.words))
    for loop in options.loops.split(","):
        one(loop, pathlib.Path(options.build).resolve(), options.launches, names)
    return 0


if __name__ == "__main__":
    sys.exit(main())
