#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""More real PyTorch training loops, of structures that loops.py does not have. Small: under 2 GiB of
GPU memory each. What a loop counts as an iteration is what its user would call an update; other true
levels (micro-steps, environment steps) are printed as `also NAME N`.

usage: more_loops.py NAME [--seconds S] [--steps N] [--steps-file F]     (more_loops.py list names them)
       torchrun --nproc-per-node 2 more_loops.py ddp ...
"""
import copy
import os
import random
import sys
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F

from loop_driver import drive

device = torch.device("cuda")


class Block(nn.Module):
    def __init__(self, width, heads=4):
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        qkv = self.qkv(self.before_attention(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.project(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.before_mlp(x))))


class TinyGPT(nn.Module):
    def __init__(self, vocabulary=500, width=128, layers=3, longest=512):
        super().__init__()
        self.embed, self.place = nn.Embedding(vocabulary, width), nn.Embedding(longest, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary)

    def forward(self, tokens):
        x = self.embed(tokens) + self.place(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def tokens_of(batch, length, vocabulary=500):
    return torch.randint(0, vocabulary, (batch, length), device=device)


def next_token_loss(model, tokens):
    return F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())


def small_mlp(sizes, activation=nn.ReLU):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), activation()]
    return nn.Sequential(*layers[:-1]).to(device)


def small_conv(width=32, depth=3, classes=10):
    layers = [nn.Conv2d(3, width, 3, padding=1)]
    for _ in range(depth):
        layers += [nn.BatchNorm2d(width), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, classes)).to(device)


def image_batch(batch=32, size=32, classes=10):
    return torch.randn(batch, 3, size, size, device=device), torch.randint(0, classes, (batch,), device=device)


def lstm_tbptt():
    """Two LSTM cells, time step by time step, over chunks of varying length; the state is carried on."""
    embed, head = nn.Embedding(500, 128).to(device), nn.Linear(128, 500).to(device)
    cells = nn.ModuleList([nn.LSTMCell(128, 128), nn.LSTMCell(128, 128)]).to(device)
    parameters = [*embed.parameters(), *cells.parameters(), *head.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=1.0)
    choose = random.Random(3)
    state = [(torch.zeros(32, 128, device=device), torch.zeros(32, 128, device=device)) for _ in cells]
    while True:
        length = max(5, int(choose.gauss(35 if choose.random() < 0.95 else 17, 5)))
        tokens = tokens_of(length + 1, 32)
        state = [(h.detach(), c.detach()) for h, c in state]
        x, outputs = embed(tokens[:-1]), []
        for t in range(length):
            layer_in = x[t]
            for i, cell in enumerate(cells):
                state[i] = cell(layer_in, state[i])
                layer_in = state[i][0]
            outputs.append(layer_in)
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(head(torch.stack(outputs)).flatten(0, 1), tokens[1:].flatten()).backward()
        nn.utils.clip_grad_norm_(parameters, 0.25)
        optimizer.step()
        yield


def rnn_packed():
    """cuDNN's LSTM over packed sequences of varying length."""
    embed, head = nn.Embedding(500, 128).to(device), nn.Linear(128, 5).to(device)
    lstm = nn.LSTM(128, 128, num_layers=2, batch_first=True).to(device)
    optimizer = torch.optim.Adam([*embed.parameters(), *lstm.parameters(), *head.parameters()])
    choose = random.Random(4)
    while True:
        lengths = sorted((choose.randrange(10, 80) for _ in range(16)), reverse=True)
        tokens, labels = tokens_of(16, lengths[0]), torch.randint(0, 5, (16,), device=device)
        packed = nn.utils.rnn.pack_padded_sequence(embed(tokens), torch.tensor(lengths), batch_first=True)
        _, (hidden, _) = lstm(packed)
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(head(hidden[-1]), labels).backward()
        optimizer.step()
        yield


