// SPDX-License-Identifier: Apache-2.0
// What the GPUs of a job used, over time. Pure.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/units.h"
#include "report/session.h"

namespace gpoeo::control {

class EnergyTimeline {
 public:
  // Stretches of a GPU come in order and do not overlap; where they leave a hole nothing is known.
  void add(unsigned gpu, Instant from, Instant to, Joules energy, Joules error);

  // Joules of all GPUs between two instants, pro rata at the edges of stretches. A hole is filled
  // with the GPU's mean power around it and widens the error; nullopt when more than a tenth of the
  // time of any GPU is one.
  std::optional<report::Figure> between(Instant from, Instant to) const;
  // The same of time in which less may be known: what is not known is filled with the mean power of
  // the GPU over all that is, and may be off by as much. 0 J where nothing is known at all.
  report::Figure assumed_between(Instant from, Instant to) const;
  // Until when something is known of every GPU; nullopt: of some nothing at all.
  std::optional<Instant> known_to() const;

 private:
  struct Stretch {
    Instant from, to;
    double energy_j, error_j;
  };
  // Of one GPU what is known of a span: pro rata at the edges.
  struct Known {
    double energy_j = 0, variance = 0, covered_s = 0;
  };
  static Known known(const std::vector<Stretch>& stretches, Instant from, Instant to);

  std::map<unsigned, std::vector<Stretch>> stretches_;  // by GPU
};

}  // namespace gpoeo::control
