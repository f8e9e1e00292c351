#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real training loop on synthetic tensors whose counters are compared (counters_agree.sh). Reads
GPM by pynvml once a second beside it, and prints the mean and what a reading costs.

usage: counters_loop.py transformer|cnn|elementwise|graph|small SECONDS
"""
import json
import sys
import threading
import time

import pynvml
import torch

METRICS = {"gr_active": 1, "sm_active": 2, "sm_occupancy": 3, "tensor_active": 5, "dram_active": 10,
           "fp64_active": 11, "fp32_active": 12, "fp16_active": 13}
device = torch.device("cuda")


def transformer():
    layer = torch.nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 6).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    tokens = torch.randn(16, 512, 1024, device=device)

    def step():
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(tokens).float().pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return step


def cnn():
    width = 256
    layers = [torch.nn.Conv2d(3, width, 3, padding=1)]
    for _ in range(12):
        layers += [torch.nn.BatchNorm2d(width), torch.nn.ReLU(),
                   torch.nn.Conv2d(width, width, 3, padding=1)]
    model = torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
                                torch.nn.Linear(width, 100)).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    images = torch.randn(96, 3, 64, 64, device=device).to(memory_format=torch.channels_last)
    labels = torch.randint(0, 100, (96,), device=device)

    def step():
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return step


def elementwise():
    a, b = torch.randn(1 << 28, device=device), torch.randn(1 << 28, device=device)

    def step():
        for _ in range(10):
            torch.add(a, b, alpha=0.5, out=a)
        torch.mul(a, 0.1, out=a)
    return step


def graph():
    """Each step is one launch of a CUDA graph."""
    a, b = (torch.randn(4096, 4096, device=device, dtype=torch.bfloat16) for _ in range(2))
    c = torch.empty_like(a)

    def work():
        for _ in range(20):
            torch.matmul(a, b, out=c)
            torch.mul(c, 0.01, out=a)

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        work()
    stream.synchronize()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        work()
    return captured.replay


def small():
    """Bound by its launches: the GPU waits for the host."""
    model = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(24)]).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    batch = torch.randn(32, 256, device=device)

    def step():
        loss = model(batch).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return step


def sample(handle):
    made = pynvml.nvmlGpmSampleAlloc()
    pynvml.nvmlGpmSampleGet(handle, made)
    return made


def difference(before, after):
    request = pynvml.c_nvmlGpmMetricsGet_t()
    request.version, request.numMetrics = 1, len(METRICS)
    request.sample1, request.sample2 = before, after
    for i, number in enumerate(METRICS.values()):
        request.metrics[i].metricId = number
    pynvml.nvmlGpmMetricsGet(request)
    return {name: request.metrics[i].value / 100 for i, name in enumerate(METRICS)}


def watch(stop, out):
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    time.sleep(3)
    began = time.perf_counter()
    for _ in range(20):
        pynvml.nvmlGpmSampleFree(sample(handle))
    out["sample_us"] = (time.perf_counter() - began) / 20 * 1e6
    before, out["gpm"] = sample(handle), []
    while not stop.wait(1):
        after = sample(handle)
        out["gpm"].append(difference(before, after))
        pynvml.nvmlGpmSampleFree(before)
        before = after


name, seconds = sys.argv[1], float(sys.argv[2])
step = {"transformer": transformer, "cnn": cnn, "elementwise": elementwise, "graph": graph,
        "small": small}[name]()
stop, out, steps = threading.Event(), {}, 0
watcher = threading.Thread(target=watch, args=(stop, out))
watcher.start()
began = time.monotonic()
gaps, last = [], began
while time.monotonic() - began < seconds:
    step()
    steps += 1
    if steps % 4 == 0:
        torch.cuda.synchronize()
        now = time.monotonic()
        gaps.append((now - began, (now - last) / 4))
        last = now
stop.set()
watcher.join()
mean = {word: sum(g[word] for g in out["gpm"]) / len(out["gpm"]) for word in METRICS}
print("COUNTERS_LOOP " + json.dumps({"loop": name, "iterations": steps, "gpm": mean,
                                     "sample_us": out["sample_us"], "gaps": gaps}), flush=True)
