// SPDX-License-Identifier: Apache-2.0
#include "bench/marks_progress.h"

namespace gpoeo::bench {

void MarksProgress::poll(Instant /*now*/) {
  const auto ends = twin_.iteration_ends(0, job_, next_);
  if (!ends) return;
  next_ += static_cast<std::int64_t>(ends->size());
  for (const auto& end : *ends) ends_.push_back(end.time);
}

}  // namespace gpoeo::bench
