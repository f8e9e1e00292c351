// SPDX-License-Identifier: Apache-2.0
#include "iteration/series.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include <Eigen/Dense>

namespace gpoeo::iteration {
namespace {

// Outside the median by more than this many times the distance to the 10 % or 90 % quantile a value
// is an outlier (an idle start, a checkpoint) and would drown the rhythm: it is clipped.
constexpr double kOutlier = 3;
// Spacings longer than this many medians are holes.
constexpr double kHole = 8;
constexpr double kMostHoles = 0.2;
// A start-up or an end is looked for in pieces of this length.
constexpr double kTrimPiece_s = 0.25;

Status check(const PowerTrace& trace, std::size_t first) {
  for (std::size_t i = first; i < trace.t_s.size(); ++i) {
    if (!std::isfinite(trace.t_s[i]) || !std::isfinite(trace.power_w[i])) {
      return make_error(ErrorKind::kInvalid, fmt::format("sample {} is not a finite number", i));
    }
    if (i > first && trace.t_s[i] <= trace.t_s[i - 1]) {
      return make_error(ErrorKind::kInvalid, fmt::format("time does not rise at sample {}", i));
    }
  }
  return {};
}

struct Range {
  double low = 0, high = 0;
};

// A signal of rare pulses has no spread between its quantiles, but half its deviation is there.
Range usual_range(const std::vector<double>& values) {
  const Eigen::Map<const Eigen::ArrayXd> v(values.data(), static_cast<Eigen::Index>(values.size()));
  const double least = std::sqrt((v - v.mean()).square().mean()) / 2;
  const double middle = quantile(values, 0.5);
  return {middle - kOutlier * std::max(least, middle - quantile(values, 0.1)),
          middle + kOutlier * std::max(least, quantile(values, 0.9) - middle)};
}

// Takes off pieces at both ends whose mean is out of the usual range.
void trim(Series& series, const Range& usual) {
  auto& v = series.value;
  const auto piece = static_cast<std::size_t>(std::max(1.0, kTrimPiece_s / series.step_s));
  const auto unusual = [&](auto begin) {
    double sum = 0;
    for (auto i = begin; i != begin + static_cast<std::ptrdiff_t>(piece); ++i) sum += *i;
    const double mean = sum / static_cast<double>(piece);
    return mean < usual.low || mean > usual.high;
  };
  std::size_t begin = 0, end = v.size();
  const std::size_t least = v.size() / 2 + piece;
  while (end - begin > least && unusual(v.begin() + static_cast<std::ptrdiff_t>(begin))) {
    begin += piece;
  }
  while (end - begin > least && unusual(v.begin() + static_cast<std::ptrdiff_t>(end - piece))) {
    end -= piece;
  }
  v.erase(v.begin() + static_cast<std::ptrdiff_t>(end), v.end());
  v.erase(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(begin));
  series.start_s += series.step_s * static_cast<double>(begin);
}

// Takes off the parabola that fits best: thermal drift, not iterations.
void detrend(std::vector<double>& value) {
  const auto n = static_cast<Eigen::Index>(value.size());
  Eigen::Map<Eigen::VectorXd> y(value.data(), n);
  const Eigen::ArrayXd x = Eigen::ArrayXd::LinSpaced(n, -1, 1);
  Eigen::MatrixXd basis(n, 3);
  basis.col(0).setOnes();
  basis.col(1) = x;
  basis.col(2) = x * x;
  const Eigen::Vector3d fit = (basis.transpose() * basis).ldlt().solve(basis.transpose() * y);
  y -= basis * fit;
}

}  // namespace

double quantile(std::vector<double> values, double share) {
  GPOEO_CHECK(!values.empty());
  const auto nth = values.begin() + static_cast<std::ptrdiff_t>(
                                        share * static_cast<double>(values.size() - 1) + 0.5);
  std::ranges::nth_element(values, nth);
  return *nth;
}

double interpolate(std::span<const double> value, double step_s, double t_s) {
  const double at = std::clamp(t_s / step_s, 0.0, static_cast<double>(value.size() - 1));
  const auto below = std::min(static_cast<std::size_t>(at), value.size() - 2);
  const double part = at - static_cast<double>(below);
  return value[below] * (1 - part) + value[below + 1] * part;
}

Result<Series> make_series(const PowerTrace& trace) {
  GPOEO_CHECK(trace.t_s.size() == trace.power_w.size());
  const std::size_t all = trace.t_s.size();
  if (all < kLeastSamples) {
    return make_error(
        ErrorKind::kInvalid,
        fmt::format("{} samples are too few, at least {} are needed", all, kLeastSamples));
  }
  const std::size_t first = all > kMostSamples ? all - kMostSamples : 0;
  GPOEO_TRY_STATUS(check(trace, first));

  std::vector<double> gaps;
  for (std::size_t i = first + 1; i < all; ++i) gaps.push_back(trace.t_s[i] - trace.t_s[i - 1]);
  Series series;
  series.step_s = quantile(gaps, 0.5);
  series.start_s = trace.t_s[first];
  const double duration = trace.t_s.back() - series.start_s;
  double holes = 0;
  for (const double gap : gaps) holes += gap > kHole * series.step_s ? gap : 0;
  if (holes > kMostHoles * duration) {
    return make_error(ErrorKind::kInvalid,
                      fmt::format("{:.0f} % of the time has no samples", 100 * holes / duration));
  }

  const auto n = static_cast<std::size_t>(duration / series.step_s) + 1;
  series.value.reserve(n);
  std::size_t next = first + 1;
  for (std::size_t i = 0; i < n; ++i) {
    const double t = series.start_s + series.step_s * static_cast<double>(i);
    while (next + 1 < all && trace.t_s[next] < t) ++next;
    const double part = (t - trace.t_s[next - 1]) / (trace.t_s[next] - trace.t_s[next - 1]);
    const double low = trace.power_w[next - 1], high = trace.power_w[next];
    series.value.push_back(low + (high - low) * std::clamp(part, 0.0, 1.0));
  }
  const Range usual = usual_range(series.value);
  if (!(usual.high > usual.low)) return make_error(ErrorKind::kInvalid, "the power does not vary");
  trim(series, usual);
  double sum = 0;
  for (double& v : series.value) {
    v = std::clamp(v, usual.low, usual.high);
    sum += v;
  }
  series.mean_w = sum / static_cast<double>(series.value.size());
  detrend(series.value);
  return series;
}

}  // namespace gpoeo::iteration
