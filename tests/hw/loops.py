#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real PyTorch training loops on synthetic tensors, each of its own kind of iteration. At its end a
loop prints `iterations N`: how many training steps it made, counted by itself.

usage: loops.py NAME [--seconds S] [--steps N] [--turns] [--profile] [--steps-file F]
       loops.py list                                                     (names them)

--steps ends after N steps instead. --turns says `ready`, then measures S seconds of steps for each
line on stdin and prints the time of one.
--profile runs torch.profiler over 20 steps in the middle, and prints how many kernels its trace has.
--steps-file notes when each step ended.
"""
import random
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

from loop_driver import drive

device = torch.device("cuda")


def conv_net(width=64, depth=6):
    layers = [nn.Conv2d(3, width, 3, padding=1)]
    for _ in range(depth):
        layers += [nn.BatchNorm2d(width), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10)).to(device)


class TokenModel(nn.Module):
    def __init__(self, vocabulary=1000, width=256, layers=4):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        return self.head(self.encoder(self.embed(tokens)))


def cnn_large():
    """Bound by the GPU, as most training is."""
    yield from cnn(width=256, depth=12, batch=48, size=64)  # ten of them fit one card


def cnn(width=64, depth=6, batch=64, size=32):
    model = conv_net(width, depth)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    images = torch.randn(batch, 3, size, size, device=device)
    labels = torch.randint(0, 10, (batch,), device=device)
    while True:
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(model(images), labels).backward()
        optimizer.step()
        yield


def cnn_eval():
    """With a validation pass of 20 batches after each 100 steps."""
    model = conv_net()
    optimizer = torch.optim.Adam(model.parameters())
    images, labels = torch.randn(64, 3, 32, 32, device=device), torch.randint(0, 10, (64,), device=device)
    step = 0
    while True:
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(model(images), labels).backward()
        optimizer.step()
        step += 1
        yield
        if step % 100 == 0:
            model.eval()
            with torch.no_grad():
                for _ in range(20):
                    (model(images).argmax(1) == labels).float().mean()
            model.train()


def transformer_large():
    yield from transformer(lengths=(512,), layers=12, width=1024)


def transformer(lengths=(128,), accumulate=1, layers=4, width=256):
    model = TokenModel(layers=layers, width=width).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    choose = random.Random(1)
    while True:
        optimizer.zero_grad(set_to_none=True)
        for _ in range(accumulate):
            tokens = torch.randint(0, 1000, (16, choose.choice(lengths)), device=device)
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()) / accumulate
            loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        yield


def accumulation():
    yield from transformer(accumulate=8)


def variable_length():
    yield from transformer(lengths=range(32, 257, 8))


def gan():
    generator = nn.Sequential(nn.ConvTranspose2d(64, 64, 4), nn.BatchNorm2d(64), nn.ReLU(),
                              nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.BatchNorm2d(32), nn.ReLU(),
                              nn.ConvTranspose2d(32, 3, 4, 2, 1), nn.Tanh()).to(device)
    critic = nn.Sequential(nn.Conv2d(3, 32, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(32, 64, 4, 2, 1),
                           nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(64 * 16, 1)).to(device)
    g_opt = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    d_opt = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.999))
    real = torch.randn(128, 3, 16, 16, device=device)
    one, zero = torch.ones(128, 1, device=device), torch.zeros(128, 1, device=device)
    while True:
        fake = generator(torch.randn(128, 64, 1, 1, device=device))
        d_opt.zero_grad(set_to_none=True)
        (F.binary_cross_entropy_with_logits(critic(real), one)
         + F.binary_cross_entropy_with_logits(critic(fake.detach()), zero)).backward()
        d_opt.step()
        g_opt.zero_grad(set_to_none=True)
        F.binary_cross_entropy_with_logits(critic(fake), one).backward()
        g_opt.step()
        yield


def gnn():
    """Message passing by index_add on random subgraphs, each of another size."""
    first, second, out = nn.Linear(64, 128).to(device), nn.Linear(128, 128).to(device), nn.Linear(128, 7).to(device)
    parameters = [*first.parameters(), *second.parameters(), *out.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=1e-3)
    choose = random.Random(2)
    while True:
        nodes = choose.randrange(2000, 6000)
        edges = torch.randint(0, nodes, (2, 8 * nodes), device=device)
        x, labels = torch.randn(nodes, 64, device=device), torch.randint(0, 7, (nodes,), device=device)
        optimizer.zero_grad(set_to_none=True)
        for layer in (first, second):
            x = layer(x)
            x = torch.relu(x + torch.zeros_like(x).index_add(0, edges[1], x[edges[0]]) / 8)
        F.cross_entropy(out(x), labels).backward()
        optimizer.step()
        yield


def cuda_graph():
    """A whole step as one graph; the steps that warm up before the capture are not counted."""
    model = conv_net(depth=4)
    optimizer = torch.optim.Adam(model.parameters(), capturable=True)
    images, labels = torch.randn(64, 3, 32, 32, device=device), torch.randint(0, 10, (64,), device=device)

    def step():
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(model(images), labels).backward()
        optimizer.step()

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        step()
    while True:
        images.normal_()
        graph.replay()
        yield


def compiled():
    model = torch.compile(TokenModel(layers=2).to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    while True:
        tokens = torch.randint(0, 1000, (16, 128), device=device)
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()).backward()
        optimizer.step()
        yield


def streams():
    """Four towers, each on a stream of its own, joined in each step."""
    towers = [nn.Sequential(*[m for _ in range(4) for m in (nn.Linear(256, 256), nn.GELU())]).to(device)
              for _ in range(4)]
    optimizer = torch.optim.Adam([p for t in towers for p in t.parameters()], lr=1e-3)
    lanes = [torch.cuda.Stream() for _ in towers]
    x = torch.randn(512, 256, device=device)
    while True:
        optimizer.zero_grad(set_to_none=True)
        main, parts = torch.cuda.current_stream(), []
        for lane, tower in zip(lanes, towers):
            lane.wait_stream(main)
            with torch.cuda.stream(lane):
                parts.append(tower(x))
        for lane in lanes:
            main.wait_stream(lane)
        torch.stack(parts).square().mean().backward()
        optimizer.step()
        yield


class RandomImages(torch.utils.data.Dataset):
    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        return torch.randn(3, 32, 32), index % 10


def workers():
    """Four forked DataLoader workers."""
    model = conv_net(depth=3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = torch.utils.data.DataLoader(RandomImages(), batch_size=64, num_workers=4, pin_memory=True,
                                         multiprocessing_context="fork")
    for images, labels in loader:
        images, labels = images.to(device, non_blocking=True), labels.to(device, non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(model(images), labels).backward()
        optimizer.step()
        yield


def mlp():
    """Bound by launches: many tiny kernels."""
    model = nn.Sequential(*[m for _ in range(32) for m in (nn.Linear(64, 64), nn.ReLU())]).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=False)
    x = torch.randn(32, 64, device=device)
    while True:
        optimizer.zero_grad(set_to_none=True)
        model(x).square().mean().backward()
        optimizer.step()
        yield


LOOPS = (cnn, transformer, accumulation, gan, variable_length, gnn, cuda_graph, compiled, streams, workers,
         cnn_eval, mlp, cnn_large, transformer_large)

if __name__ == "__main__":
    torch.manual_seed(0)
    sys.exit(drive(LOOPS, torch.cuda.synchronize))
