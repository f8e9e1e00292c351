// SPDX-License-Identifier: Apache-2.0
// What a user sees on stderr while the job runs: on a terminal one line that is rewritten each
// second and never scrolls the job's own output away; elsewhere a line for each change of state and
// one a minute.
#pragma once

#include <chrono>
#include <string>

#include "control/controller.h"

namespace gpoeo::app {

// Thread rule: the control thread.
class ProgressDisplay {
 public:
  ProgressDisplay(bool quiet, bool simulated);

  void event(const std::string& line);
  void update(const control::LiveStatus& status);
  // Takes the live line away.
  void clear();

 private:
  bool quiet_;
  bool simulated_;
  bool terminal_;
  bool line_shown_ = false;
  std::chrono::steady_clock::time_point next_{};
};

}  // namespace gpoeo::app
