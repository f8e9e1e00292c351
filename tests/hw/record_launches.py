#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records the launch logs of training loops, with the loop's own step times beside them. No gpoeo
runs: the rings of the injected library are read here. Read-only: no clock is set.

usage: record_launches.py BUILD_DIR --out DIR [--seconds 45] [--loops a,b] [--at-once 12] [--megabytes 1.5]

Writes for each loop NAME:
  NAME.launches.csv.gz    t_ns (from the first launch, whole us), function_id (small numbers in order
                          of first use), stream: input of `gpoeo detect --launches`. It ends early
                          when it has grown to --megabytes. Another process of the loop with launches:
                          NAME.2.launches.csv.gz.
  NAME.steps.csv.gz       t_ns on the same clock (those of a later process start where NAME's first
                          launch was), what: `step`, or another true level
  NAME.out, NAME.err      what it said
and summary.csv: name, the loop's own count, launches, launches written, records dropped, exit code.
A step file holds every step: the truth for any beginning of the log is the number of its steps.
"""
import argparse
import concurrent.futures
import csv
import gzip
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
# src/wire/progress_ring.h
CAPACITY, HEAD, TAIL, DROPPED, RECORDS, RECORD = 16, 64, 128, 192, 1024, struct.Struct("<QqQII")
LAUNCHES = (1, 2)  # kinds: kernel, graph
LEAST_LAUNCHES = 100
SCRIPTS = ("more_loops.py", "framework_loops.py")


class Ring:
    """One process's ring, and the file that its launches go to."""

    def __init__(self, path):
        self.file = os.open(path, os.O_RDWR)
        self.capacity = struct.unpack("<I", os.pread(self.file, 4, CAPACITY))[0]
        self.taken, self.launches, self.written, self.rows, self.first = 0, 0, 0, [], None
        self.ids, self.last, self.out, self.full = {}, 0, None, False

    def drain(self):
        head = struct.unpack("<Q", os.pread(self.file, 8, HEAD))[0]
        while self.taken < head:
            slot = self.taken % self.capacity
            count = min(head - self.taken, self.capacity - slot)
            data = os.pread(self.file, count * RECORD.size, RECORDS + slot * RECORD.size)
            for sequence, t_ns, function, kind, stream in RECORD.iter_unpack(data):
                if sequence != self.taken + 1:  # reserved, not published yet
                    head = self.taken
                    break
                self.taken += 1
                if kind in LAUNCHES:
                    self.launches += 1
                    if not self.full:
                        self.rows.append((t_ns, function, stream))
            os.pwrite(self.file, struct.pack("<Q", self.taken), TAIL)

    def write(self, open_file, limit):
        """Rows so far, once there are enough of them to be a job's."""
        if self.full or self.launches < LEAST_LAUNCHES or not self.rows:
            return
        if self.out is None:
            self.first = self.rows[0][0]
            self.raw, path = open_file()
            self.out = gzip.GzipFile(filename="", fileobj=self.raw, mode="wb", compresslevel=6, mtime=0)
            self.out.write(b"t_ns,function_id,stream\n")
        lines = []
        for t_ns, function, stream in self.rows:
            self.last = max(self.last, (t_ns - self.first) // 1000)
            lines.append(f"{self.last}000,{self.ids.setdefault(function, len(self.ids) + 1)},{stream}\n")
        self.out.write("".join(lines).encode())
        self.written += len(self.rows)
        self.rows = []
        self.full = self.raw.tell() > limit

    def close(self):
        dropped = struct.unpack("<Q", os.pread(self.file, 8, DROPPED))[0]
        os.close(self.file)
        if self.out is not None:
            self.out.close()
            self.raw.close()
        return dropped


def command_of(script, name, options, steps_file):
    tail = [str(HERE / script), name, "--seconds", str(options.seconds), "--steps-file", str(steps_file)]
    if name == "ddp":
        return [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *tail]
    return [sys.executable, *tail]


def record(script, name, options):
    out = pathlib.Path(options.out)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="gpoeo-record-", dir="/dev/shm"))
    steps_file = folder / "steps.csv"
    env = os.environ | {"CUDA_INJECTION64_PATH": options.library, "GPOEO_RING_DIR": str(folder)}
    if name != "ddp":
        env["CUDA_VISIBLE_DEVICES"] = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
    rings, files = {}, []

    def open_file():
        path = out / (f"{name}.launches.csv.gz" if not files else f"{name}.{len(files) + 1}.launches.csv.gz")
        files.append(path)
        return open(path, "wb"), path

    def look():
        for path in sorted(folder.glob("*.ring")):
            if path not in rings:
                rings[path] = Ring(path)
        for ring in rings.values():
            ring.drain()
            ring.write(open_file, options.megabytes * 1e6)

    try:
        with open(out / f"{name}.out", "w") as said, open(out / f"{name}.err", "w") as complained:
            process = subprocess.Popen(command_of(script, name, options, steps_file), stdout=said, stderr=complained,
                                       env=env, start_new_session=True)
            deadline = time.monotonic() + options.seconds + options.patience
            while process.poll() is None:
                if time.monotonic() > deadline:
                    os.killpg(process.pid, signal.SIGKILL)  # its own session: the ranks too
                look()
                time.sleep(0.05)
        look()
        firsts = [ring.first for ring in rings.values() if ring.first is not None]
        if steps_file.exists() and firsts:
            with open(steps_file) as steps, gzip.open(out / f"{name}.steps.csv.gz", "wt") as kept:
                kept.write(next(steps))
                for line in steps:
                    t_ns, what = line.rstrip("\n").split(",", 1)
                    kept.write(f"{(int(t_ns) - firsts[0]) // 1000}000,{what}\n")
        own = re.search(r"^iterations (\d+)", (out / f"{name}.out").read_text(), re.M)
        rings = list(rings.values())
        return {"name": name, "iterations": own.group(1) if own else "", "launches": sum(r.launches for r in rings),
                "written": sum(r.written for r in rings), "dropped": sum(r.close() for r in rings),
                "exit": process.returncode}
    finally:
        shutil.rmtree(folder)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--out", required=True)
    parser.add_argument("--seconds", type=float, default=45)
    parser.add_argument("--patience", type=float, default=240, help="seconds more until a loop is killed")
    parser.add_argument("--loops")
    parser.add_argument("--at-once", type=int, default=12)
    parser.add_argument("--megabytes", type=float, default=1.5)
    options = parser.parse_args()
    options.library = str(pathlib.Path(options.build).resolve() / "lib" / "gpoeo" / "libgpoeo_inject.so")
    if not pathlib.Path(options.library).exists():
        sys.exit(f"{options.library} is not there: build the target gpoeo_inject first")
    pathlib.Path(options.out).mkdir(parents=True, exist_ok=True)
    wanted = options.loops.split(",") if options.loops else None
    loops = []
    for script in (*SCRIPTS, "loops.py") if wanted else SCRIPTS:
        listed = subprocess.run([sys.executable, str(HERE / script), "list"], capture_output=True, text=True, check=True)
        loops += [(script, name) for name in listed.stdout.split() if wanted is None or name in wanted]
    bad = 0
    with (open(pathlib.Path(options.out) / "summary.csv", "w", newline="") as file,
          concurrent.futures.ProcessPoolExecutor(options.at_once) as pool):
        table = csv.DictWriter(file, ("name", "iterations", "launches", "written", "dropped", "exit"))
        table.writeheader()
        jobs = {pool.submit(record, script, name, options): name for script, name in loops}
        for job in concurrent.futures.as_completed(jobs):
            name = jobs[job]
            try:
                row = job.result()
            except Exception as error:  # one loop's trouble is not the others'
                row = {"name": name, "iterations": "", "launches": 0, "written": 0, "dropped": 0, "exit": repr(error)}
            table.writerow(row)
            file.flush()
            bad += row["iterations"] == ""
            print(" ".join(f"{k} {v}" for k, v in row.items()), flush=True)
            if row["iterations"] == "":
                print("    " + "\n    ".join((pathlib.Path(options.out) / f"{name}.err").read_text().splitlines()[-6:]))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
