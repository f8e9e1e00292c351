#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training loops without PyTorch: JAX (a compiled step; one with a scan inside) and CuPy (by hand).

usage: framework_loops.py NAME [--seconds S] [--steps N] [--steps-file F]     (framework_loops.py list)
"""
import os
import sys

from loop_driver import drive

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


def jax_step(inner):
    """A jitted Adam step of a small network; `inner` micro-batches are scanned over inside it."""
    import jax
    import jax.numpy as jnp

    def forward(weights, x):
        for w, b in weights[:-1]:
            x = jax.nn.gelu(x @ w + b)
        w, b = weights[-1]
        return x @ w + b

    def loss_of(weights, x, labels):
        return -jnp.take_along_axis(jax.nn.log_softmax(forward(weights, x)), labels[:, None], 1).mean()

    @jax.jit
    def train(state, x, labels):
        weights, first, second, count = state

        def micro_step(total, batch):
            slope = jax.grad(loss_of)(weights, *batch)
            return jax.tree.map(jnp.add, total, slope), None

        slopes, _ = jax.lax.scan(micro_step, jax.tree.map(jnp.zeros_like, weights), (x, labels))
        count = count + 1
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, slopes)
        second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, slopes)
        rate = 1e-3 * jnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)
        weights = jax.tree.map(lambda w, m, v: w - rate * m / (jnp.sqrt(v) + 1e-8), weights, first, second)
        return weights, first, second, count

    key, sizes = jax.random.key(0), (64, 256, 256, 256, 10)
    weights = []
    for a, b in zip(sizes, sizes[1:]):
        key, part = jax.random.split(key)
        weights.append((jax.random.normal(part, (a, b)) / a**0.5, jnp.zeros(b)))
    zeros = jax.tree.map(jnp.zeros_like, weights)
    state, step = (weights, zeros, zeros, jnp.zeros(())), 0
    while True:
        key, a, b = jax.random.split(key, 3)
        x = jax.random.normal(a, (inner, 128, 64))
        state = train(state, x, jax.random.randint(b, (inner, 128), 0, 10))
        step += 1
        if step % 10 == 0:
            float(state[3])  # as a logged loss would, this waits for the GPU
        yield


def jax_plain():
    yield from jax_step(1)


def jax_scan():
    yield from jax_step(6)


def cupy():
    """A two-layer network with its gradients written out, momentum, and an accuracy each 50 steps."""
    import cupy as cp
    x, labels = cp.random.standard_normal((256, 64), dtype=cp.float32), cp.random.randint(0, 10, 256)
    goal = cp.eye(10, dtype=cp.float32)[labels]
    weights = [cp.random.standard_normal(s, dtype=cp.float32) * 0.1 for s in ((64, 128), (128, 10))]
    momenta = [cp.zeros_like(w) for w in weights]
    step = 0
    while True:
        hidden = cp.maximum(x @ weights[0], 0)
        out = hidden @ weights[1]
        chance = cp.exp(out - out.max(axis=1, keepdims=True))
        chance /= chance.sum(axis=1, keepdims=True)
        slope = (chance - goal) / len(x)
        slopes = [x.T @ ((slope @ weights[1].T) * (hidden > 0)), hidden.T @ slope]
        for w, m, g in zip(weights, momenta, slopes):
            m *= 0.9
            m += g
            w -= 0.05 * m
        step += 1
        if step % 50 == 0:
            float((chance.argmax(axis=1) == labels).mean())
        yield


if __name__ == "__main__":
    sys.exit(drive((jax_plain, jax_scan, cupy), lambda: None))
