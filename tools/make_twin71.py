#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes data/suites/twin-71.toml: 71 GENERATED jobs for the simulated RTX 3080 Ti.

They follow the mix of the published evaluation (17 AIBench component tasks, and benchmarking-gnns
models on data sets; which ones it took is not known to us, 9 x 6 of them make 71). No job is
measured and none is copied: each number comes from what the model must compute, move, launch and
wait for, by the formulas below, and says so beside itself in the file. Nothing here has seen a
policy or its results.

  make_twin71.py [--check]      --check: says whether the file is what this program writes
"""
import math
import pathlib
import sys

PEAK = 34.1e12  # FP32 and TF32 operations a second, datasheet
BANDWIDTH = 912e9  # bytes a second, datasheet
REACHED = 0.80  # of the bandwidth by a long streaming kernel, usual for GDDR6X
DRAIN_S = 2.5e-6  # a kernel's start and tail, in which neither clock matters much
LAUNCH_S = 11e-6  # of the host for a PyTorch operator and its kernel, in eager mode
GRAPH_LAUNCH_S = 24e-6  # the same through a graph library's message passing
FITS_MIB = 10500  # of the card's 12 GB

# What a kind of kernel is like: share of compute that hides memory time, occupancy, and whether
# its operations go through the tensor cores (TF32 was PyTorch's default when these suites came out).
KINDS = {
    "conv": dict(overlap=0.80, occupancy=0.35, tensor=0.85, why="convolutions: large tiles"),
    "gemm": dict(overlap=0.80, occupancy=0.25, tensor=0.90, why="matrix products: large tiles"),
    "small_gemm": dict(overlap=0.60, occupancy=0.20, tensor=0.70, why="thin matrix products"),
    "recurrent": dict(overlap=0.50, occupancy=0.12, tensor=0.70, why="one step waits for the last"),
    "gather": dict(overlap=0.60, occupancy=0.55, tensor=0.0, why="scattered reads, no reuse"),
    "elementwise": dict(overlap=0.85, occupancy=0.65, tensor=0.0, why="streams, nothing to wait for"),
    "mixed": dict(overlap=0.70, occupancy=0.40, tensor=0.60, why="convolutions among streams"),
}


def kernel(name, kind, flops, moved, launches, efficiency):
    """Seconds at default clocks, and the response of a phase, of `flops` and `moved` bytes."""
    k = KINDS[kind]
    c = flops / (PEAK * efficiency)
    m = moved / (BANDWIDTH * REACHED)
    fixed = launches * DRAIN_S
    busy = k["overlap"] * max(c, m) + (1 - k["overlap"]) * (c + m)
    total = busy + fixed
    pipes = flops / PEAK / total
    activity = 0.10 + 0.45 * c / total * min(1.0, efficiency / 0.55) + 0.10 * m / total
    return dict(
        name=name, kind=kind, seconds=total, launches=launches, compute=c / total,
        memory=m / total, fixed=fixed / total, overlap=k["overlap"], sm_activity=activity,
        memory_activity=moved / BANDWIDTH / total, tensor=k["tensor"] * pipes,
        fp32=(1 - k["tensor"]) * pipes, occupancy=k["occupancy"],
        why=dict(
            launches=f"about {launches} kernels",
            compute=f"{flops / 1e9:.3g} Gop at {efficiency:.0%} of peak: {1e3 * c:.3g} ms",
            memory=f"{moved / 1e9:.3g} GB at {REACHED:.0%} of the bandwidth: {1e3 * m:.3g} ms",
            fixed=f"{launches} starts and tails of {1e6 * DRAIN_S:g} us",
            overlap=k["why"],
            sm_activity="0.10 resident + 0.45 compute share x efficiency/55 % + 0.10 memory share",
            memory_activity="bytes over peak bandwidth over the phase",
            tensor=f"{k['tensor']:.0%} of the operations through tensor cores",
            fp32="the other operations",
            occupancy=k["why"],
        ))


def host(seconds, why):
    return dict(name="input", host=True, seconds=seconds, why=why)


def train(parts, parameters_m, optimiser_passes):
    """Forward as given; backward twice its work; an update that streams parameters and moments."""
    phases = []
    for name, kind, flops, moved, launches, efficiency in parts:
        phases.append(kernel(name, kind, flops, moved, launches, efficiency))
    for name, kind, flops, moved, launches, efficiency in reversed(parts):
        phases.append(kernel(name + "_back", kind, 2 * flops, 1.8 * moved, 2 * launches, efficiency))
    weights = parameters_m * 1e6
    phases.append(kernel("update", "elementwise", weights * 12, weights * 4 * optimiser_passes,
                         max(8, int(12 * math.log2(1 + parameters_m))), 0.3))
    return phases


def job(name, family, about, phases, host_s, host_why, memory_mib, jitter, jitter_why,
        launch_s=LAUNCH_S):
    launches = sum(p["launches"] for p in phases)
    kernels_s = sum(p["seconds"] for p in phases)
    # Launching runs ahead of the GPU; only what it cannot hide is a gap.
    gap = max(0.0, launches * launch_s - kernels_s)
    why = f"{1e3 * host_s:.3g} ms {host_why}"
    if gap > 0:
        why += f"; {launches} launches of {1e6 * launch_s:g} us outlast the kernels by {1e3 * gap:.3g} ms"
    return dict(name=name, family=family, about=about,
                phases=[host(host_s + gap, why)] + phases, memory_mib=memory_mib,
                jitter=jitter, jitter_why=jitter_why)


# AIBench training component tasks. (name, what, batch, Gop forward a sample, MB moved forward a
# sample, million parameters, kernels forward, kind, efficiency, optimiser passes over the weights,
# host ms a sample not hidden by loaders, why, MiB, jitter, why)
AIBENCH = [
    ("image_classification", "ResNet-50, ImageNet 224x224", 64, 8.2, 175, 25.6, 175, "conv", 0.55, 3,
     0.05, "decoding and augmenting that loaders do not hide", 7600, 0.02, "fixed shapes"),
    ("image_generation", "WGAN, LSUN 64x64: five critic steps and one generator step", 64, 2.6, 42, 9.5, 260,
     "mixed", 0.35, 3, 0.10, "small images from a key-value store", 2300, 0.02, "fixed shapes"),
    ("text_to_text", "Transformer base, WMT, about 3000 tokens", 48, 11.0, 95, 65, 420, "gemm", 0.45, 5,
     0.03, "tokens are made beforehand", 7800, 0.08, "sentence lengths"),
    ("image_to_text", "Inception encoder, LSTM captions, COCO", 64, 6.1, 95, 38, 460, "mixed", 0.40, 3,
     0.25, "decoding, captions padded on the host", 6200, 0.06, "caption lengths"),
    ("image_to_image", "CycleGAN, 256x256, two generators and two discriminators", 2, 720, 6900, 28, 1900,
     "conv", 0.50, 5, 6.0, "an image buffer is kept on the host", 6900, 0.02, "fixed shapes"),
    ("speech_recognition", "DeepSpeech 2, LibriSpeech: convolutions and five recurrent layers", 16, 62, 640, 54, 2600,
     "recurrent", 0.25, 3, 2.0, "spectrograms on the host", 8900, 0.12, "length of the utterances"),
    ("face_embedding", "FaceNet, Inception-ResNet, triplets", 96, 3.0, 75, 23, 360, "conv", 0.45, 3,
     0.50, "triplets are picked on the host", 6100, 0.03, "number of hard triplets"),
    ("face_recognition_3d", "ResNet-50 on RGB-D faces", 48, 8.6, 185, 26, 178, "conv", 0.55, 3,
     0.90, "depth and colour are decoded and aligned", 6200, 0.03, "file sizes"),
    ("object_detection", "Faster R-CNN, ResNet-50, one 600x1000 image at a time", 1, 270, 2300, 41, 820,
     "mixed", 0.40, 3, 14.0, "decoding; proposals and suppression wait for the host", 4900, 0.10,
     "image shapes and number of proposals"),
    ("recommendation", "Neural collaborative filtering, MovieLens", 131072, 0.0005, 0.012, 32, 40,
     "gather", 0.20, 6, 0.0003, "negative samples are drawn on the host", 2500, 0.02, "fixed shapes"),
    ("video_prediction", "Motion-focused prediction, ten frames of 64x64", 32, 9.4, 260, 12.6, 1500, "mixed",
     0.30, 5, 1.2, "frames are unpacked from records", 6300, 0.03, "fixed shapes"),
    ("image_compression", "Recurrent autoencoder, 16 rounds on 32x32 patches", 192, 2.1, 52, 14, 760, "recurrent",
     0.35, 5, 0.20, "patches are cut on the host", 4300, 0.02, "fixed shapes"),
    ("object_reconstruction_3d", "Convolutional encoder and decoder, ShapeNet voxels", 64, 5.8, 130, 22, 210,
     "conv", 0.40, 5, 0.60, "voxels are rendered and unpacked", 5600, 0.03, "file sizes"),
    ("text_summarisation", "Sequence to sequence with attention, Gigaword", 64, 1.9, 40, 42, 2100, "recurrent",
     0.15, 5, 0.05, "tokens are made beforehand", 4100, 0.12, "lengths of text and summary"),
    ("spatial_transformer", "Spatial transformer network, MNIST", 8192, 0.0045, 0.35, 0.4, 46,
     "elementwise", 0.20, 3, 0.008, "small images are put together one by one", 1700, 0.03, "the host's"),
    ("learning_to_rank", "Ranking distillation, Gowalla", 16384, 0.0022, 0.10, 7.2, 70, "gather",
     0.15, 5, 0.004, "sequences and negatives are drawn on the host", 1900, 0.04, "the host's"),
    ("neural_architecture_search", "ENAS on Penn Treebank: a sampled recurrent cell, 35 steps", 64, 2.2, 34, 37, 3400,
     "recurrent", 0.15, 5, 0.35, "the controller samples a cell and builds it", 3300, 0.10,
     "sampled cells differ"),
]

# benchmarking-gnns. Mean nodes and (directed) edges a graph, rounded from the benchmark's paper,
# and input features; collating a batch of graphs is done by the host.
DATASETS = {
    "zinc": (23, 50, "molecules"),
    "sbm_pattern": (119, 6079, "stochastic block model"),
    "sbm_cluster": (117, 4302, "stochastic block model"),
    "mnist": (71, 565, "superpixels"),
    "cifar10": (118, 941, "superpixels"),
    "tsp": (276, 6894, "25 nearest neighbours of points"),
}
# Hidden width at the benchmark's larger budget (500,000 parameters, 16 layers); dense products of
# width x width a node; passes of width-long vectors over edges and over nodes; kernels a layer.
SPARSE = {
    "gcn": (172, 1, 2.0, 8, 16, "one product a node, neighbours summed"),
    "gat": (176, 1, 5.0, 10, 34, "eight heads: scores and a softmax over each node's edges"),
    "gatedgcn": (78, 5, 9.0, 12, 44, "five products a node, gates and states kept on edges"),
    "gin": (124, 2, 2.0, 12, 24, "two products a node, neighbours summed"),
    "graphsage": (100, 2, 3.0, 10, 24, "two products a node, neighbours pooled"),
    "monet": (94, 3, 7.0, 8, 40, "three Gaussian kernels weigh each edge"),
    "mlp": (178, 1, 0.0, 7, 10, "no neighbours at all"),
}
KEPT = 0.25  # of the passes leave something behind for the backward
# Dense on n x n x width tensors, a few graphs at a time as the benchmark does it.
DENSE = {
    "ringgnn": (37, 2, 17, 60, "17 equivariant maps of the adjacency tensor, streamed"),
    "3wlgnn": (79, 3, 6, 52, "products of n x n matrices for each channel"),
}


def gnn_sparse(model, data):
    width, products, edge_passes, node_passes, kernels, about = SPARSE[model]
    nodes, edges, what = DATASETS[data]
    layers, batch = 16, 128

    def kept_mib(graphs):
        return 1100 + KEPT * layers * 4 * width * graphs * (
            nodes * node_passes + edges * edge_passes) / 2**20

    while kept_mib(batch) > FITS_MIB:
        batch //= 2
    while True:
        n, e = nodes * batch, edges * batch
        parts = [
            ("embed", "small_gemm", 2 * n * width * width, 4 * n * width * 3, 8, 0.20),
            ("dense", "small_gemm", layers * products * 2 * n * width * width,
             layers * 4 * width * n * node_passes, layers * (kernels // 2), 0.25),
        ]
        if edge_passes > 0:
            parts.append(("edges", "gather", layers * edge_passes * e * width,
                          layers * 4 * width * e * edge_passes * 0.6,
                          layers * (kernels - kernels // 2), 0.10))
        built = job(f"{model}_{data}", "benchmarking-gnns",
                    f"{model} on {data} ({what}), 16 layers, batch {batch}: {about}",
                    train(parts, 0.5, 6), 1e-3 * (5 + batch * (0.015 + 2e-6 * edges)),
                    f"for metrics and what loaders leave of collating {batch} graphs",
                    int(kept_mib(batch)), 0.03 + (0.02 if edges > 1000 else 0.01),
                    "graph sizes in a batch", GRAPH_LAUNCH_S)
        # The shortest steps: the batch is doubled until a step is at least 50 ms, so that all
        # periods lie where sensors of this card resolve them.
        if sum(p["seconds"] for p in built["phases"]) >= 0.050:
            return built
        batch *= 2


def gnn_dense(model, data):
    width, layers, passes, kernels, about = DENSE[model]
    nodes, _, what = DATASETS[data]
    batch = 4
    while True:
        square = batch * nodes * nodes
        if model == "3wlgnn":
            parts = [("mix", "elementwise", 2 * layers * 3 * square * width * width,
                      4 * layers * square * width * passes, layers * kernels // 2, 0.30),
                     ("multiply", "small_gemm", 2 * layers * square * nodes * width,
                      4 * layers * square * width * 3, layers * kernels // 2, 0.22)]
        else:
            parts = [("maps", "elementwise", 2 * layers * square * width * passes * 4,
                      4 * layers * square * width * passes, layers * kernels * 3, 0.20),
                     ("mix", "small_gemm", 2 * layers * square * width * width * 2,
                      4 * layers * square * width * 4, layers * kernels, 0.25)]
        built = job(f"{model}_{data}", "benchmarking-gnns",
                    f"{model} on {data} ({what}), batch {batch}: {about}", train(parts, 0.1, 6),
                    1e-3 * (5 + batch * (0.1 + 4e-6 * nodes * nodes)),
                    f"for metrics and to make dense tensors of {batch} graphs",
                    min(FITS_MIB, int(1200 + 4 * layers * square * width * passes / 2**20)), 0.05,
                    "dense tensors go with the square of the nodes", GRAPH_LAUNCH_S)
        if sum(p["seconds"] for p in built["phases"]) >= 0.050:
            return built
        batch *= 2


def aibench(row):
    (name, about, batch, gop, mb, parameters, kernels, kind, efficiency, passes, host_ms, host_why,
     memory, jitter, jitter_why) = row
    parts = [("forward", kind, batch * gop * 1e9, batch * mb * 1e6, kernels, efficiency)]
    return job(name, "AIBench", f"{about}, batch {batch}", train(parts, parameters, passes),
               1e-3 * (2 + batch * host_ms), f"of the host: {host_why}", memory, jitter, jitter_why)


def number(value):
    return f"{value:.4g}" if value >= 1e-4 else "0"


def write_phase(phase, total):
    yield "\n[[jobs.phases]]"
    yield f'name = "{phase["name"]}"'
    share = f"share = {phase['seconds'] / total:.4f}"
    if phase.get("host"):
        yield 'kind = "host"'
        yield f"{share}  # {phase['why']}"
        return
    yield f"{share}  # {1e3 * phase['seconds']:.3g} ms: {phase['kind']}"
    yield f"launches = {phase['launches']}  # {phase['why']['launches']}"
    for key in ("compute", "memory", "fixed", "overlap", "sm_activity", "memory_activity", "tensor",
                "fp32", "occupancy"):
        yield f"{key} = {number(phase[key])}  # {phase['why'][key]}"


def write_job(j):
    total = sum(p["seconds"] for p in j["phases"])
    assert 0.05 <= total <= 3.0, (j["name"], total)
    yield "\n[[jobs]]"
    yield f'name = "{j["name"]}"'
    yield f'family = "{j["family"]}"'
    yield f'about = "{j["about"]}"'
    yield f"iteration_s = {total:.4f}  # sum of the phases below"
    yield f"memory_mib = {j['memory_mib']}  # weights, moments and kept activations, by size"
    yield f"noise.jitter_cv = {j['jitter']:.3g}  # {j['jitter_why']}"
    for phase in j["phases"]:
        yield from write_phase(phase, total)


HEAD = """# GENERATED, not measured: 71 jobs for the simulated RTX 3080 Ti. Written by
# tools/make_twin71.py, which holds the formulas; do not edit here.
#
# The mix is that of the published evaluation: the 17 component tasks of AIBench, and models of
# benchmarking-gnns on its data sets. Which of the latter were taken is not published in a form
# known to us; 9 models x 6 data sets make 71. No number is measured, and none was chosen or changed
# with a policy's result in view: each follows from what the model must compute, move, launch and
# wait for, and says so beside itself.
name = "twin-71"
device = "rtx3080ti"
about = "71 generated jobs: AIBench tasks and benchmarking-gnns models on data sets"
"""


def text():
    jobs = [aibench(row) for row in AIBENCH]
    jobs += [gnn_sparse(m, d) for m in SPARSE for d in DATASETS]
    jobs += [gnn_dense(m, d) for m in DENSE for d in DATASETS]
    assert len(jobs) == 71
    lines = []
    for j in jobs:
        lines += write_job(j)
    return HEAD + "\n".join(lines) + "\n"


def main():
    path = pathlib.Path(__file__).resolve().parent.parent / "data" / "suites" / "twin-71.toml"
    made = text()
    if "--check" in sys.argv[1:]:
        same = path.exists() and path.read_text() == made
        print(f"{path.name}: {'as' if same else 'NOT as'} tools/make_twin71.py writes it")
        return 0 if same else 1
    path.parent.mkdir(exist_ok=True)
    path.write_text(made)
    return 0


sys.exit(main())
