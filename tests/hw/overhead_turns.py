#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A loop of loops.py whose launch log can be put on and off while it runs, so that a process is
compared with itself (two processes of the same loop differ by several per cent when Python is what
limits them). Told what to do on stdin by inject_overhead.py:

  go       measures S seconds of steps and prints the time of one
  inject   loads the injected library as the driver would; launches are logged from then on
  aside    subscribes to CUPTI as a profiler does, which makes the library leave, and unsubscribes

usage: overhead_turns.py LOOP LIBRARY SECONDS
"""
import ctypes
import pathlib
import sys
import time

import torch

import loops


def loaded_cupti():
    maps = pathlib.Path("/proc/self/maps").read_text()
    paths = {line.split()[-1] for line in maps.splitlines() if "libcupti" in line}
    assert len(paths) == 1, paths
    return ctypes.CDLL(paths.pop())


def step_aside():
    cupti, subscriber = loaded_cupti(), ctypes.c_void_p()
    callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_void_p)(
        lambda *_: None)
    assert cupti.cuptiSubscribe(ctypes.byref(subscriber), callback, None) == 0
    assert cupti.cuptiUnsubscribe(subscriber) == 0


def main():
    name, library, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    torch.manual_seed(0)
    loop = loops.LOOPS[name]()

    def steps(n):
        for _ in range(n):
            next(loop)
        torch.cuda.synchronize()

    steps(10)
    began = time.perf_counter()
    steps(10)
    at_once = max(2, int(0.05 / (time.perf_counter() - began) * 10))  # about 0.05 s
    print("ready", flush=True)
    for line in sys.stdin:
        if line == "inject\n":
            assert ctypes.CDLL(library).InitializeInjection() == 1
        elif line == "aside\n":
            step_aside()
        steps(at_once)
        count, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds:
            steps(at_once)
            count += at_once
        print(f"step_us {(time.perf_counter() - began) / count * 1e6:.3f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
