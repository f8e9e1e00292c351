// SPDX-License-Identifier: Apache-2.0
// Iteration ends straight from the simulator, for tests on virtual time.
#pragma once

#include <utility>
#include <vector>

#include "control/progress.h"
#include "twin/twin.h"

namespace gpoeo::control::testing {

class TwinProgress final : public ProgressReader {
 public:
  TwinProgress(twin::Twin& twin, twin::JobHandle job) : twin_(twin), job_(job) {}
  void poll(Instant) override {
    const auto ends = twin_.iteration_ends(0, job_, next_);
    if (!ends) return;
    next_ += static_cast<std::int64_t>(ends->size());
    if (hidden) return;
    for (const auto& end : *ends)
      if (++counted_ % every == 0) ends_.push_back(end.time);
  }
  ProgressSource source() const override { return ProgressSource::kStepMarks; }
  std::vector<Instant> take_ends() override { return std::exchange(ends_, {}); }
  unsigned generation() const override { return generation_; }
  std::vector<std::string> take_notes() override { return {}; }

  bool hidden = false;  // the job launches nothing
  unsigned generation_ = 0;
  std::int64_t every = 1;  // what counts as one: so many of the job's

 private:
  twin::Twin& twin_;
  twin::JobHandle job_;
  std::int64_t next_ = 0;
  std::int64_t counted_ = 0;
  std::vector<Instant> ends_;
};

}  // namespace gpoeo::control::testing
