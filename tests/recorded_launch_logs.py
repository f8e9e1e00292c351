#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`gpoeo detect --launches` counts in the recordings of data/launch_logs what the loops counted.

usage: tests/recorded_launch_logs.py GPOEO_BINARY
"""
import csv
import json
import pathlib
import subprocess
import sys

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "data" / "launch_logs"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(FOLDER / "counts.csv") as file:
        loops = list(csv.DictReader(file))
    wrong = 0
    for loop in loops:
        log = FOLDER / f"{loop['name']}.launches.csv.gz"
        run = subprocess.run([sys.argv[1], "detect", "--launches", "--json", str(log)], capture_output=True, text=True)
        counted = json.loads(run.stdout).get("iterations") if run.returncode == 0 else run.stderr.strip()
        same = counted == int(loop["iterations"])
        wrong += not same
        print(f"{loop['name']:18} job {loop['iterations']}  gpoeo {counted}  {'exact' if same else 'DIFFERENT'}")
    return 1 if wrong or not loops else 0


if __name__ == "__main__":
    sys.exit(main())
