#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The verbs detect and compare as a user meets them: JSON, pictures, errors and exit codes.

usage: tests/detect_verbs.py GPOEO_BINARY
"""
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import xml.dom.minidom

BINARY = sys.argv[1]
FOLDER = pathlib.Path(tempfile.mkdtemp())


def gpoeo(*arguments):
    return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True, timeout=60)


def check(condition, what):
    if not condition:
        sys.exit(f"failed: {what}")


def write(name, text):
    path = FOLDER / name
    path.write_text(text)
    return path


def trace(name, period_s, power_mw=lambda phase: 300000 + 90000 * math.sin(2 * math.pi * phase)):
    rows = (f"{1796011357000000 + 20000 * i},{int(power_mw(0.02 * i / period_s))}" for i in range(1000))
    return write(name, "t_us,power_mW\n" + "\n".join(rows) + "\n")


def refused(arguments, *words):
    run = gpoeo(*arguments)
    check(run.returncode == 2, f"{arguments}: exit {run.returncode}")
    check(run.stdout == "" and run.stderr.count("\n") == 1, f"{arguments}: one line on stderr: {run.stderr}")
    for word in words:
        check(word in run.stderr, f"{arguments}: '{word}' in {run.stderr}")


def main():
    a, b = trace("a.csv", 0.5), trace("b.csv", 0.55)
    flat = trace("flat.csv", 0.5, lambda phase: 300000)
    launches = write("l.csv", "t_ns,function_id\n" + "".join(f"{1000 * i},{i % 20}\n" for i in range(2000)))

    found = json.loads(gpoeo("detect", a, "--json").stdout)
    check(set(found) == {"periodic", "period_s", "confidence", "levels", "cpu_s", "reason"}, "keys of detect")
    check(found["periodic"] and abs(found["period_s"] - 0.5) < 0.005, f"period {found}")
    nothing = json.loads(gpoeo("detect", flat, "--json").stdout)
    check(nothing["period_s"] is None and not nothing["periodic"] and nothing["reason"], "a flat trace has a reason")
    counted = json.loads(gpoeo("detect", launches, "--launches", "--json").stdout)
    check(counted["levels"][-1]["iterations"] == 100, f"launches {counted}")

    slower = json.loads(gpoeo("compare", a, b, "--json").stdout)
    check(slower["low"] <= 1.1 <= slower["high"] and abs(slower["time_ratio"] - 1.1) < 0.005, f"ratio {slower}")
    unknown = json.loads(gpoeo("compare", a, flat, "--json").stdout)
    check(unknown["time_ratio"] is None and unknown["low"] is None and unknown["reason"], "unknowable is null")

    check(gpoeo("detect", a, "--plot", FOLDER / "a.svg").returncode == 0, "--plot")
    xml.dom.minidom.parse(str(FOLDER / "a.svg"))

    refused(["detect", FOLDER / "none.csv"], "none.csv")
    refused(["compare", a, FOLDER / "none.csv"], "none.csv")
    refused(["detect", write("bad.csv", "t_us,power_mW\n1,2\n2,x\n")], "bad.csv:3", "power_mW")
    refused(["detect", write("cols.csv", "time,watts\n1,2\n")], "cols.csv:1", "t_us")
    refused(["detect", write("bad_l.csv", "t_ns,function_id\n1,-4\n"), "--launches"], "bad_l.csv:2", "function_id")
    refused(["detect", launches, "--launches", "--plot", FOLDER / "x.svg"], "--plot")
    refused(["detect", a, "--plot", FOLDER / "no" / "x.svg"], "x.svg")
    print("detect and compare behave")


main()
