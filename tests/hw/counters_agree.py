#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GPM from outside against CUPTI PM sampling inside the process, on one training loop after the
other. Read-only: --dry-run, nothing is set. Exit 1 when a share differs by more than 5 points.

Before each comparison the loop runs once with no counters read by gpoeo at all, so that what the
window costs shows in the time of its steps, second by second.

usage: counters_agree.py BUILD_DIR [--seconds S] [--source cupti] [LOOP ...]
"""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
COMPARED = ["gr_active", "sm_active", "sm_occupancy", "tensor_active", "dram_active", "fp32_active",
            "fp16_active"]


def run(build, loop, seconds, source):
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        done = subprocess.run(
            [os.path.join(build, "bin", "gpoeo"), "run", "--dry-run", "-q", "--counters", source,
             "--report", report.name, "--", sys.executable, os.path.join(HERE, "counters_loop.py"),
             loop, str(seconds)], capture_output=True, text=True, timeout=180)
        session = json.load(open(report.name))
    lines = [l for l in done.stdout.splitlines() if l.startswith("COUNTERS_LOOP ")]
    if not lines:
        sys.exit(f"{loop}: the loop ended with {done.returncode}: {done.stderr[-2000:]}")
    if done.returncode != 0 or done.stderr:
        print(f"  exit {done.returncode}: {done.stderr[-3000:]}")
    return session, json.loads(lines[-1].split(" ", 1)[1])


def by_second(told):
    """Mean time of a step in each second of the loop, without the first."""
    seconds_of = {}
    for t, gap in told["gaps"]:
        seconds_of.setdefault(int(t), []).append(gap)
    return [sum(g) / len(g) for _, g in sorted(seconds_of.items())][1:]


def show_steps(what, told):
    gaps = sorted(g for _, g in told["gaps"])
    print(f"  {what}: {told['iterations']} iterations, median {gaps[len(gaps) // 2] * 1e3:.2f} ms, by the second "
          + " ".join(f"{1e3 * m:.1f}" for m in by_second(told)))


def show(session):
    for p in session["profiles"]:
        print(f"  profile: {p['source']}, {p['seconds']:.2f} s, {p['iterations']:.1f} iterations, "
              f"{p['why'] or ''}")
        print("   ", ", ".join(f"{k} {v:.4g}" for k, v in p["activity"].items()))
    if not session["profiles"]:
        print(f"  no profile: {session['iterations']} iterations from the {session['progress_source']}")
    return session["profiles"][-1]["activity"] if session["profiles"] else {}


def main():
    arguments = sys.argv[1:]
    build, seconds = arguments.pop(0), 14.0
    if arguments[:1] == ["--seconds"]:
        seconds = float(arguments[1])
        arguments = arguments[2:]
    source = "cupti"
    if arguments[:1] == ["--source"]:
        source = arguments[1]
        arguments = arguments[2:]
    bad = 0
    for loop in arguments or ["transformer", "cnn", "elementwise"]:
        print(f"== {loop}")
        show_steps("no window  ", run(build, loop, seconds, "none")[1])
        session, told = run(build, loop, seconds, source)
        inside = show(session)
        show_steps("with window", told)
        print(f"  a GPM sample costs {told['sample_us']:.0f} us")
        if "gr_active" in inside and "sm_active" in inside:
            print(f"  sm_active over gr_active: GPM {told['gpm']['sm_active'] / told['gpm']['gr_active']:.3f}, "
                  f"CUPTI {inside['sm_active'] / inside['gr_active']:.3f}")
        for word in COMPARED:
            outside = told["gpm"][word]
            if word not in inside:
                print(f"  {word:<14} GPM {100 * outside:6.2f} %  CUPTI not there")
                continue
            points = 100 * (inside[word] - outside)
            verdict = "" if abs(points) <= 5 else "  MORE THAN 5 POINTS"
            bad |= abs(points) > 5
            print(f"  {word:<14} GPM {100 * outside:6.2f} %  CUPTI {100 * inside[word]:6.2f} %  "
                  f"{points:+.2f} points{verdict}")
    print("== through gpoeo's own GPM reader")
    session, told = run(build, "cnn", seconds, "gpm")
    show(session)
    return int(bad)


sys.exit(main())
