// SPDX-License-Identifier: Apache-2.0
// A job compiled for one device, as plain old data: how long each phase takes, what it draws and
// which activities it shows at every clock pair of the device. The card core only looks things up
// here. Made by compile.h.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

#include "twin/device_model.h"

namespace gpoeo::twin {

inline constexpr int kMaxPhases = 32;
inline constexpr int kMaxVariants = 8;
inline constexpr int kMaxStages = 4;
inline constexpr int kMaxLengths = 8;
// Phases times clock pairs.
inline constexpr int kMaxPoints = 12288;

enum class PhaseKind : std::int32_t { kKernel, kHost, kCopy, kIdle };

struct PhasePoint {
  double duration_s;
  float power_w;
  std::array<float, kActivityCount> activity;
  float busy;  // share of the phase in which a kernel runs: what utilisation counts
};

struct Phase {
  std::array<char, 24> name;
  PhaseKind kind;
  std::int32_t
      every;  // runs in each every-th iteration: 1 always; more for validation, checkpoints
  std::int32_t launches;     // kernel launches, spread evenly over the phase
  std::int32_t function_id;  // of the first of them; the others follow
  // What the phase costs at default clocks, cap included: the judge's yardstick.
  double reference_s;
  double reference_w;
};

// One kind of iteration: phases first..first+count-1; of them `repeat_first`.. `repeat_count`
// run `repeats` times in a row (accumulation micro-steps).
struct Variant {
  double weight;
  std::int32_t first, count;
  std::int32_t repeat_first, repeat_count, repeats;
  std::int32_t reserved;
};

// Iterations draw a variant by weight; after `iterations` (0: never) the next stage begins, and
// the last stage is followed by the first when the job loops.
struct Stage {
  std::int64_t iterations;
  std::int32_t first_variant, variant_count;
};

struct Work {
  std::array<char, 48> name;
  std::int32_t pair_count;
  std::int32_t phase_count, variant_count, stage_count;
  std::int32_t loop_stages;
  std::int32_t length_count;
  std::array<Phase, kMaxPhases> phases;
  std::array<Variant, kMaxVariants> variants;
  std::array<Stage, kMaxStages> stages;
  // Dataset-length variation: each iteration's kernel work is scaled by one of these (mean 1).
  std::array<double, kMaxLengths> length_scale, length_weight;
  double jitter_cv;    // of an iteration's time
  double drift_sigma;  // AR(1) of iteration time, relative
  double drift_tau_s;
  double power_drift_sigma;  // AR(1) of the true power, same time constant
  std::uint64_t memory_bytes;
  // Of each stage at each pair: mean power over its iterations (thermal model), highest power of
  // any phase (governor).
  std::array<std::array<float, kMaxClockPairs>, kMaxStages> mean_power_w, peak_power_w;
  // The stage's response was measured under the device's own default power limit, so that limit
  // must not be applied a second time.
  std::array<std::int32_t, kMaxStages> cap_included;
  std::array<PhasePoint, kMaxPoints> points;  // phase * pair_count + pair

  const PhasePoint& point(int phase, int pair) const {
    return points[static_cast<std::size_t>(phase * pair_count + pair)];
  }
};
static_assert(std::is_trivially_copyable_v<Work>);

}  // namespace gpoeo::twin
