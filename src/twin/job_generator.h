// SPDX-License-Identifier: Apache-2.0
// Analytic jobs drawn over the whole plane of what training jobs are bound by, to pre-train a
// predictor on (the measured tables hold few workloads). Generated: nothing in them is measured.
//
// Each kind draws its host share, how far compute, memory and latency bound its kernels, how much
// of the pipes they keep busy and which pipes, and an iteration's phases; counters and power follow
// from these as they do on a card: work in the pipes draws SM power, bytes draw memory power.
// Thread rule: pure; the same seed and index give the same job on every machine.
#pragma once

#include <cstdint>
#include <string_view>

#include "twin/job_spec.h"

namespace gpoeo::twin {

enum class JobKind { kHost, kCompute, kMemory, kLatency, kTensor, kMixed, kCount };
std::string_view to_string(JobKind kind);

// Job `index` of the corpus `seed`; kinds take turns. Named "host-0007". Without chance (jitter and
// drift are 0): what a corpus holds is the truth.
JobSpec generate_job(std::uint64_t seed, int index);
JobKind kind_of(int index);

}  // namespace gpoeo::twin