def ppo():
    """32 environment steps with the policy, then 4 epochs of 4 minibatches. An iteration is all of that."""
    body, actor, critic = small_mlp([4, 64, 64], nn.Tanh), nn.Linear(64, 2).to(device), nn.Linear(64, 1).to(device)
    parameters = [*body.parameters(), *actor.parameters(), *critic.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=3e-4, eps=1e-5)
    state = torch.randn(32, 4)
    while True:
        kept = []
        for _ in range(32):
            with torch.no_grad():
                seen = state.to(device)
                hidden = torch.tanh(body(seen))
                policy = torch.distributions.Categorical(logits=actor(hidden))
                action = policy.sample()
                kept.append((seen, action, policy.log_prob(action), critic(hidden).squeeze(-1)))
            push = action.cpu().float() * 2 - 1
            state = torch.stack([state[:, 0] + 0.02 * state[:, 1], state[:, 1] + 0.1 * push,
                                 state[:, 2] + 0.02 * state[:, 3], 0.99 * state[:, 3] - 0.1 * push], 1)
            fallen = state[:, 2].abs() > 2
            state[fallen] = torch.randn(int(fallen.sum()), 4)
        with torch.no_grad():
            advantage, advantages, after = torch.zeros(32, device=device), [], kept[-1][3]
            for seen, _, _, value in reversed(kept):
                advantage = 1 - seen[:, 2].abs() + 0.99 * after - value + 0.95 * 0.99 * advantage
                advantages.append(advantage)
                after = value
            advantages = torch.stack(advantages[::-1]).flatten()
            seen, action, old, value = (torch.stack(part).flatten(0, 1) for part in zip(*kept))
        for epoch in range(4):
            order = torch.randperm(len(seen), device=device)
            for part in order.split(256):
                hidden = torch.tanh(body(seen[part]))
                policy = torch.distributions.Categorical(logits=actor(hidden))
                ratio = (policy.log_prob(action[part]) - old[part]).exp()
                gain = (advantages[part] - advantages[part].mean()) / (advantages[part].std() + 1e-8)
                loss = (-torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean() - 0.01 * policy.entropy().mean()
                        + 0.5 * (critic(hidden).squeeze(-1) - advantages[part] - value[part]).square().mean())
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                nn.utils.clip_grad_norm_(parameters, 0.5)
                optimizer.step()
                yield "minibatch"
        yield


def dqn():
    """An update after each 4 environment steps, of which some ask the network; a target copied each 50."""
    network = small_mlp([8, 128, 128, 4])
    target = copy.deepcopy(network)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-4)
    size = 10_000
    states, actions = torch.zeros(size, 8, device=device), torch.zeros(size, dtype=torch.long, device=device)
    rewards, after = torch.zeros(size, device=device), torch.zeros(size, 8, device=device)
    choose, state, count, updates = random.Random(5), torch.randn(8), 0, 0
    while True:
        for _ in range(4):
            if choose.random() < max(0.1, 1 - count / 2000):
                action = choose.randrange(4)
            else:
                with torch.no_grad():
                    action = network(state.to(device)[None]).argmax(1).item()
            following = 0.9 * state + 0.1 * torch.randn(8) + 0.01 * action
            states[count % size], after[count % size] = state.to(device), following.to(device)
            actions[count % size], rewards[count % size] = action, float(following[0])
            state, count = following, count + 1
        if count < 200:
            continue
        rows = torch.randint(0, min(count, size), (64,), device=device)
        with torch.no_grad():
            goal = rewards[rows] + 0.99 * target(after[rows]).max(1).values
        loss = F.smooth_l1_loss(network(states[rows]).gather(1, actions[rows, None]).squeeze(1), goal)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_value_(network.parameters(), 100)
        optimizer.step()
        updates += 1
        if updates % 50 == 0:
            target.load_state_dict(network.state_dict())
        yield


class TinyUNet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(64, width), nn.SiLU(), nn.Linear(width, width))
        self.enter = nn.Conv2d(3, width, 3, padding=1)
        self.down = nn.ModuleList(nn.Conv2d(width, width, 3, 2, 1) for _ in range(2))
        self.middle = nn.Sequential(nn.GroupNorm(8, width), nn.SiLU(), nn.Conv2d(width, width, 3, padding=1))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * width, width, 4, 2, 1) for _ in range(2))
        self.leave = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, x, t):
        waves = t[:, None].float() * torch.logspace(0, -4, 32, device=t.device)
        x = self.enter(x) + self.time(torch.cat([waves.sin(), waves.cos()], 1))[:, :, None, None]
        kept = []
        for down in self.down:
            x = F.silu(down(x))
            kept.append(x)
        x = x + self.middle(x)
        for up in self.up:
            x = F.silu(up(torch.cat([x, kept.pop()], 1)))
        return self.leave(x)


