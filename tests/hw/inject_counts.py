#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does gpoeo count what the job counts? Runs each loop of loops.py under `gpoeo run --dry-run`, all
at once on the one GPU (counting is what is shown, not speed), and compares the session's iterations
with the loop's own, exactly. Read-only: no clock is set.

usage: inject_counts.py BUILD_DIR [--seconds 65] [--loops a,b,c]      exits 1 when one differs
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--seconds", type=float, default=65)
    parser.add_argument("--loops", default="cnn,transformer,accumulation,gan,variable_length,gnn,cuda_graph,compiled,"
                                           "streams,workers,cnn_eval,mlp")
    parser.add_argument("--keep", help="folder for the reports")
    options = parser.parse_args()
    gpoeo = str(pathlib.Path(options.build).resolve() / "bin" / "gpoeo")
    folder = pathlib.Path(options.keep or tempfile.mkdtemp())
    env = os.environ | {"GPOEO_STATE_DIR": tempfile.mkdtemp()}
    runs = {}
    for name in options.loops.split(","):
        out, err = open(folder / f"{name}.out", "w+"), open(folder / f"{name}.err", "w+")
        runs[name] = out, err, subprocess.Popen(
            [gpoeo, "run", "--dry-run", "--report", str(folder / f"{name}.json"), "--", sys.executable,
             str(HERE / "loops.py"), name, "--seconds", str(options.seconds)], stdout=out, stderr=err, env=env)
    bad = 0
    for name, (out, err, process) in runs.items():
        code = process.wait()
        out.seek(0)
        own = re.search(r"^iterations (\d+)", out.read(), re.M)
        report = json.loads((folder / f"{name}.json").read_text()) if (folder / f"{name}.json").exists() else {}
        counted = report.get("iterations")
        own = int(own.group(1)) if own else None
        same = code == 0 and own is not None and own == counted
        bad += not same
        print(f"{name:16} job {own}  gpoeo {counted}  {'exact' if same else f'DIFFERENT (exit {code})'}"
              f"  launch log {report.get('launch_log')}", flush=True)
        if own is None:
            err.seek(0)
            print("    " + "\n    ".join(err.read().splitlines()[-8:]))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
