// SPDX-License-Identifier: Apache-2.0
#include "twin/judge.h"

#include <algorithm>

namespace gpoeo::twin {
namespace {

// A running job's energy so far, which its slot only books at iteration ends.
JobTruth up_to_now(const Card& card, const JobSlot& job, Instant now) {
  JobTruth truth = job.truth;
  if (job.state != JobPhaseState::kRunning) return truth;
  const double pending = energy_at(card, now) - card.state.energy_j;
  truth.energy_j =
      card.state.shared_energy_j - job.shared_at_start_j + pending / card.state.running;
  return truth;
}

}  // namespace

Result<CardTruth> truth(CardStore& store, unsigned card_index) {
  CardTruth result;
  GPOEO_TRY_STATUS(store.visit(card_index, [&](Card& card) -> Status {
    const CardState& s = card.state;
    const Instant now = instant_from_ns(s.horizon_ns);
    result.time = now;
    result.energy = Joules(energy_at(card, now));
    result.power = Watts(power_at(card, now));
    result.temperature = Celsius(temperature_at(card, now));
    result.sm_clock = megahertz(card.device.sm_mhz[static_cast<std::size_t>(s.sm)]);
    result.memory_clock = megahertz(card.device.memory_mhz[static_cast<std::size_t>(s.memory)]);
    result.clock_writes = s.clock_writes;
    const auto kept = std::min<std::uint64_t>(s.finished_count, kFinishedJobs);
    for (std::uint64_t i = s.finished_count - kept; i < s.finished_count; ++i)
      result.jobs.push_back(s.finished[i % kFinishedJobs]);
    for (const JobSlot& job : s.jobs)
      if (job.state != JobPhaseState::kFree) result.jobs.push_back(up_to_now(card, job, now));
    return {};
  }));
  std::sort(result.jobs.begin(), result.jobs.end(),
            [](const JobTruth& a, const JobTruth& b) { return a.generation < b.generation; });
  return result;
}

}  // namespace gpoeo::twin