def diffusion():
    """A U-Net with an average of its weights each step (parameter by parameter) and `.item()` each 10."""
    model = TinyUNet().to(device)
    average = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    keep = torch.cumprod(1 - torch.linspace(1e-4, 0.02, 1000, device=device), 0)
    step = 0
    while True:
        images, t = torch.randn(16, 3, 32, 32, device=device), torch.randint(0, 1000, (16,), device=device)
        noise, share = torch.randn_like(images), keep[t][:, None, None, None]
        loss = F.mse_loss(model(share.sqrt() * images + (1 - share).sqrt() * noise, t), noise)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for a, p in zip(average.parameters(), model.parameters()):
                a.lerp_(p, 0.001)
        step += 1
        if step % 10 == 0:
            loss.item()
        yield


def amp_scaler():
    """fp16 with a loss scale that grows until steps overflow and are skipped."""
    model = small_conv()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    scaler = torch.amp.GradScaler("cuda", init_scale=2.0**20, growth_interval=20)
    while True:
        images, labels = image_batch()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = F.cross_entropy(model(images), labels)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        yield


class LowRank(nn.Module):
    def __init__(self, base, rank=8):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.a = nn.Parameter(torch.randn(rank, base.in_features) / rank)
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        return self.base(x) + x @ self.a.T @ self.b.T


def lora():
    """A frozen model with low-rank additions, 4 micro-steps, a validation each 200, a checkpoint each 300."""
    model = TinyGPT(layers=2).requires_grad_(False)
    for block in model.blocks:
        block.qkv, block.project = LowRank(block.qkv), LowRank(block.project)
    model = model.to(device)
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10_000)
    step = 0
    with tempfile.TemporaryDirectory() as folder:
        while True:
            for _ in range(4):
                (next_token_loss(model, tokens_of(8, 65)) / 4).backward()
                yield "micro-step"
            nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad(set_to_none=True)
            step += 1
            yield
            if step % 200 == 0:
                model.eval()
                with torch.no_grad():
                    sum(next_token_loss(model, tokens_of(16, 65)).item() for _ in range(25))
                model.train()
            if step % 300 == 0:
                torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()},
                           os.path.join(folder, "checkpoint.pt"))


def curriculum():
    """The sequence length doubles after 300 steps, and again after 900."""
    model = TinyGPT().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    step = 0
    while True:
        length = 64 if step < 300 else 128 if step < 900 else 256
        optimizer.zero_grad(set_to_none=True)
        next_token_loss(model, tokens_of(8, length + 1)).backward()
        optimizer.step()
        step += 1
        yield


class Experts(nn.Module):
    def __init__(self, width=64, experts=8):
        super().__init__()
        self.gate = nn.Linear(width, experts)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)) for _ in range(experts))

    def forward(self, x):
        weight, choice = self.gate(x).softmax(-1).max(-1)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            rows = (choice == i).nonzero().squeeze(-1)
            if rows.numel():
                out = out.index_add(0, rows, expert(x[rows]) * weight[rows, None])
        return x + out


def moe():
    """Experts that run only when a token chose them; few tokens, so some do not."""
    model = nn.Sequential(nn.Linear(32, 64), Experts(), nn.LayerNorm(64), Experts(), nn.Linear(64, 10)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    choose = random.Random(6)
    while True:
        count = choose.choice((12, 24, 48))
        x, labels = torch.randn(count, 32, device=device), torch.randint(0, 10, (count,), device=device)
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(model(x), labels).backward()
        optimizer.step()
        yield


def detector():
    """Four images a step, each with 0 to 6 boxes: what is launched goes with how many there are."""
    backbone = nn.Sequential(nn.Conv2d(3, 32, 3, 2, 1), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 1), nn.ReLU(),
                             nn.Conv2d(64, 64, 3, 2, 1), nn.ReLU()).to(device)
    objects, places = nn.Conv2d(64, 4, 1).to(device), nn.Conv2d(64, 16, 1).to(device)
    optimizer = torch.optim.SGD([*backbone.parameters(), *objects.parameters(), *places.parameters()], lr=1e-3,
                                momentum=0.9, weight_decay=1e-4)
    anchors = torch.rand(8 * 8 * 4, 4, device=device) * 32
    anchors[:, 2:] += anchors[:, :2] + 8
    area = (anchors[:, 2:] - anchors[:, :2]).prod(1)
    choose = random.Random(7)
    while True:
        images = torch.randn(4, 3, 64, 64, device=device)
        features = backbone(images)
        scores, offsets = objects(features).flatten(1), places(features).permute(0, 2, 3, 1).reshape(4, -1, 4)
        losses = []
        for i in range(4):
            boxes = torch.rand(choose.randrange(7), 4, device=device) * 32
            wanted = torch.zeros_like(scores[i])
            if len(boxes):
                boxes[:, 2:] += boxes[:, :2] + 8
                low = torch.max(anchors[:, None, :2], boxes[None, :, :2])
                high = torch.min(anchors[:, None, 2:], boxes[None, :, 2:])
                shared = (high - low).clamp(min=0).prod(2)
                overlap = shared / (area[:, None] + (boxes[:, 2:] - boxes[:, :2]).prod(1) - shared)
                best, which = overlap.max(1)
                chosen = (best > 0.3).nonzero().squeeze(1)
                for box in range(len(boxes)):  # each box keeps its best anchor
                    wanted[overlap[:, box].argmax()] = 1
                wanted[chosen] = 1
                if len(chosen):
                    losses.append(F.smooth_l1_loss(offsets[i][chosen], (boxes[which[chosen]] - anchors[chosen]) / 32))
            losses.append(F.binary_cross_entropy_with_logits(scores[i], wanted))
        optimizer.zero_grad(set_to_none=True)
        sum(losses).backward()
        optimizer.step()
        yield


