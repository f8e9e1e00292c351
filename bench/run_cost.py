#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `gpoeo run` itself costs: CPU time of its process (the job's not counted) over the wall time,
and its peak resident memory. On the simulated H200 (50 power samples a second) at speed 1, or on
this machine's GPU with --real (nothing is set: --dry-run).

usage: bench/run_cost.py BUILD_DIR [--seconds 60] [--real]
"""
import argparse
import os
import subprocess
import tempfile
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("build")
parser.add_argument("--seconds", type=int, default=60)
parser.add_argument("--real", action="store_true")
options = parser.parse_args()

gpoeo = os.path.join(options.build, "bin", "gpoeo")
if options.real:
    command = [gpoeo, "run", "--dry-run", "--", "sleep", str(options.seconds + 5)]
else:
    command = [gpoeo, "run", "--twin", "h200", "--",
               os.path.join(options.build, "bin", "gpoeo-twin-job"), "resnet50", "--seconds", str(options.seconds + 5)]
ticks = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / ticks


def peak_mib(pid):
    with open(f"/proc/{pid}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmHWM")) / 1024


with tempfile.TemporaryDirectory() as state:
    run = subprocess.Popen(command, env=os.environ | {"GPOEO_STATE_DIR": state},
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(1)
    started, before = time.monotonic(), cpu_seconds(run.pid)
    time.sleep(options.seconds)
    wall, cpu, peak = time.monotonic() - started, cpu_seconds(run.pid) - before, peak_mib(run.pid)
    run.wait()
print(f"{'real GPU, read-only' if options.real else 'simulated H200'}: gpoeo run used {100 * cpu / wall:.2f} % "
      f"of a core over {wall:.0f} s, {peak:.1f} MiB resident at most (bounds 0.5 %, 40 MiB)")
raise SystemExit(0 if cpu / wall <= 0.005 and peak <= 40 else 1)
