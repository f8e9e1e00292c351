#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs ../shared/tools/score_traces.py on our binary and fails when a bound of issue 3 is missed.

usage: tests/score_traces_bounds.py GPOEO_BINARY

Exits 77 (ctest: skipped) with a message when the recordings are not beside the repository.
"""
import json
import pathlib
import subprocess
import sys

SKIPPED = 77
# What the scorer prints -> the least and the most that is allowed.
BOUNDS = {
    "exact": (8, None),
    "wrong": (None, 0),
    "errors": (None, 0),
    "wrong_and_sure": (None, 0),
    "cpu_s_median": (None, 0.005),
    "cpu_s_max": (None, 0.020),
    "slowdown_error_median": (None, 0.002),
    "slowdown_error_p90": (None, 0.007),
    "slowdown_covered": (0.85, 0.97),
    "drift_bad": (None, 0),
}
MOST_REFUSED = 0.10  # of slowdown_pairs
LAUNCH_LOGS = 4


def broken(figures):
    """One line for each bound that the figures miss."""
    lines = []
    for name, (least, most) in BOUNDS.items():
        value = figures[name]
        if value is None or (least is not None and value < least) or (most is not None and value > most):
            lines.append(f"{name} = {value}, allowed {least} to {most}")
    if figures["slowdown_refused"] > MOST_REFUSED * figures["slowdown_pairs"]:
        lines.append(f"slowdown_refused = {figures['slowdown_refused']} of {figures['slowdown_pairs']}")
    if figures["launch_logs"] != LAUNCH_LOGS or figures["launch_logs_found"] != LAUNCH_LOGS:
        lines.append(f"launch logs found: {figures['launch_logs_found']} of {LAUNCH_LOGS}")
    return lines


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    shared = pathlib.Path(__file__).resolve().parents[2] / "shared"
    scorer = shared / "tools" / "score_traces.py"
    if not scorer.exists():
        print(f"skipped: no recordings, {scorer} is not there")
        return SKIPPED
    command = [sys.executable, str(scorer), sys.argv[1], str(shared / "data" / "h200_traces"),
               "--launches", str(shared / "data" / "h200_launches"), "--json"]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        print(f"the scorer failed: {run.stderr.strip()}")
        return 1
    figures = json.loads(run.stdout)
    print(json.dumps(figures, indent=1))
    lines = broken(figures)
    print("\n".join(lines) if lines else "all bounds held")
    return 1 if lines else 0


sys.exit(main())