def wgan():
    """Five critic updates with a gradient penalty for each update of the generator."""
    generator, critic = small_mlp([32, 128, 128, 64]), small_mlp([64, 128, 128, 1])
    g_opt = torch.optim.Adam(generator.parameters(), lr=1e-4, betas=(0.0, 0.9))
    c_opt = torch.optim.Adam(critic.parameters(), lr=1e-4, betas=(0.0, 0.9))
    while True:
        for _ in range(5):
            real = torch.randn(64, 64, device=device)
            with torch.no_grad():
                fake = generator(torch.randn(64, 32, device=device))
            mix = torch.rand(64, 1, device=device)
            between = (mix * real + (1 - mix) * fake).requires_grad_(True)
            slope, = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
            c_opt.zero_grad(set_to_none=True)
            (critic(fake).mean() - critic(real).mean() + 10 * (slope.norm(2, 1) - 1).square().mean()).backward()
            c_opt.step()
            yield "critic update"
        g_opt.zero_grad(set_to_none=True)
        (-critic(generator(torch.randn(64, 32, device=device))).mean()).backward()
        g_opt.step()
        yield


def multi_task():
    """Two tasks in turn on one trunk; a batch of either is a step."""
    trunk, classify, rebuild = small_conv(classes=64), small_mlp([64, 64, 10]), small_mlp([64, 256, 3 * 32 * 32])
    optimizer = torch.optim.Adam([*trunk.parameters(), *classify.parameters(), *rebuild.parameters()])
    while True:
        for task in ("classify", "rebuild"):
            images, labels = image_batch()
            features = trunk(images)
            loss = (F.cross_entropy(classify(features), labels) if task == "classify"
                    else F.l1_loss(rebuild(features).tanh(), images.flatten(1)))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            if task == "rebuild":
                yield "pair"
            yield


def distill():
    """A larger teacher's forward pass without gradients, then the student's step."""
    teacher, student = small_conv(width=64, depth=6).eval(), small_conv(width=16, depth=3)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.01, momentum=0.9, nesterov=True)
    while True:
        images, labels = image_batch()
        with torch.no_grad():
            goal = (teacher(images) / 4).softmax(1)
        out = student(images)
        loss = F.cross_entropy(out, labels) + 16 * F.kl_div((out / 4).log_softmax(1), goal, reduction="batchmean")
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        yield


def moco():
    """Contrastive learning against a queue of keys by a momentum encoder."""
    encoder = small_conv(classes=64)
    keys = copy.deepcopy(encoder).requires_grad_(False)
    optimizer = torch.optim.SGD(encoder.parameters(), lr=0.03, momentum=0.9, weight_decay=1e-4)
    queue, place = F.normalize(torch.randn(64, 4096, device=device), dim=0), 0
    while True:
        images, _ = image_batch()
        first, second = images + 0.1 * torch.randn_like(images), images.flip(3) + 0.1 * torch.randn_like(images)
        query = F.normalize(encoder(first), dim=1)
        with torch.no_grad():
            for k, p in zip(keys.parameters(), encoder.parameters()):
                k.mul_(0.999).add_(p, alpha=0.001)
            key = F.normalize(keys(second), dim=1)
        logits = torch.cat([(query * key).sum(1, keepdim=True), query @ queue.clone()], 1) / 0.07
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(logits, torch.zeros(len(logits), dtype=torch.long, device=device)).backward()
        optimizer.step()
        queue[:, place:place + len(key)] = key.T
        place = (place + len(key)) % 4096
        yield


