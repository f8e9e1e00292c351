#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Scores `gpoeo detect --launches` on the recordings of record_launches.py: a log that was cut short is
cut back to the end of a step, and what the job had counted by then is the truth.

usage: score_launches.py GPOEO_BINARY DIR [--share 0.5]      (--share: only so much of each log's steps)
exits 1 when a count is neither the job's nor another true level's
"""
import argparse
import collections
import csv
import gzip
import json
import pathlib
import subprocess
import sys
import tempfile


def truth_of(folder, row, share):
    """(last t_ns to read, or None for all; the job's counts until then)"""
    with gzip.open(folder / f"{row['name']}.steps.csv.gz", "rt") as file:
        marks = [(int(r["t_ns"]), r["what"]) for r in csv.DictReader(file)]
    with gzip.open(folder / f"{row['name']}.launches.csv.gz", "rt") as file:
        last = int(collections.deque(file, 1)[0].split(",")[0])
    steps = [t for t, what in marks if what == "step" and t <= last]
    whole = share == 1 and row["launches"] == row["written"]
    cut = None if whole else steps[max(0, int(share * len(steps)) - 1)]
    return cut, collections.Counter(what for t, what in marks if cut is None or t <= cut)


def counted(binary, log, cut):
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as part:
        if cut is not None:
            with gzip.open(log, "rt") as file:
                part.write(next(file))
                part.writelines(line for line in file if int(line.split(",", 1)[0]) <= cut)
            part.flush()
            log = part.name
        run = subprocess.run([binary, "detect", "--launches", "--json", str(log)], capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--share", type=float, default=1)
    options = parser.parse_args()
    with open(options.folder / "summary.csv") as file:
        rows = sorted((r for r in csv.DictReader(file) if r["iterations"]), key=lambda r: r["name"])
    tally = collections.Counter()
    for row in rows:
        cut, truth = truth_of(options.folder, row, options.share)
        found = counted(options.binary, options.folder / f"{row['name']}.launches.csv.gz", cut)
        ours, job = found.get("iterations"), truth.pop("step")
        level = [what for what, n in truth.items() if n == ours]
        verdict = "exact" if ours == job else f"exact for {level[0]}" if level else "unknown" if ours is None else "WRONG"
        tally[verdict.split(" ")[0] + (" (another level)" if ours != job and level else "")] += 1
        print(f"{row['name']:18} job {job:6}  gpoeo {str(ours):>6}  {verdict}  confidence {found['confidence']:.2f}"
              f"{''.join(f'; {n} {what}s' for what, n in truth.items())}")
    print(", ".join(f"{n} {what}" for what, n in sorted(tally.items())), f"of {len(rows)}")
    return 1 if tally["WRONG"] else 0


if __name__ == "__main__":
    sys.exit(main())
