// SPDX-License-Identifier: Apache-2.0
#include "telemetry/iteration_energy.h"

#include <algorithm>
#include <cmath>

namespace gpoeo::telemetry {
namespace {

constexpr std::size_t kMostBatches = 20;
constexpr std::size_t kLeastBatches = 4;
// Shorter batches would mostly show the sampling at their edges.
constexpr double kBatchAtLeastS = 0.5;

}  // namespace

Result<IterationEnergy> iteration_energy(const EnergyMeter& meter, std::span<const Instant> ends) {
  if (ends.size() < 2) {
    return make_error(ErrorKind::kInvalid,
                      "iteration energy: needs the ends of at least two iterations");
  }
  if (!std::is_sorted(ends.begin(), ends.end()) || ends.front() == ends.back()) {
    return make_error(ErrorKind::kInvalid, "iteration energy: the ends are not in order of time");
  }
  IterationEnergy result;
  result.iterations = ends.size() - 1;
  const double n = static_cast<double>(result.iterations);
  GPOEO_TRY(result.window, meter.energy(ends.front(), ends.back()));
  result.time = result.window.duration / n;
  result.energy = result.window.energy / n;

  const auto by_length = static_cast<std::size_t>(result.window.duration.value() / kBatchAtLeastS);
  const std::size_t batches =
      std::min({kMostBatches, result.iterations, std::max(by_length, kLeastBatches)});
  if (batches < kLeastBatches) return result;
  double time_scatter = 0;
  double energy_scatter = 0;
  for (std::size_t k = 0; k < batches; ++k) {
    const std::size_t from = k * result.iterations / batches;
    const std::size_t to = (k + 1) * result.iterations / batches;
    if (ends[from] == ends[to]) return result;  // stamps too coarse for batches
    const double weight = static_cast<double>(to - from);
    GPOEO_TRY(const WindowEnergy batch, meter.energy(ends[from], ends[to]));
    const double time_off_s = batch.duration.value() / weight - result.time.value();
    const double energy_off_j = batch.energy.value() / weight - result.energy.value();
    time_scatter += weight * time_off_s * time_off_s;
    energy_scatter += weight * energy_off_j * energy_off_j;
  }
  // Variance of the mean of batches that are (nearly) equal in size.
  const double per = 1.0 / (n * static_cast<double>(batches - 1));
  result.time_error = Seconds(std::sqrt(time_scatter * per));
  result.energy_error =
      Joules(std::hypot(std::sqrt(energy_scatter * per), result.window.uncertainty.value() / n));
  return result;
}

}  // namespace gpoeo::telemetry