def gnn_sampled():
    """Neighbour sampling in two layers on the GPU, with an accuracy over all nodes each 100 steps."""
    nodes = 20_000
    neighbours = torch.randint(0, nodes, (nodes, 16), device=device)
    features, labels = torch.randn(nodes, 64, device=device), torch.randint(0, 7, (nodes,), device=device)
    first, second = nn.Linear(128, 64).to(device), nn.Linear(128, 7).to(device)
    optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()])

    def layer(linear, x, mine, others):
        return linear(torch.cat([x[mine], x[others].mean(1)], 1))

    step = 0
    while True:
        seeds = torch.randperm(nodes, device=device)[:256]
        near = neighbours[seeds][:, torch.randperm(16, device=device)[:8]]
        middle, place = torch.unique(torch.cat([seeds, near.flatten()]), return_inverse=True)
        far = neighbours[middle][:, torch.randperm(16, device=device)[:8]]
        hidden = F.dropout(torch.relu(layer(first, features, middle, far)), 0.5)
        out = layer(second, hidden, place[:256], place[256:].view(256, 8))
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(out, labels[seeds]).backward()
        optimizer.step()
        step += 1
        yield
        if step % 100 == 0:
            with torch.no_grad():
                everyone = torch.arange(nodes, device=device)
                hidden = torch.relu(layer(first, features, everyone, neighbours))
                (layer(second, hidden, everyone, neighbours).argmax(1) == labels).float().mean().item()


def k_fold():
    """A new model for each fold: 4 epochs of 40 batches, each with a validation of 10."""
    while True:
        model = small_conv()
        optimizer = torch.optim.Adam(model.parameters())
        for _ in range(4):
            for _ in range(40):
                images, labels = image_batch()
                optimizer.zero_grad(set_to_none=True)
                F.cross_entropy(model(images), labels).backward()
                optimizer.step()
                yield
            model.eval()
            with torch.no_grad():
                for _ in range(10):
                    images, labels = image_batch()
                    (model(images).argmax(1) == labels).sum().item()
            model.train()


def sweep():
    """Trials of 150 steps each with its own batch size, depth and optimizer, in one process."""
    choose = random.Random(8)
    while True:
        model = small_conv(width=choose.choice((16, 32)), depth=choose.choice((2, 4)))
        optimizer = choose.choice((torch.optim.Adam, torch.optim.SGD))(model.parameters(), lr=1e-3)
        images, labels = image_batch(choose.choice((16, 32, 64, 128)))
        for _ in range(150):
            optimizer.zero_grad(set_to_none=True)
            F.cross_entropy(model(images), labels).backward()
            optimizer.step()
            yield
        with torch.no_grad():
            F.cross_entropy(model(images), labels).item()


def captured(function, warm_ups=3):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(warm_ups):
            function()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        function()
    return graph


def graphs_in_turn():
    """Two graphs: a micro-step, replayed four times, and the optimizer."""
    model = small_mlp([64, 128, 128, 10])
    optimizer = torch.optim.Adam(model.parameters(), capturable=True)
    x, labels = torch.randn(64, 64, device=device), torch.randint(0, 10, (64,), device=device)
    for p in model.parameters():
        p.grad = torch.zeros_like(p)

    def micro_step():
        (F.cross_entropy(model(x), labels) / 4).backward()

    def update():
        optimizer.step()
        for p in model.parameters():
            p.grad.zero_()

    forward_backward, finish = captured(micro_step), captured(update)
    while True:
        for _ in range(4):
            x.normal_()
            forward_backward.replay()
            yield "micro-step"
        finish.replay()
        yield


def graphs_by_size():
    """A graph of the whole step for each of four batch sizes; each step chooses one."""
    model = small_mlp([64, 128, 128, 10])
    optimizer = torch.optim.Adam(model.parameters(), capturable=True)
    graphs = []
    for size in (16, 32, 64, 128):
        x, labels = torch.randn(size, 64, device=device), torch.randint(0, 10, (size,), device=device)

        def step(x=x, labels=labels):
            optimizer.zero_grad(set_to_none=True)
            F.cross_entropy(model(x), labels).backward()
            optimizer.step()

        graphs.append((x, labels, captured(step)))
    choose = random.Random(9)
    while True:
        x, _, graph = choose.choice(graphs)
        x.normal_()
        graph.replay()
        yield


