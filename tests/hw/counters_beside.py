#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpoeo-counters (CUPTI PM sampling from a process beside the job) against GPM on a running loop of
counters_loop.py: by the timer, by cycles as on cards without one, and killed in the middle. Read-only.
GPM is read by the loop itself, once a second, and compared by its mean over the loop.

usage: counters_beside.py BUILD_DIR [--loops cnn,transformer]       exits 1 when a share differs by 5 points
"""
import argparse
import json
import pathlib
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
SHOWN = ("gr_active", "sm_active", "sm_occupancy", "tensor_active", "dram_active", "fp32_active", "fp16_active")
DEFINED_ALIKE = SHOWN[:5]  # docs/counters.md


def counters(build, *words, kill_after=None):
    command = [str(build / "lib" / "gpoeo" / "gpoeo-counters"), "--gpu", "0", "--metrics",
               str(build / "data" / "counters" / "cupti.txt"), "--seconds", "4", *words]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    if kill_after:
        time.sleep(kill_after)
        process.kill()
    said = process.stdout.read()  # its input stays open meanwhile: closed, it is the sign to end
    process.stdin.close()
    process.wait()
    return json.loads(said or '{"error": "nothing"}')


def one(loop, build):
    process = subprocess.Popen([sys.executable, str(HERE / "counters_loop.py"), loop, "20"], stdout=subprocess.PIPE,
                               text=True)
    said = {}
    reader = threading.Thread(target=lambda: said.update(out=process.communicate()[0]))
    began, wall = time.monotonic(), time.time()
    reader.start()
    time.sleep(11)  # imports and the first steps
    counters(build, kill_after=1.0)
    by_timer = counters(build)
    by_cycles = counters(build, "--by-cycles")
    over = time.monotonic() - began
    reader.join()
    told = json.loads(said["out"].split("COUNTERS_LOOP ")[1])
    print(f"== {loop}: exit {process.returncode}; counters read until {over:.1f} s, loop over at {time.monotonic() - began:.1f} s")
    seconds = {}
    for t, gap in told["gaps"]:
        seconds.setdefault(int(t), []).append(gap)
    print("  ms a step by the second: " + " ".join(f"{1e3 * sum(g) / len(g):.2f}" for _, g in sorted(seconds.items())))
    for name, answer in (("by the timer", by_timer), ("by cycles", by_cycles)):
        at = (answer.get("begin_unix_ns", 0) * 1e-9 - wall, answer.get("end_unix_ns", 0) * 1e-9 - wall)
        print(f"  {name}: passes {answer.get('passes')}, from {at[0]:.1f} to {at[1]:.1f} s, covered "
              f"{answer.get('covered_s', 0):.2f} s {answer.get('error', '')}")
    bad = False
    for word in SHOWN:
        line = f"  {word:14} GPM {100 * told['gpm'][word]:6.2f} %"
        for answer in (by_timer, by_cycles):
            share = answer.get("values", {}).get(word)
            points = None if share is None else 100 * (share - told["gpm"][word])
            line += "    none" if share is None else f"   {100 * share:6.2f} % ({points:+.2f})"
            bad |= word in DEFINED_ALIKE and (points is None or abs(points) > 5)
        print(line, flush=True)
    return bad


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--loops", default="cnn,transformer")
    options = parser.parse_args()
    return int(any([one(loop, pathlib.Path(options.build).resolve()) for loop in options.loops.split(",")]))


if __name__ == "__main__":
    sys.exit(main())
