// SPDX-License-Identifier: Apache-2.0
#include "policy/evidence.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace gpoeo::policy {
namespace {

// Windows are merged until a block spans this much: below the drift's time constant nothing is
// lost.
constexpr double kBlockSpan_s = 40;
// No window is better than this: what repeats of whole runs scatter by at best.
constexpr double kLeastError = 0.0008;

double distance(const ClockSetting& a, const ClockSetting& b) {
  if (a.memory != b.memory || a.is_default() != b.is_default() ||
      a.power_limit.has_value() != b.power_limit.has_value()) {
    return std::numeric_limits<double>::infinity();
  }
  if (a.power_limit) return std::abs((*a.power_limit - *b.power_limit).value());
  if (!a.sm || !b.sm) return a.sm == b.sm ? 0 : std::numeric_limits<double>::infinity();
  return std::abs((*a.sm - *b.sm).value());
}

std::size_t nearest(std::span<const Candidate> candidates, const ClockSetting& setting) {
  std::size_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const double d = distance(candidates[i].setting, setting);
    if (d < least) {
      least = d;
      best = i;
    }
  }
  return best;
}

double relative_variance(double error, double value) {
  const double relative = std::max(kLeastError, error / value);
  return relative * relative;
}

Evidence evidence_of(const Observation& o, std::size_t candidate) {
  return {.candidate = candidate,
          .at_s = o.at.value(),
          .span_s = o.time.value() * static_cast<double>(o.iterations),
          .log_time = std::log(o.time.value()),
          .time_variance = relative_variance(o.time_error.value(), o.time.value()),
          .log_power = std::log(o.energy.value() / o.time.value()),
          .power_variance = relative_variance(o.energy_error.value(), o.energy.value())};
}

void merge(Evidence& into, const Evidence& more) {
  const auto pool = [](double& value, double& variance, double other, double other_variance) {
    const double w = 1 / variance, v = 1 / other_variance;
    value = (w * value + v * other) / (w + v);
    variance = 1 / (w + v);
  };
  pool(into.log_time, into.time_variance, more.log_time, more.time_variance);
  pool(into.log_power, into.power_variance, more.log_power, more.power_variance);
  const double span = into.span_s + more.span_s;
  if (span > 0) into.at_s = (into.at_s * into.span_s + more.at_s * more.span_s) / span;
  into.span_s = span;
}

// Merges neighbours at one setting, longest stays first halved in number, until there is room.
void shorten(std::vector<Evidence>& blocks) {
  while (blocks.size() > kMostBlocks) {
    // The pair whose union spans least.
    std::size_t best = blocks.size();
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i + 1 < blocks.size(); ++i) {
      if (blocks[i].candidate != blocks[i + 1].candidate) continue;
      const double span = blocks[i].span_s + blocks[i + 1].span_s;
      if (span < least) {
        least = span;
        best = i;
      }
    }
    if (best == blocks.size()) {
      blocks.erase(blocks.begin() + 1);  // no neighbours left: the oldest after the first baseline
      continue;
    }
    merge(blocks[best], blocks[best + 1]);
    blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

}  // namespace

EvidenceLog gather(std::span<const Candidate> candidates,
                   std::span<const Observation> observations) {
  EvidenceLog log;
  log.looks.resize(candidates.size());
  std::set<std::size_t> tried;
  bool at_default = false;
  for (const Observation& o : observations) {
    const bool usable = std::isfinite(o.time.value()) && o.time.value() > 0 &&
                        std::isfinite(o.energy.value()) && o.energy.value() > 0;
    if (!usable) continue;
    const std::size_t k = o.setting.is_default() ? 0 : nearest(candidates, o.setting);
    if (k == 0 && !o.setting.is_default()) continue;  // nothing like it among the candidates
    const Evidence e = evidence_of(o, k);
    ++log.looks[k].windows;
    log.looks[k].last_s = e.at_s;
    log.measured_s += e.span_s;
    // Each window tells variance / span of its own; the span weighs.
    log.time_noise += e.time_variance * e.span_s * e.span_s;
    log.power_noise += e.power_variance * e.span_s * e.span_s;
    if (k == 0) {
      log.baselines += !at_default;
      log.last_baseline_s = e.at_s;
    } else {
      tried.insert(k);
    }
    at_default = k == 0;
    auto& blocks = log.blocks;
    if (!blocks.empty() && blocks.back().candidate == k &&
        blocks.back().span_s + e.span_s <= kBlockSpan_s) {
      merge(blocks.back(), e);
    } else {
      blocks.push_back(e);
    }
  }
  double weight = 0;
  for (const Evidence& e : log.blocks) {
    if (e.candidate == 0) weight += 1 / e.time_variance;
  }
  if (weight > 0) log.baseline_error = 1 / std::sqrt(weight);
  log.probes = tried.size();
  if (log.measured_s > 0) {
    log.time_noise /= log.measured_s;
    log.power_noise /= log.measured_s;
  }
  shorten(log.blocks);
  return log;
}

}  // namespace gpoeo::policy
