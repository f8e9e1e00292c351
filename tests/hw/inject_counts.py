#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does gpoeo count what the job counts? Runs each loop of loops.py (and more_loops.py, framework_loops.py)
under `gpoeo run --dry-run`, several at once on the one GPU (counting is what is shown, not speed), and
compares the session's iterations with the loop's own, exactly. Read-only: no clock is set.

usage: inject_counts.py BUILD_DIR [--seconds 65] [--loops a,b,c | --loops more] [--at-once 12]
exits 1 when one differs
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
FIRST_TWELVE = "cnn,transformer,accumulation,gan,variable_length,gnn,cuda_graph,compiled,streams,workers,cnn_eval,mlp"


def listed(script):
    said = subprocess.run([sys.executable, str(HERE / script), "list"], capture_output=True, text=True)
    return {name: script for name in said.stdout.split()}


def count(name, script, gpoeo, folder, env, seconds):
    command = [sys.executable, str(HERE / script), name, "--seconds", str(seconds)]
    if name == "ddp":
        command[1:1] = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    with open(folder / f"{name}.out", "w") as out, open(folder / f"{name}.err", "w") as err:
        code = subprocess.run([gpoeo, "run", "--dry-run", "--report", str(folder / f"{name}.json"), "--", *command],
                              stdout=out, stderr=err, env=env).returncode
    own = re.search(r"^iterations (\d+)", (folder / f"{name}.out").read_text(), re.M)
    others = re.findall(r"^also (.+)", (folder / f"{name}.out").read_text(), re.M)
    report = json.loads((folder / f"{name}.json").read_text()) if (folder / f"{name}.json").exists() else {}
    own, counted = int(own.group(1)) if own else None, report.get("iterations")
    same = code == 0 and own is not None and own == counted
    print(f"{name:16} job {own}  gpoeo {counted}  {'exact' if same else f'DIFFERENT (exit {code})'}"
          f"  launch log {report.get('launch_log')}{''.join(f'; also {other}' for other in others)}", flush=True)
    if own is None:
        print("    " + "\n    ".join((folder / f"{name}.err").read_text().splitlines()[-8:]), flush=True)
    return same


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--seconds", type=float, default=65)
    parser.add_argument("--loops", default=FIRST_TWELVE)
    parser.add_argument("--at-once", type=int, default=12)
    parser.add_argument("--keep", help="folder for the reports")
    options = parser.parse_args()
    gpoeo = str(pathlib.Path(options.build).resolve() / "bin" / "gpoeo")
    folder = pathlib.Path(options.keep or tempfile.mkdtemp())
    env = os.environ | {"GPOEO_STATE_DIR": tempfile.mkdtemp()}
    more = listed("more_loops.py") | listed("framework_loops.py")
    known = listed("loops.py") | more
    names = list(more) if options.loops == "more" else options.loops.split(",")
    with concurrent.futures.ThreadPoolExecutor(options.at_once) as pool:
        same = list(pool.map(lambda n: count(n, known[n], gpoeo, folder, env, options.seconds), names))
    print(f"exact in {sum(same)} of {len(same)}")
    return 0 if all(same) else 1


if __name__ == "__main__":
    sys.exit(main())