def compiled_dynamic():
    """torch.compile with lengths that change: it compiles anew on the way; each 100 steps in eval mode."""
    model = torch.compile(TinyGPT(layers=2).to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    choose, step = random.Random(10), 0
    while True:
        length = 64 if step < 50 else choose.randrange(32, 129, 8)
        optimizer.zero_grad(set_to_none=True)
        next_token_loss(model, tokens_of(8, length + 1)).backward()
        optimizer.step()
        step += 1
        yield
        if step % 100 == 0:
            model.eval()
            with torch.no_grad():
                for _ in range(5):
                    next_token_loss(model, tokens_of(8, 65)).item()
            model.train()


def token_budget():
    """Micro-steps of varying length until 4096 tokens are together: a varying number for each step."""
    model = TinyGPT(layers=2).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    choose = random.Random(11)
    while True:
        tokens = 0
        while tokens < 4096:
            length = choose.randrange(16, 161, 16)
            next_token_loss(model, tokens_of(8, length + 1)).backward()
            tokens += 8 * length
            yield "micro-step"
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        yield


def sam():
    """Sharpness-aware: up the gradient, a second forward and backward pass, back, step."""
    model = small_conv()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    parameters = list(model.parameters())
    while True:
        images, labels = image_batch()
        F.cross_entropy(model(images), labels).backward()
        with torch.no_grad():
            norm = torch.stack([p.grad.norm() for p in parameters]).norm()
            moves = [0.05 * p.grad / (norm + 1e-12) for p in parameters]
            torch._foreach_add_(parameters, moves)
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(model(images), labels).backward()
        with torch.no_grad():
            torch._foreach_sub_(parameters, moves)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        yield


def lbfgs():
    """L-BFGS with a line search: the number of evaluations varies from step to step."""
    model = small_mlp([16, 64, 64, 1], nn.Tanh)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4, history_size=5, line_search_fn="strong_wolfe")
    while True:
        x = torch.randn(256, 16, device=device)
        goal = torch.sin(x.sum(1, keepdim=True)) + 0.3 * torch.randn(256, 1, device=device)

        def closure():
            optimizer.zero_grad(set_to_none=True)
            loss = F.mse_loss(model(x), goal)
            loss.backward()
            return loss

        optimizer.step(closure)
        yield


def vae():
    """Bound by launches; prints each 100 steps."""
    encode, decode = small_mlp([64, 128, 32]), small_mlp([16, 128, 64])
    optimizer = torch.optim.Adam([*encode.parameters(), *decode.parameters()], lr=1e-3)
    step = 0
    while True:
        x = torch.rand(64, 64, device=device)
        mean, spread = encode(x).chunk(2, 1)
        out = decode(mean + (spread / 2).exp() * torch.randn_like(mean))
        rebuilt = F.binary_cross_entropy_with_logits(out, x, reduction="sum")
        loss = rebuilt - 0.5 * (1 + spread - mean.square() - spread.exp()).sum()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        step += 1
        if step % 100 == 0:
            print(f"step {step} loss {loss.item():.1f} rebuilt {rebuilt.item():.1f}")
        yield


def epochs():
    """Epochs of 37 batches from a shuffling loader, the last one smaller; the mean loss at each end."""
    data = torch.utils.data.TensorDataset(torch.randn(36 * 32 + 11, 3, 32, 32), torch.randint(0, 10, (36 * 32 + 11,)))
    loader = torch.utils.data.DataLoader(data, batch_size=32, shuffle=True)
    model = small_conv()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    while True:
        total = torch.zeros((), device=device)
        for images, labels in loader:
            images, labels = images.to(device), labels.to(device)
            optimizer.zero_grad(set_to_none=True)
            loss = F.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            total += loss.detach()
            yield
        (total / len(loader)).item()


def neural_ode():
    """Runge-Kutta with a number of steps that goes with the data."""
    field = small_mlp([8, 64, 8], nn.Tanh)
    head = nn.Linear(8, 2).to(device)
    optimizer = torch.optim.Adam([*field.parameters(), *head.parameters()], lr=1e-3)
    choose = random.Random(12)
    while True:
        x, labels = torch.randn(128, 8, device=device), torch.randint(0, 2, (128,), device=device)
        steps = choose.randrange(4, 17)
        h = 1 / steps
        for _ in range(steps):
            k1 = field(x)
            k2 = field(x + h / 2 * k1)
            k3 = field(x + h / 2 * k2)
            k4 = field(x + h * k3)
            x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(head(x), labels).backward()
        optimizer.step()
        yield


