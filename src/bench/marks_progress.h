// SPDX-License-Identifier: Apache-2.0
// Iteration ends as a job on a simulated card logs them.
#pragma once

#include "control/progress.h"
#include "twin/twin.h"

namespace gpoeo::bench {

// Thread rule: one thread. Borrows the twin.
class MarksProgress final : public control::ProgressReader {
 public:
  MarksProgress(twin::Twin& twin, twin::JobHandle job) : twin_(twin), job_(job) {}
  void poll(Instant now) override;
  control::ProgressSource source() const override { return control::ProgressSource::kLaunchLog; }
  std::vector<Instant> take_ends() override { return std::exchange(ends_, {}); }
  unsigned generation() const override { return 0; }
  std::vector<std::string> take_notes() override { return {}; }

 private:
  twin::Twin& twin_;
  twin::JobHandle job_;
  std::int64_t next_ = 0;
  std::vector<Instant> ends_;
};

}  // namespace gpoeo::bench
