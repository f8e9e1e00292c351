// SPDX-License-Identifier: Apache-2.0
// The one vocabulary of hardware counters: what each word means, its name in files (DESIGN section
// 10) and its number on the wire. GPM, CUPTI, the twin, response tables and the model's features
// all use it; docs/counters.md defines each word and says what each source measures for it.
//
// Header-only and without allocation.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace gpoeo {

// Means over a stretch of time. Shares are 0..1 of the hardware's peak over all of that time (not
// of the busy part). Absent = this source does not have it.
struct Activity {
  // What GPM, DCGM and CUPTI can all tell: the counter columns of a response table.
  std::optional<double> gr_active{};      // time in which some engine for kernels was busy
  std::optional<double> sm_active{};      // mean over SMs of the time with at least one warp
  std::optional<double> sm_occupancy{};   // resident warps over the most that fit
  std::optional<double> tensor_active{};  // cycles in which the tensor pipe was busy
  std::optional<double> dram_active{};    // cycles in which device memory moved data
  std::optional<double> fp64_active{};
  std::optional<double> fp32_active{};  // the FMA pipe, integer multiply-adds included
  std::optional<double> fp16_active{};
  std::optional<double> pcie_tx_bytes_per_s{};  // from the GPU
  std::optional<double> pcie_rx_bytes_per_s{};  // to the GPU

  // What only CUPTI can: ALGORITHMS section 3.2. Rates of all SMs or cache slices together.
  std::optional<double> issue_active{};  // instructions issued over the most that can be
  std::optional<double> instructions_per_s{};
  std::optional<double> l1_sectors_per_s{};  // looked up
  std::optional<double> l1_hit_rate{};
  std::optional<double> l2_sectors_per_s{};
  std::optional<double> l2_hit_rate{};
  std::optional<double> pipe_adu{}, pipe_alu{}, pipe_cbu{}, pipe_ipa{}, pipe_lsu{}, pipe_tex{},
      pipe_uniform{}, pipe_xu{};

  bool operator==(const Activity&) const = default;
};

struct ActivityWord {
  std::uint32_t number;  // on the wire (wire::CounterValue::metric): never reused
  std::string_view name;
  std::optional<double> Activity::*field;
  bool share;  // 0..1; else a rate, not negative
};

inline constexpr ActivityWord kActivityWords[] = {
    {1, "gr_active", &Activity::gr_active, true},
    {2, "sm_active", &Activity::sm_active, true},
    {3, "sm_occupancy", &Activity::sm_occupancy, true},
    {4, "tensor_active", &Activity::tensor_active, true},
    {5, "dram_active", &Activity::dram_active, true},
    {6, "fp64_active", &Activity::fp64_active, true},
    {7, "fp32_active", &Activity::fp32_active, true},
    {8, "fp16_active", &Activity::fp16_active, true},
    {9, "pcie_tx_bytes_per_s", &Activity::pcie_tx_bytes_per_s, false},
    {10, "pcie_rx_bytes_per_s", &Activity::pcie_rx_bytes_per_s, false},
    {11, "issue_active", &Activity::issue_active, true},
    {12, "instructions_per_s", &Activity::instructions_per_s, false},
    {13, "l1_sectors_per_s", &Activity::l1_sectors_per_s, false},
    {14, "l1_hit_rate", &Activity::l1_hit_rate, true},
    {15, "l2_sectors_per_s", &Activity::l2_sectors_per_s, false},
    {16, "l2_hit_rate", &Activity::l2_hit_rate, true},
    {17, "pipe_adu", &Activity::pipe_adu, true},
    {18, "pipe_alu", &Activity::pipe_alu, true},
    {19, "pipe_cbu", &Activity::pipe_cbu, true},
    {20, "pipe_ipa", &Activity::pipe_ipa, true},
    {21, "pipe_lsu", &Activity::pipe_lsu, true},
    {22, "pipe_tex", &Activity::pipe_tex, true},
    {23, "pipe_uniform", &Activity::pipe_uniform, true},
    {24, "pipe_xu", &Activity::pipe_xu, true},
};

constexpr const ActivityWord* find_activity(std::string_view name) {
  for (const ActivityWord& word : kActivityWords) {
    if (word.name == name) return &word;
  }
  return nullptr;
}
constexpr const ActivityWord* find_activity(std::uint32_t number) {
  for (const ActivityWord& word : kActivityWords) {
    if (word.number == number) return &word;
  }
  return nullptr;
}

// Whether `value` can be what `word` says. A share may read a little over 1 by the timing of the
// two samples it is made of. NaN is not plausible.
constexpr bool plausible(const ActivityWord& word, double value) {
  constexpr double kMostShare = 1.1;
  constexpr double kMostRate = 1e18;
  return value >= 0 && value <= (word.share ? kMostShare : kMostRate);
}

// Leaves out what is not plausible.
constexpr void set_if_plausible(Activity& activity, const ActivityWord& word, double value) {
  if (!plausible(word, value)) return;
  activity.*word.field = word.share && value > 1 ? 1.0 : value;
}

// Sectors missed for each instruction executed; absent where a part is, or nothing was executed.
constexpr std::optional<double> misses_per_instruction(const Activity& a,
                                                       std::optional<double> sectors_per_s,
                                                       std::optional<double> hit_rate) {
  if (!sectors_per_s || !hit_rate || !a.instructions_per_s || *a.instructions_per_s <= 0) {
    return std::nullopt;
  }
  return *sectors_per_s * (1 - *hit_rate) / *a.instructions_per_s;
}

}  // namespace gpoeo
