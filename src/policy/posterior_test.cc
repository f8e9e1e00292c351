// SPDX-License-Identifier: Apache-2.0
#include "policy/posterior.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "policy/testing/looks.h"

namespace gpoeo::policy {
namespace {

using testing::a100;

const Problem& problem() {
  static const Problem p = a100();
  return p;
}
const std::vector<Candidate>& candidates() {
  static const auto all = candidates_of(problem(), std::nullopt);
  return all;
}

Evidence block(std::size_t candidate, double at_s, double span_s, double log_time,
               double error = 0.001) {
  return {.candidate = candidate,
          .at_s = at_s,
          .span_s = span_s,
          .log_time = log_time,
          .time_variance = error * error,
          .log_power = 5,
          .power_variance = error * error};
}

Posterior time_after(const std::vector<Evidence>& seen) {
  return Posterior(response_priors(problem(), candidates(), seen).time, candidates().size(), seen,
                   &Evidence::log_time, &Evidence::time_variance);
}

// The variance that a lesson promises to take away is what the look then takes away.
TEST(Posterior, ALessonIsWhatTheLookTeaches) {
  const std::vector<Evidence> before = {block(0, 5, 8, 0), block(12, 20, 6, 0.04)};
  for (const std::size_t k : {std::size_t{0}, std::size_t{8}, std::size_t{12}}) {
    const Evidence look = block(k, 40, 10, k == 0 ? 0.0 : k == 8 ? 0.026 : 0.04);
    const Posterior now = time_after(before);
    const Lesson lesson = now.lesson(look);
    auto after_seen = before;
    after_seen.push_back(look);
    const Posterior then = time_after(after_seen);
    for (std::size_t c = 1; c < candidates().size(); c += 7) {
      const double promised =
          lesson.covariance[c] * lesson.covariance[c] / (lesson.variance + look.time_variance);
      const double left = now.error(c) * now.error(c) - promised;
      // The estimate of the drift moves a little too.
      EXPECT_NEAR(then.error(c), std::sqrt(left), 0.1 * std::sqrt(left) + 2e-4) << k << " " << c;
    }
  }
}

TEST(Posterior, AJobThatWandersMoreIsKnownLessWell) {
  std::vector<double> errors;
  for (const double scale : {0.5, 1.0, 4.0}) {
    std::mt19937_64 random(7);
    std::normal_distribution<double> step(0, 0.003 * scale);
    std::vector<Evidence> seen;
    for (int i = 0; i < 24; ++i) {
      const std::size_t k = i % 6 == 0 ? 0 : 10;
      seen.push_back(block(k, 5 + 60.0 * i, 40, (k == 0 ? 0 : 0.03) + step(random), 0.0008));
    }
    errors.push_back(time_after(seen).error(10));
  }
  EXPECT_LE(errors[0], errors[1]);
  EXPECT_GT(errors[2], 1.5 * errors[1]);
}

// Some cards are 2 % faster when left alone than their highest locked clock would be. Two locked
// clocks tell, and then their neighbours are not expected on a line through the default.
TEST(Posterior, TheDefaultMayLieOffTheLine) {
  constexpr double kOff = -0.02;
  const auto line = [](std::size_t k) { return 0.9 * (1 / candidates()[k].level - 1) + kOff; };
  const std::vector<Evidence> seen = {block(0, 5, 10, 0), block(8, 20, 10, line(8)),
                                      block(16, 40, 10, line(16)), block(0, 60, 10, 0)};
  const Posterior time = time_after(seen);
  for (const std::size_t k : {std::size_t{9}, std::size_t{11}, std::size_t{14}}) {
    EXPECT_NEAR(time.mean(k), line(k), 0.005) << k;
  }
  EXPECT_LT(time.mean(3), 0.9 * (1 / candidates()[3].level - 1)) << "not drawn to the default";
}

}  // namespace
}  // namespace gpoeo::policy
