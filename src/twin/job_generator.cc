// SPDX-License-Identifier: Apache-2.0
#include "twin/job_generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "twin/random.h"

namespace gpoeo::twin {
namespace {

struct Range {
  double low, high;
};

// Of one kind of job. Shares are of kernel time at default clocks.
struct KindRanges {
  Range host;      // share of the iteration in which no kernel runs
  Range compute;   // share of kernel time that goes with the SM clock
  Range memory;    // share that goes with the memory clock
  Range fixed;     // share that neither changes: launch and drain, waiting on DRAM latency
  Range pipes;     // how busy the pipes are while compute runs
  Range tensor;    // share of that in tensor pipes
  Range resident;  // share of SMs with a warp
  Range occupancy;
};

// By hand, wide enough to hold every measured A100 workload at default clocks (gr_active 0.02 to 1,
// dram_active 0 to 0.86, time at half clock 1.0 to 1.46 of default's).
constexpr KindRanges kKinds[] = {
    // host-bound: input pipelines, eager launches, solvers with little on the GPU
    {.host = {0.45, 0.98},
     .compute = {0.3, 1.0},
     .memory = {0.0, 0.7},
     .fixed = {0.0, 0.6},
     .pipes = {0.02, 0.5},
     .tensor = {0, 0.5},
     .resident = {0.03, 1.0},
     .occupancy = {0.01, 0.6}},
    // compute-bound on plain pipes
    {.host = {0.0, 0.25},
     .compute = {0.85, 1.0},
     .memory = {0.0, 0.4},
     .fixed = {0.0, 0.45},
     .pipes = {0.15, 0.95},
     .tensor = {0, 0.1},
     .resident = {0.6, 1.0},
     .occupancy = {0.1, 1.0}},
    // memory-bound
    {.host = {0.0, 0.3},
     .compute = {0.03, 0.6},
     .memory = {0.8, 1.0},
     .fixed = {0.0, 0.2},
     .pipes = {0.02, 0.5},
     .tensor = {0, 0.2},
     .resident = {0.7, 1.0},
     .occupancy = {0.3, 1.0}},
    // latency-bound: small grids, recurrent steps, pointer chasing
    {.host = {0.05, 0.6},
     .compute = {0.3, 1.0},
     .memory = {0.0, 0.3},
     .fixed = {0.05, 0.8},
     .pipes = {0.005, 0.2},
     .tensor = {0, 0.4},
     .resident = {0.02, 0.6},
     .occupancy = {0.01, 0.3}},
    // tensor-heavy
    {.host = {0.0, 0.3},
     .compute = {0.85, 1.0},
     .memory = {0.02, 0.6},
     .fixed = {0.0, 0.15},
     .pipes = {0.3, 1.15},
     .tensor = {0.7, 1.0},
     .resident = {0.7, 1.0},
     .occupancy = {0.08, 0.4}},
    // anything between
    {.host = {0.0, 0.6},
     .compute = {0.2, 1.0},
     .memory = {0.1, 0.95},
     .fixed = {0.0, 0.5},
     .pipes = {0.03, 0.8},
     .tensor = {0, 0.9},
     .resident = {0.2, 1.0},
     .occupancy = {0.05, 0.9}},
};
static_assert(std::size(kKinds) == static_cast<std::size_t>(JobKind::kCount));

double draw(Random& random, Range range) {
  return range.low + (range.high - range.low) * next_uniform(random);
}

// Small values more often.
double draw_low(Random& random, Range range) {
  const double lot = next_uniform(random);
  return range.low + (range.high - range.low) * lot * lot;
}

AnalyticResponse draw_response(Random& random, const KindRanges& kind) {
  AnalyticResponse r;
  const double compute = draw(random, kind.compute);
  const double memory = draw(random, kind.memory);
  const double fixed = draw_low(random, kind.fixed);
  r.overlap = draw(random, {0.4, 1.0});
  // To shares of the kernel time, which is 1.
  const double total =
      r.overlap * std::max(compute, memory) + (1 - r.overlap) * (compute + memory) + fixed;
  r.compute = compute / total;
  r.memory = memory / total;
  r.fixed = fixed / total;
  const double pipes = std::min(1.0, draw(random, kind.pipes)) * r.compute;  // of all cycles
  const double tensor = draw(random, kind.tensor);
  const double of_double = next_uniform(random) < 0.2 ? draw(random, {0.1, 0.9}) : 0.0;
  const double of_half = next_uniform(random) < 0.3 ? draw(random, {0.05, 0.4}) : 0.0;
  r.tensor = pipes * tensor;
  r.fp64 = pipes * (1 - tensor) * of_double;
  r.fp16 = pipes * (1 - tensor) * (1 - of_double) * of_half;
  // Integer, address and control work fills part of the slots and shows in no pipe counter.
  r.fp32 = pipes * (1 - tensor) * (1 - of_double) * (1 - of_half) * draw(random, {0.3, 1.0});
  r.sm_active = std::clamp(draw(random, kind.resident), 0.0, 1.0);
  r.occupancy = std::min(*r.sm_active, draw(random, kind.occupancy));
  // Resident warps draw a little, pipes most, memory instructions in between. Two kernels with the
  // same counters differ on a card as well (data, registers, caches): of the measured A100 ones,
  // lavamd draws 236 W with 0.90 of the FP32 pipes busy, stencil 451 W with 0.38.
  r.sm_activity = (0.05 + 0.12 * *r.sm_active * r.occupancy + 0.72 * pipes + 0.20 * r.memory) *
                  std::exp(draw(random, {-0.5, 0.6}));
  r.sm_activity = std::clamp(r.sm_activity, 0.02, 1.0);
  r.memory_activity = r.memory * draw(random, {0.6, 1.0});
  return r;
}

PhaseSpec kernel_phase(std::string name, double share, const AnalyticResponse& response,
                       int launches) {
  PhaseSpec phase;
  phase.name = std::move(name);
  phase.share = share;
  phase.response = response;
  phase.launches = launches;
  return phase;
}

}  // namespace

std::string_view to_string(JobKind kind) {
  switch (kind) {
    case JobKind::kHost:
      return "host";
    case JobKind::kCompute:
      return "compute";
    case JobKind::kMemory:
      return "memory";
    case JobKind::kLatency:
      return "latency";
    case JobKind::kTensor:
      return "tensor";
    case JobKind::kMixed:
      return "mixed";
    case JobKind::kCount:
      break;
  }
  GPOEO_CHECK(false);
  return "";
}

JobKind kind_of(int index) {
  return static_cast<JobKind>(index % static_cast<int>(JobKind::kCount));
}

JobSpec generate_job(std::uint64_t seed, int index) {
  // A stream for each job: what one draws does not shift the next.
  Random random = make_random(seed * 0x9e3779b97f4a7c15ULL + static_cast<std::uint64_t>(index));
  const JobKind kind = kind_of(index);
  const KindRanges& ranges = kKinds[static_cast<std::size_t>(kind)];
  JobSpec job;
  job.name = fmt::format("{}-{:04}", to_string(kind), index);
  job.iteration_s = 0.05 * std::pow(60.0, next_uniform(random));
  const double host = draw_low(random, ranges.host);
  const double copy = next_uniform(random) < 0.3 ? host * draw(random, {0.05, 0.4}) : 0.0;
  const int kernels = next_uniform(random) < 0.5 ? 1 : next_uniform(random) < 0.5 ? 2 : 3;
  VariantSpec variant;
  if (host > copy) {
    PhaseSpec input;
    input.name = "input";
    input.kind = PhaseKind::kHost;
    input.share = host - copy;
    input.launches = 0;
    variant.phases.push_back(std::move(input));
  }
  if (copy > 0) {
    PhaseSpec phase;
    phase.name = "copy";
    phase.kind = PhaseKind::kCopy;
    phase.share = copy;
    phase.launches = 0;
    phase.response.pcie_rx_bytes_per_s = std::pow(10.0, draw(random, {8, 10.3}));
    phase.response.pcie_tx_bytes_per_s =
        phase.response.pcie_rx_bytes_per_s * draw(random, {0, 0.3});
    variant.phases.push_back(std::move(phase));
  }
  for (int k = 0; k < kernels; ++k)
    variant.phases.push_back(kernel_phase(fmt::format("part{}", k + 1),
                                          (1 - host) * draw(random, {0.3, 1.0}),
                                          draw_response(random, ranges), 20));
  StageSpec stage;
  stage.variants.push_back(std::move(variant));
  job.stages.push_back(std::move(stage));
  // Kernel phases fill what the host leaves.
  double kernel_share = 0;
  auto& phases = job.stages[0].variants[0].phases;
  for (const PhaseSpec& phase : phases)
    if (phase.kind == PhaseKind::kKernel) kernel_share += phase.share;
  for (PhaseSpec& phase : phases)
    if (phase.kind == PhaseKind::kKernel) phase.share *= (1 - host) / kernel_share;
  make_steady(job);
  return job;
}

}  // namespace gpoeo::twin
