// SPDX-License-Identifier: Apache-2.0
// Inside compile: what the phases of one variant do at every clock pair of a device.
#pragma once

#include <span>

#include "response/response_curve.h"
#include "twin/device_model.h"
#include "twin/job_spec.h"
#include "twin/work.h"

namespace gpoeo::twin {

struct VariantShape {
  const VariantSpec& spec;
  double iteration_s;  // at default clocks
  double total_share;  // of the phases that run each iteration, repeats counted
};

// points[phase * pairs + pair], phases counted within the variant.
void fill_analytic(const VariantShape& shape, const DeviceModel& device,
                   std::span<PhasePoint> points);
void fill_measured(const VariantShape& shape, const response::WorkloadCurves& measured,
                   const DeviceModel& device, std::span<PhasePoint> points);

}  // namespace gpoeo::twin
