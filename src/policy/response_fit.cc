// SPDX-License-Identifier: Apache-2.0
#include "policy/response_fit.h"

#include <algorithm>
#include <cmath>

namespace gpoeo::policy {
namespace {

// Prior of the power parabola and its spread, from the shape of published DVFS tables.
constexpr double kPriorLinear = 1.1;
constexpr double kPriorQuadratic = 0.4;
constexpr double kPriorSigma = 0.6;
// No estimate is trusted to better than this: it keeps one long window from silencing the others.
constexpr double kLeastError = 0.002;

}  // namespace

ResponseFit::ResponseFit(Hertz default_clock, std::span<const ClockEstimate> measured)
    : default_clock_(default_clock) {
  fit_time(measured);
  fit_power(measured);
}

void ResponseFit::fit_time(std::span<const ClockEstimate> measured) {
  // Each pooled block keeps the x of all its points: blocks are flat pieces of the curve.
  struct Block {
    double ratio, weight, first_x, last_x;
  };
  std::vector<Block> blocks = {{1.0, 1e12, 0.0, 0.0}};
  for (auto e = measured.rbegin(); e != measured.rend(); ++e) {
    const double x = default_clock_ / e->sm - 1;
    if (x <= 0) continue;
    const double error = std::max(e->time_error, kLeastError);
    blocks.push_back({e->time_ratio, 1 / (error * error), x, x});
    while (blocks.size() > 1 && blocks[blocks.size() - 2].ratio > blocks.back().ratio) {
      const Block right = blocks.back();
      blocks.pop_back();
      Block& left = blocks.back();
      const double weight = left.weight + right.weight;
      left.ratio = (left.ratio * left.weight + right.ratio * right.weight) / weight;
      left.weight = weight;
      left.last_x = right.last_x;
    }
  }
  for (const Block& b : blocks) {
    time_.push_back({b.first_x, b.ratio, b.weight});
    if (b.last_x > b.first_x) time_.push_back({b.last_x, b.ratio, b.weight});
  }
}

double ResponseFit::time_ratio(Hertz sm) const {
  const double x = default_clock_ / sm - 1;
  if (x <= 0) return 1;
  const auto right = std::ranges::find_if(time_, [x](const Point& p) { return p.x >= x; });
  if (right != time_.end()) {
    const Point& left = *(right - 1);  // time_ starts at x = 0 < x
    return left.ratio + (right->ratio - left.ratio) * (x - left.x) / (right->x - left.x);
  }
  const Point& last = time_.back();
  double slope = last.x > 0 ? (last.ratio - 1) / last.x : 1.0;
  if (time_.size() > 2) {
    const Point& before = time_[time_.size() - 2];
    slope = std::max(slope, (last.ratio - before.ratio) / (last.x - before.x));
  }
  return last.ratio + slope * (x - last.x);
}

void ResponseFit::fit_power(std::span<const ClockEstimate> measured) {
  // Ridge regression of y = 1 - power on (d, -d^2): two unknowns, solved by hand.
  const double prior = 1 / (kPriorSigma * kPriorSigma);
  double a11 = prior, a12 = 0, a22 = prior;
  double b1 = prior * kPriorLinear, b2 = prior * kPriorQuadratic;
  for (const ClockEstimate& e : measured) {
    const double d = 1 - e.sm / default_clock_;
    const double y = 1 - e.energy_ratio / e.time_ratio;
    const double error = std::max(std::hypot(e.energy_error, e.time_error), kLeastError);
    const double w = 1 / (error * error);
    a11 += w * d * d;
    a12 -= w * d * d * d;
    a22 += w * d * d * d * d;
    b1 += w * d * y;
    b2 -= w * d * d * y;
  }
  const double determinant = a11 * a22 - a12 * a12;
  linear_ = (b1 * a22 - b2 * a12) / determinant;
  quadratic_ = (b2 * a11 - b1 * a12) / determinant;
  // What the parabola cannot follow (a voltage floor, steps), clock by clock.
  for (const ClockEstimate& e : measured) {
    if (e.sm >= default_clock_) continue;
    off_parabola_.push_back({e.sm, e.energy_ratio / e.time_ratio - parabola(e.sm)});
  }
  off_parabola_.push_back({default_clock_, 0});
}

double ResponseFit::parabola(Hertz sm) const {
  const double d = 1 - sm / default_clock_;
  // Past its lowest point the parabola would rise again as the clock falls; power does not.
  const double vertex = quadratic_ > 0 ? linear_ / (2 * quadratic_) : 1.0;
  const double at = d > 0 && vertex > 0 ? std::min(d, vertex) : d;
  return 1 - linear_ * at + quadratic_ * at * at;
}

double ResponseFit::power_ratio(Hertz sm) const {
  const auto right = std::ranges::lower_bound(off_parabola_, sm, {}, &Offset::sm);
  double offset = 0;
  if (right == off_parabola_.begin()) {
    offset = right->power;
  } else if (right != off_parabola_.end()) {
    const Offset& left = *(right - 1);
    offset = left.power + (right->power - left.power) * ((sm - left.sm) / (right->sm - left.sm));
  }
  return std::max(0.05, parabola(sm) + offset);
}

}  // namespace gpoeo::policy
