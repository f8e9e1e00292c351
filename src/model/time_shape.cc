// SPDX-License-Identifier: Apache-2.0
#include "model/time_shape.h"

#include <algorithm>
#include <cmath>

namespace gpoeo::model {
namespace {

double logistic(double z) {
  return z > 0 ? 1 / (1 + std::exp(-z)) : std::exp(z) / (1 + std::exp(z));
}

}  // namespace

double soft_plus(double z, double width) {
  const double u = z / width;
  return width * (std::max(u, 0.0) + std::log1p(std::exp(-std::abs(u))));
}

double log_time(const TimeShape& shape, double x) { return log_time_gradient(shape, x).value; }

LogTimeGradient log_time_gradient(const TimeShape& shape, double x) {
  const double slope = std::exp(shape.log_slope);
  const double rise =
      soft_plus(x - shape.knee, kKneeWidth) - soft_plus(shape.top - shape.knee, kKneeWidth);
  // Above the top (a clock over the line's highest) time would fall under the level: held positive.
  const double time = std::max(0.05, 1 + slope * rise);
  LogTimeGradient g;
  g.value = shape.level + std::log(time);
  g.by_log_slope = slope * rise / time;
  g.by_knee =
      slope *
      (logistic((shape.top - shape.knee) / kKneeWidth) - logistic((x - shape.knee) / kKneeWidth)) /
      time;
  return g;
}

}  // namespace gpoeo::model
