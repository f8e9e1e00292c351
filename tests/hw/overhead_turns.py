#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A loop of loops.py whose launch callbacks are put off and on while it runs, so that a process is
compared with itself within a tenth of a second: two processes of the same loop, and one process a
minute later, differ by several per cent when Python is what limits them. Started by
inject_overhead.py with toggle_cupti.c preloaded; for each line on stdin it measures PAIRS pairs and
prints, for each, the time of a step with the callbacks off and on, in microseconds.

usage: overhead_turns.py LOOP LIBRARY PAIRS STEPS_MS
"""
import ctypes
import sys
import time

import torch

import loops


def main():
    name, library, pairs, turn_s = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]) * 1e-3
    torch.manual_seed(0)
    loop = getattr(loops, name)()

    def steps(n):
        began = time.perf_counter()
        for _ in range(n):
            next(loop)
        torch.cuda.synchronize()
        return (time.perf_counter() - began) / n

    steps(20)
    at_once = max(1, round(turn_s / steps(20)))
    toggle = ctypes.CDLL(None).toggle
    assert ctypes.CDLL(library).InitializeInjection() == 1
    print("ready", flush=True)
    for _ in sys.stdin:
        out = []
        steps(at_once)
        for pair in range(pairs):
            times = {}
            for on in ((0, 1), (1, 0))[pair % 2]:
                toggle(on)
                steps(1)
                times[on] = steps(at_once)
            out.append(f"{times[0] * 1e6:.2f}:{times[1] * 1e6:.2f}")
        toggle(0)
        print(" ".join(out), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
