// SPDX-License-Identifier: Apache-2.0
#include "iteration/comb.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "iteration/spectrum.h"

namespace gpoeo::iteration {
namespace {

constexpr int kMultiples = 4;
// Lags in samples up to which the teeth of a short period are considered.
constexpr double kTeethSpan = 60;
constexpr double kOnSample = 0.12;
constexpr std::size_t kLeastLag = 2;
constexpr std::size_t kPerOctave = 6;

class Correlation {
 public:
  explicit Correlation(std::span<const double> r) : r_(r), sum_(r.size() + 1, 0.0) {
    for (std::size_t i = 0; i < r.size(); ++i) sum_[i + 1] = sum_[i] + r[i];
  }
  double longest() const { return static_cast<double>(r_.size() - 1); }
  double operator[](std::size_t lag) const { return r_[lag]; }
  std::size_t size() const { return r_.size(); }

  double mean(double from, double to) const {
    const auto a = static_cast<std::size_t>(std::max(0.0, std::round(from)));
    const auto b = std::min(r_.size(), static_cast<std::size_t>(std::round(to)) + 1);
    return b > a ? (sum_[b] - sum_[a]) / static_cast<double>(b - a) : 0;
  }

  struct Peak {
    double lag = 0, height = 0;
  };
  // The highest point within `reach` of `lag`, between samples.
  Peak peak(double lag, double reach) const {
    Peak best{lag, sample_between(r_, lag)};
    for (double step = reach / 2; step > 0.02; step /= 2) {
      for (const double at : {best.lag - step, best.lag + step}) {
        if (std::abs(at - lag) > reach || at > longest()) continue;
        const double height = sample_between(r_, at);
        if (height > best.height) best = {at, height};
      }
    }
    return best;
  }

 private:
  std::span<const double> r_;
  std::vector<double> sum_;
};

double strength_of(double mean_height, double around) {
  return std::clamp((mean_height - around) / std::max(0.05, 1 - around), 0.0, 1.0);
}

// The multiples of a period (in samples) at which its strength is measured: the first few. Of a
// short period those that fall on whole samples, where the harmonics above the Nyquist frequency
// count too (their aliases come back in phase there).
std::vector<int> choose_teeth(double period, double longest) {
  const int first = static_cast<int>(
      std::min(longest / period, std::max<double>(kMultiples, kTeethSpan / period)));
  std::vector<int> teeth(static_cast<std::size_t>(first));
  std::iota(teeth.begin(), teeth.end(), 1);
  if (first <= kMultiples) return teeth;
  const auto off_sample = [&](int tooth) { return std::abs(std::remainder(tooth * period, 1.0)); };
  std::ranges::stable_sort(teeth, {}, off_sample);
  teeth.resize(kMultiples);
  while (teeth.size() > 2 && off_sample(teeth.back()) > kOnSample) teeth.pop_back();
  return teeth;
}

// Follows the comb from its first tooth; each one refines the period for the next.
Comb follow(const Correlation& r, double first_lag, double step_s) {
  double period = first_lag;
  int k = 0;
  while (k < kMultiples && (k + 1) * period <= r.longest()) {
    const double reach = k == 0 ? std::min(1.0, period / 4) : std::min(1.5, period / 4);
    ++k;
    period = r.peak(k * period, reach).lag / k;
  }
  if (k == 0) return {};

  const std::vector<int> teeth = choose_teeth(period, r.longest());
  double heights = 0;
  for (const int tooth : teeth) {
    heights += r.peak(tooth * period, std::min(0.7, period / 4)).height;
  }
  const double last = *std::ranges::max_element(teeth);
  const double around = r.mean(period / 2, (last + 0.5) * period);
  return {period * step_s, strength_of(heights / static_cast<double>(teeth.size()), around), k};
}

// A cheap guess of a comb's strength, from whole samples.
double rough_strength(const Correlation& r, std::size_t lag) {
  double heights = 0;
  int k = 0;
  for (; k < kMultiples && (static_cast<std::size_t>(k) + 1) * lag < r.size() - 1; ++k) {
    const std::size_t at = (static_cast<std::size_t>(k) + 1) * lag;
    heights += std::max({r[at - 1], r[at], r[at + 1]});
  }
  if (k == 0) return 0;
  const double period = static_cast<double>(lag);
  return strength_of(heights / k, r.mean(period / 2, (k + 0.5) * period));
}

}  // namespace

std::vector<Comb> find_combs(std::span<const double> autocorrelation, double step_s) {
  const Correlation r(autocorrelation);
  struct Guess {
    std::size_t lag;
    double strength;
  };
  // Long lags have many peaks, all multiples of the same rhythm; a quota for each octave keeps them
  // from crowding out the short ones.
  std::vector<std::vector<Guess>> octaves;
  for (std::size_t lag = kLeastLag; lag + 1 < r.size(); ++lag) {
    if (r[lag] < r[lag - 1] || r[lag] <= r[lag + 1] || r[lag] <= 0) continue;
    const auto octave = static_cast<std::size_t>(std::bit_width(lag));
    if (octaves.size() <= octave) octaves.resize(octave + 1);
    octaves[octave].push_back({lag, rough_strength(r, lag)});
  }
  std::vector<Comb> combs;
  for (auto& guesses : octaves) {
    const auto kept = std::min(kPerOctave, guesses.size());
    std::ranges::partial_sort(guesses, guesses.begin() + static_cast<std::ptrdiff_t>(kept),
                              std::ranges::greater{}, &Guess::strength);
    for (std::size_t i = 0; i < kept; ++i) {
      combs.push_back(follow(r, static_cast<double>(guesses[i].lag), step_s));
    }
  }
  std::ranges::sort(combs, std::ranges::greater{}, &Comb::strength);
  return combs;
}

Nesting nesting(std::span<const double> autocorrelation, double step_s, double period_s,
                int factor) {
  Nesting result;
  int others = 0;
  double squares = 0;
  const double period = period_s / step_s;
  const double longest = static_cast<double>(autocorrelation.size() - 1);
  for (int k = 1; k * period <= longest; ++k) {
    const double height = sample_between(autocorrelation, k * period);
    if (k % factor == 0) {
      result.at_step += height;
      ++result.steps;
    } else {
      result.between += height;
      squares += height * height;
      ++others;
    }
  }
  if (result.steps > 0) result.at_step /= result.steps;
  if (others > 0) {
    result.between /= others;
    result.spread = std::sqrt(std::max(0.0, squares / others - result.between * result.between));
  }
  return result;
}

}  // namespace gpoeo::iteration