def maml():
    """Four tasks of three inner steps each (gradients of gradients), then the outer update."""
    weights = [nn.Parameter(torch.randn(a, b, device=device) / a**0.5) for a, b in ((1, 40), (40, 40), (40, 1))]
    optimizer = torch.optim.Adam(weights, lr=1e-3)

    def loss_of(w, x, y):
        return F.mse_loss(torch.relu(torch.relu(x @ w[0]) @ w[1]) @ w[2], y)

    while True:
        optimizer.zero_grad(set_to_none=True)
        for _ in range(4):
            x, phase = torch.rand(2, 10, 1, device=device) * 10 - 5, torch.rand((), device=device) * 3
            y = torch.sin(x + phase)
            fast = weights
            for _ in range(3):
                slopes = torch.autograd.grad(loss_of(fast, x[0], y[0]), fast, create_graph=True)
                fast = [w - 0.01 * s for w, s in zip(fast, slopes)]
            (loss_of(fast, x[1], y[1]) / 4).backward()
            yield "task"
        optimizer.step()
        yield


def checkpointed():
    """Eight equal blocks, each run again for the backward pass."""
    from torch.utils.checkpoint import checkpoint
    embed, head = nn.Embedding(500, 128).to(device), nn.Linear(128, 500).to(device)
    blocks = nn.ModuleList(Block(128) for _ in range(8)).to(device)
    optimizer = torch.optim.AdamW([*embed.parameters(), *blocks.parameters(), *head.parameters()], lr=1e-4)
    while True:
        tokens = tokens_of(8, 65)
        x = embed(tokens[:, :-1])
        for block in blocks:
            x = checkpoint(block, x, use_reentrant=False)
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(head(x).flatten(0, 1), tokens[:, 1:].flatten()).backward()
        optimizer.step()
        yield


def gpt_sampling():
    """Each 100 steps the model writes 40 tokens, one at a time."""
    model = TinyGPT(layers=2).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    step = 0
    while True:
        optimizer.zero_grad(set_to_none=True)
        next_token_loss(model, tokens_of(8, 65)).backward()
        optimizer.step()
        step += 1
        yield
        if step % 100 == 0:
            text = tokens_of(1, 1)
            with torch.no_grad():
                for _ in range(40):
                    chances = model(text)[:, -1].softmax(-1)
                    text = torch.cat([text, torch.multinomial(chances, 1)], 1)
            text.cpu()


def muon():
    """An optimizer that orthogonalises each matrix's gradient by five rounds of products."""
    model = TinyGPT(layers=3).to(device)
    matrices = [p for p in model.blocks.parameters() if p.ndim == 2]
    momenta = [torch.zeros_like(p) for p in matrices]
    others = [p for p in model.parameters() if not any(p is m for m in matrices)]
    optimizer = torch.optim.AdamW(others, lr=3e-4)
    while True:
        model.zero_grad(set_to_none=True)
        next_token_loss(model, tokens_of(8, 65)).backward()
        with torch.no_grad():
            for p, momentum in zip(matrices, momenta):
                momentum.mul_(0.95).add_(p.grad)
                x = momentum / (momentum.norm() + 1e-7)
                for _ in range(5):
                    a = x @ x.T if x.shape[0] <= x.shape[1] else x.T @ x
                    b = -4.775 * a + 2.0315 * a @ a
                    x = 3.4445 * x + (b @ x if x.shape[0] <= x.shape[1] else x @ b)
                p.add_(x, alpha=-0.02)
        optimizer.step()
        yield


def train_and_score():
    """As many validation batches as training batches in each epoch, with a metric for each of them."""
    model = small_conv()
    optimizer = torch.optim.Adam(model.parameters())
    while True:
        for _ in range(60):
            images, labels = image_batch()
            optimizer.zero_grad(set_to_none=True)
            F.cross_entropy(model(images), labels).backward()
            optimizer.step()
            yield
        model.eval()
        with torch.no_grad():
            for _ in range(60):
                images, labels = image_batch()
                out = model(images)
                F.cross_entropy(out, labels).item()
                (out.topk(3).indices == labels[:, None]).any(1).float().mean().item()
        model.train()


