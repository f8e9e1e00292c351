// SPDX-License-Identifier: Apache-2.0
// What the simulator knows of the jobs that ran on it: the judge's figures for the report.
#pragma once

#include <optional>

#include "report/session.h"
#include "twin/segment.h"

namespace gpoeo::app {

// Summed over the jobs of all cards; nullopt when no simulated job ran.
std::optional<report::TruthSection> twin_truth(twin::Segment& segment);

}  // namespace gpoeo::app
