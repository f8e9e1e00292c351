#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small real training job on synthetic tensors, for trying gpoeo beside it: a convolutional
network in bfloat16, about 10 iterations a second on a large card. Ends after SECONDS.

usage: training_loop.py SECONDS
"""
import sys
import time

import torch

device = torch.device("cuda")
width = 256
layers = [torch.nn.Conv2d(3, width, 3, padding=1)]
for _ in range(12):
    layers += [torch.nn.BatchNorm2d(width), torch.nn.ReLU(), torch.nn.Conv2d(width, width, 3, padding=1)]
model = torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
                            torch.nn.Linear(width, 100)).to(device, memory_format=torch.channels_last)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
images = torch.randn(192, 3, 64, 64, device=device).to(memory_format=torch.channels_last)
labels = torch.randint(0, 100, (192,), device=device)
iterations, started = 0, time.monotonic()
while time.monotonic() - started < float(sys.argv[1]):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = torch.nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    iterations += 1
    if iterations % 4 == 0:
        torch.cuda.synchronize()
print(f"training_loop: {iterations} iterations in {time.monotonic() - started:.1f} s", flush=True)