def ddp(on_step):
    """Two ranks, two micro-steps; started by torchrun. gloo when there are fewer GPUs than ranks."""
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    enough = torch.cuda.device_count() >= ranks
    mine = torch.device("cuda", rank if enough else 0)
    torch.cuda.set_device(mine)
    dist.init_process_group("nccl" if enough else "gloo")
    talk = dist.new_group(backend="gloo")
    model = DistributedDataParallel(TinyGPT().to(mine), device_ids=[mine.index], bucket_cap_mb=1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    step, going = 0, True
    while going:
        optimizer.zero_grad(set_to_none=True)
        with model.no_sync():
            (next_token_loss(model, torch.randint(0, 500, (8, 65), device=mine)) / 2).backward()
        (next_token_loss(model, torch.randint(0, 500, (8, 65), device=mine)) / 2).backward()
        optimizer.step()
        step += 1
        time_left = on_step()
        if step % 20 == 0:  # the ranks stop together; the flag goes over the CPU and launches nothing
            flag = torch.tensor([1.0 if time_left else 0.0])
            dist.broadcast(flag, 0, group=talk)
            going = flag.item() != 0
    torch.cuda.synchronize()
    dist.destroy_process_group()


def hf_trainer(on_step):
    """Hugging Face's Trainer: a tiny GPT-2, two micro-steps, validation each 200, a log each 20."""
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

    class Tokens(torch.utils.data.Dataset):
        def __init__(self, count):
            self.count = count

        def __len__(self):
            return self.count

        def __getitem__(self, index):
            tokens = torch.randint(0, 500, (64,), generator=torch.Generator().manual_seed(index))
            return {"input_ids": tokens, "labels": tokens}

    class Tell(TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            if not on_step():
                control.should_training_stop = True

    model = GPT2LMHeadModel(GPT2Config(vocab_size=500, n_positions=64, n_embd=128, n_layer=3, n_head=4,
                                       bos_token_id=0, eos_token_id=0))
    with tempfile.TemporaryDirectory() as folder:
        wanted = dict(output_dir=folder, per_device_train_batch_size=8, per_device_eval_batch_size=8,
                      gradient_accumulation_steps=2, max_steps=1_000_000, logging_steps=20, save_strategy="no",
                      eval_strategy="steps", eval_steps=200, report_to=[], disable_tqdm=True)
        known = {k: v for k, v in wanted.items() if k in TrainingArguments.__dataclass_fields__}
        Trainer(model=model, args=TrainingArguments(**known), train_dataset=Tokens(1 << 20),
                eval_dataset=Tokens(80), callbacks=[Tell()]).train()


def lightning(on_step):
    """PyTorch Lightning: automatic optimisation, a logged loss, 10 validation batches each 150 steps."""
    try:
        import lightning.pytorch as pl
    except ImportError:
        import pytorch_lightning as pl

    class Tiny(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = small_conv()

        def training_step(self, batch, _):
            images, labels = batch
            loss = F.cross_entropy(self.net(images), labels)
            self.log("loss", loss)
            return loss

        def validation_step(self, batch, _):
            images, labels = batch
            self.log("accuracy", (self.net(images).argmax(1) == labels).float().mean())

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters())

    class Tell(pl.Callback):
        def on_train_batch_end(self, trainer, *_):
            if not on_step():
                trainer.should_stop = True

    data = torch.utils.data.TensorDataset(torch.randn(4800, 3, 32, 32), torch.randint(0, 10, (4800,)))
    loader = torch.utils.data.DataLoader(data, batch_size=16, shuffle=True)
    held_back = torch.utils.data.DataLoader(data, batch_size=16)
    with tempfile.TemporaryDirectory() as folder:
        pl.Trainer(accelerator="gpu", devices=1, max_epochs=-1, logger=False, enable_checkpointing=False,
                   enable_progress_bar=False, enable_model_summary=False, val_check_interval=150,
                   limit_val_batches=10, default_root_dir=folder, callbacks=[Tell()]).fit(Tiny(), loader, held_back)


LOOPS = (lstm_tbptt, rnn_packed, ppo, dqn, diffusion, amp_scaler, lora, curriculum, moe, detector, wgan, multi_task,
         distill, moco, gnn_sampled, k_fold, sweep, graphs_in_turn, graphs_by_size, compiled_dynamic, token_budget,
         sam, lbfgs, vae, epochs, neural_ode, maml, checkpointed, gpt_sampling, muon, train_and_score)

if __name__ == "__main__":
    torch.manual_seed(0)
    sys.exit(drive(LOOPS, torch.cuda.synchronize, (ddp, hf_trainer, lightning)))
