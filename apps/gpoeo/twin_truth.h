// SPDX-License-Identifier: Apache-2.0
// What the simulator knows of the jobs that ran on it: the judge's figures for the report.
#pragma once

#include <optional>
#include <vector>

#include "report/session.h"
#include "twin/segment.h"

namespace gpoeo::app {

// Summed over the jobs that began at `since` or later on these cards; nullopt when there was none.
std::optional<report::TruthSection> twin_truth(twin::Segment& segment,
                                               const std::vector<unsigned>& cards, Instant since);

}  // namespace gpoeo::app
