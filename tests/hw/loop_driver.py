# SPDX-License-Identifier: Apache-2.0
"""Drives the training loops of loops.py, more_loops.py and framework_loops.py.

A loop is a generator that yields once at the end of each training step: None for a step, or the name
of another true level that ended there ("micro-step"). A loop inside a framework takes a function
instead: it calls it after each step and stops when that returns False.
"""
import argparse
import os
import sys
import time


class Steps:
    """Counts steps, notes when each ended (CLOCK_MONOTONIC, as the launch log) and says when to stop."""

    def __init__(self, options, synchronize):
        self.options, self.synchronize = options, synchronize
        self.count, self.others, self.started = 0, {}, time.monotonic()
        rank = os.environ.get("RANK", "0")
        path = options.steps_file and options.steps_file + ("" if rank == "0" else f".rank{rank}")
        self.file = open(path, "w") if path else None
        if self.file:
            self.file.write("t_ns,what\n")

    def note(self, what):
        if self.file:
            self.file.write(f"{time.monotonic_ns()},{what}\n")

    def other(self, what):
        self.others[what] = self.others.get(what, 0) + 1
        self.note(what)

    def go_on(self):
        if self.options.steps is not None:
            return self.count < self.options.steps
        return time.monotonic() - self.started < self.options.seconds

    def step(self):
        """A step has ended; whether there is to be another."""
        self.count += 1
        self.note("step")
        if self.count % 16 == 0:
            self.synchronize()
        return self.go_on()

    def finish(self):
        self.synchronize()
        if self.file:
            self.file.close()
        for what, count in self.others.items():
            print(f"also {what} {count}")
        print(f"iterations {self.count}", flush=True)


def profiled(loop, synchronize, steps=20):
    import torch
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as trace:
        for _ in range(steps):
            next(loop)
        synchronize()
    kernels = [e for e in trace.events() if e.device_type == torch.autograd.DeviceType.CUDA]
    print(f"profiled {steps} steps, {len(kernels)} device events", flush=True)
    return steps


def take_turns(loop, synchronize, seconds):
    def steps(n):
        for _ in range(n):
            next(loop)
        synchronize()

    steps(10)
    started = time.perf_counter()
    steps(10)
    at_once = max(2, int(0.1 / (time.perf_counter() - started) * 10))  # about 0.1 s
    print("ready", flush=True)
    for _ in sys.stdin:
        steps(at_once)
        count, started = 0, time.perf_counter()
        while time.perf_counter() - started < seconds:
            steps(at_once)
            count += at_once
        print(f"step_us {(time.perf_counter() - started) / count * 1e6:.3f}", flush=True)
    return 0


def drive(loops, synchronize, called_back=()):
    """main() of a file of loops; `called_back`: those that take a function."""
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("--seconds", type=float, default=65)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--turns", action="store_true")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--steps-file")
    options = parser.parse_args()
    every = {f.__name__: f for f in (*loops, *called_back)}
    if options.name == "list":
        print("\n".join(every))
        return 0
    function = every[options.name]
    if options.turns:
        return take_turns(function(), synchronize, options.seconds)
    steps = Steps(options, synchronize)
    if function in called_back:
        function(steps.step)
    else:
        loop = function()
        while True:
            what = next(loop, "end of the loop")
            if what == "end of the loop":
                break
            if what is not None:
                steps.other(what)
                continue
            if options.profile and steps.count == 49:
                steps.count += profiled(loop, synchronize)
            if not steps.step():
                break
    steps.finish()
    return 0
