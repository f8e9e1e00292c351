// SPDX-License-Identifier: Apache-2.0
#include "model/baselines.h"

#include <Eigen/Dense>

#include <cmath>
#include <limits>
#include <utility>

#include "model/booster.h"

namespace gpoeo::model {
namespace {

// The raw counters and power, as a plain model would take them, and the two clocks.
constexpr Feature kRaw[] = {
    Feature::kGrActive,   Feature::kSmActive,   Feature::kSmOccupancy,   Feature::kTensorActive,
    Feature::kDramActive, Feature::kFp64Active, Feature::kFp32Active,    Feature::kFp16Active,
    Feature::kLogPcieTx,  Feature::kLogPcieRx,  Feature::kPowerFraction,
};
constexpr std::size_t kRawCount = std::size(kRaw);
constexpr std::size_t kColumns = kRawCount + 2;
constexpr int kTrees = 300;
constexpr BoosterOptions kPlain{
    .depth = 4, .rate = 0.05, .ridge = 1, .least_weight = 1, .rows = 0.8, .columns = 0.8};

void append_row(const Example& example, const Line& line, std::size_t point, bool counters,
                std::vector<float>& out) {
  for (const Feature f : kRaw) {
    const auto& value = example.features[f];
    out.push_back(counters && value ? static_cast<float>(*value)
                                    : std::numeric_limits<float>::quiet_NaN());
  }
  out.push_back(static_cast<float>(1 / line.sm_slowdown[point]));
  out.push_back(static_cast<float>(1 / line.memory_slowdown));
}

class PlainTrees : public Baseline {
 public:
  PlainTrees(Booster time, Booster energy, bool counters)
      : time_(std::move(time)), energy_(std::move(energy)), counters_(counters) {}

  Result<LogCurves> predict(const Example& example, const Line& line) const override {
    std::vector<float> values;
    for (std::size_t p = 0; p < line.sm_slowdown.size(); ++p)
      append_row(example, line, p, counters_, values);
    GPOEO_TRY(const Rows rows, Rows::make(values, line.sm_slowdown.size(), kColumns));
    GPOEO_TRY(const std::vector<float> time, time_.predict(rows));
    GPOEO_TRY(const std::vector<float> energy, energy_.predict(rows));
    LogCurves out;
    for (const float t : time) out.time.push_back(std::log(std::max(0.05F, t)));
    for (const float e : energy) out.energy.push_back(std::log(std::max(0.05F, e)));
    return out;
  }

 private:
  Booster time_, energy_;
  bool counters_;
};

Result<Booster> train_plain(Rows& rows, const std::vector<float>& labels) {
  GPOEO_TRY_STATUS(rows.set_labels(labels));
  GPOEO_TRY(Booster booster, Booster::make(rows, kPlain));
  for (int round = 0; round < kTrees; ++round) GPOEO_TRY_STATUS(booster.update(rows, round));
  return booster;
}

using Vector = Eigen::VectorXd;

// Inputs, their products with the clock's slow-down, and its square.
Vector ridge_row(const Example& example, const Line& line, std::size_t point) {
  const double slow = line.sm_slowdown[point] - 1;
  const double memory = std::log(line.memory_slowdown);
  Vector row(static_cast<Eigen::Index>(3 + 2 * kRawCount));
  row[0] = slow;
  row[1] = slow * slow;
  row[2] = memory;
  for (std::size_t k = 0; k < kRawCount; ++k) {
    const double value = example.features.or_else(kRaw[k], 0);
    row[static_cast<Eigen::Index>(3 + 2 * k)] = value * slow;
    row[static_cast<Eigen::Index>(4 + 2 * k)] = value * memory;
  }
  return row;
}

class Ridge : public Baseline {
 public:
  explicit Ridge(std::span<const Example> examples) {
    std::vector<Vector> rows;
    std::vector<std::pair<double, double>> targets;
    for (const Example& e : examples)
      for (const Line& line : e.lines)
        for (std::size_t p = 0; p < line.sm_slowdown.size(); ++p) {
          rows.push_back(ridge_row(e, line, p));
          targets.emplace_back(line.log_time[p], line.log_time[p] + line.log_power[p]);
        }
    const auto n = static_cast<Eigen::Index>(rows.size());
    const Eigen::Index columns = rows.front().size();
    Eigen::MatrixXd x(n, columns);
    Eigen::MatrixXd y(n, 2);
    for (Eigen::Index i = 0; i < n; ++i) {
      x.row(i) = rows[static_cast<std::size_t>(i)];
      y(i, 0) = targets[static_cast<std::size_t>(i)].first;
      y(i, 1) = targets[static_cast<std::size_t>(i)].second;
    }
    // Every input is 0 at the default setting, where both answers are 0: no intercept.
    scale_ = (x.colwise().squaredNorm() / static_cast<double>(n)).cwiseSqrt().transpose();
    for (Eigen::Index k = 0; k < columns; ++k)
      if (scale_[k] < 1e-9) scale_[k] = 1;
    x.array().rowwise() /= scale_.transpose().array();
    Eigen::MatrixXd normal = x.transpose() * x / static_cast<double>(n);
    normal.diagonal().array() += 1.0 / static_cast<double>(examples.size());
    weights_ = normal.ldlt().solve(x.transpose() * y / static_cast<double>(n));
  }

  Result<LogCurves> predict(const Example& example, const Line& line) const override {
    LogCurves out;
    for (std::size_t p = 0; p < line.sm_slowdown.size(); ++p) {
      const Vector row = ridge_row(example, line, p).cwiseQuotient(scale_);
      out.time.push_back(row.dot(weights_.col(0)));
      out.energy.push_back(row.dot(weights_.col(1)));
    }
    return out;
  }

 private:
  Vector scale_;
  Eigen::MatrixXd weights_;
};

}  // namespace

Result<std::unique_ptr<Baseline>> train_plain_trees(std::span<const Example> examples,
                                                    bool counters) {
  std::vector<float> values, time, energy;
  std::size_t count = 0;
  for (const Example& e : examples)
    for (const Line& line : e.lines)
      for (std::size_t p = 0; p < line.sm_slowdown.size(); ++p, ++count) {
        append_row(e, line, p, counters, values);
        time.push_back(static_cast<float>(std::exp(line.log_time[p])));
        energy.push_back(static_cast<float>(std::exp(line.log_time[p] + line.log_power[p])));
      }
  GPOEO_TRY(Rows rows, Rows::make(values, count, kColumns));
  GPOEO_TRY(Booster for_time, train_plain(rows, time));
  GPOEO_TRY(Booster for_energy, train_plain(rows, energy));
  return std::make_unique<PlainTrees>(std::move(for_time), std::move(for_energy), counters);
}

std::unique_ptr<Baseline> train_ridge(std::span<const Example> examples) {
  return std::make_unique<Ridge>(examples);
}

}  // namespace gpoeo::model
