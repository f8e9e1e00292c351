// SPDX-License-Identifier: Apache-2.0
#include "response/robust.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/result.h"

namespace gpoeo::response {
namespace {

// The median absolute deviation of a normal sample times this is its standard deviation.
constexpr double kMadToSigma = 1.4826;
constexpr double kBiweight = 4.685;

}  // namespace

double median(std::vector<double> values) {
  GPOEO_CHECK(!values.empty());
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

Location densest_half(std::vector<double> values) {
  GPOEO_CHECK(!values.empty());
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2 + 1;
  Location best{.middle = values.front(), .sigma = std::numeric_limits<double>::infinity()};
  for (std::size_t i = 0; i + half <= values.size(); ++i) {
    const double low = values[i];
    const double high = values[i + half - 1];
    if (high - low < best.sigma) best = {(low + high) / 2, high - low};
  }
  if (values.size() == 1) return {values.front(), 0};
  best.sigma *= kMadToSigma / 2 * (1 + 5 / static_cast<double>(values.size()));
  return best;
}

double biweight(double sigmas, double least) {
  const double u = sigmas / kBiweight;
  if (!(std::abs(u) < 1)) return least;
  const double k = 1 - u * u;
  return std::max(least, k * k);
}

std::vector<double> running_median(std::span<const double> y) {
  const std::size_t n = y.size();
  GPOEO_CHECK(n >= 3);
  std::vector<double> m(n);
  for (std::size_t i = 1; i + 1 < n; ++i) {
    const std::size_t reach = std::min({std::size_t{2}, i, n - 1 - i});
    m[i] = median({y.begin() + static_cast<std::ptrdiff_t>(i - reach),
                   y.begin() + static_cast<std::ptrdiff_t>(i + reach + 1)});
  }
  m[0] = median({y[0], m[1], 3 * m[1] - 2 * m[2]});
  m[n - 1] = median({y[n - 1], m[n - 2], 3 * m[n - 2] - 2 * m[n - 3]});
  return m;
}

std::vector<double> pool_non_increasing(std::span<const double> y,
                                        std::span<const double> weights) {
  GPOEO_CHECK(y.size() == weights.size());
  struct Block {
    double mean, weight;
    std::size_t count;
  };
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < y.size(); ++i) {
    blocks.push_back({y[i], weights[i], 1});
    while (blocks.size() > 1 && blocks.back().mean > blocks[blocks.size() - 2].mean) {
      const Block last = blocks.back();
      blocks.pop_back();
      Block& into = blocks.back();
      const double weight = into.weight + last.weight;
      into.mean = (into.mean * into.weight + last.mean * last.weight) / weight;
      into.weight = weight;
      into.count += last.count;
    }
  }
  std::vector<double> z;
  for (const Block& block : blocks) z.insert(z.end(), block.count, block.mean);
  return z;
}

std::vector<double> pool_medians_non_increasing(std::span<const double> y) {
  struct Block {
    std::vector<double> values;
    double middle;
  };
  std::vector<Block> blocks;
  for (const double v : y) {
    blocks.push_back({{v}, v});
    while (blocks.size() > 1 && blocks.back().middle > blocks[blocks.size() - 2].middle) {
      const Block last = std::move(blocks.back());
      blocks.pop_back();
      Block& into = blocks.back();
      into.values.insert(into.values.end(), last.values.begin(), last.values.end());
      into.middle = median(into.values);
    }
  }
  std::vector<double> z;
  for (const Block& block : blocks) z.insert(z.end(), block.values.size(), block.middle);
  return z;
}

}  // namespace gpoeo::response
