// SPDX-License-Identifier: Apache-2.0
#include "control/trace_window.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace gpoeo::control {
namespace {

constexpr double kSampling_s = 0.02;
constexpr policy::MeasureGoal kGoal{
    .least_iterations = 8, .least = Seconds(3), .longest = Seconds(20), .precision = 0.003};

Instant at(double s) { return instant_from_ns(1'000'000'000'000) + to_duration(Seconds(s)); }

// Power as a card shows it, with a rhythm of `period_s` (0: none) from one instant to another.
class Card {
 public:
  void run(double from_s, double to_s, double period_s) {
    for (double t = from_s; t < to_s; t += kSampling_s) {
      const double phase = period_s > 0 ? std::fmod(t, period_s) / period_s : 0;
      const double level = period_s > 0 ? (phase < 0.3 ? 120 : phase < 0.8 ? 300 : 240) : 250;
      history.power.push({.time = at(t), .power = Watts(level + 3 * noise_(random_))});
    }
  }
  telemetry::History history;

 private:
  std::mt19937 random_{7};
  std::normal_distribution<> noise_;
};

// Looks each 200 ms until there is an answer, as the loop does.
std::optional<Result<TraceWindow::Timing>> ask(TraceWindow& window, const Card& card, double from_s,
                                               double to_s,
                                               const iteration::PowerTrace* reference) {
  for (double t = from_s; t <= to_s; t += 0.2) {
    // Only what had come by then.
    telemetry::History seen;
    for (std::size_t i = 0; i < card.history.power.size(); ++i) {
      if (card.history.power[i].time <= at(t)) seen.power.push(card.history.power[i]);
    }
    if (auto answer = window.look(seen, at(t), reference)) return answer;
  }
  return std::nullopt;
}

TEST(TraceWindow, TheReferenceIsItsOwnUnit) {
  Card card;
  card.run(0, 60, 0.5);
  TraceWindow window(kGoal, at(5));
  const auto answer = ask(window, card, 5, 60, nullptr);
  ASSERT_TRUE(answer && *answer) << (answer ? answer->error().text : "no answer");
  EXPECT_EQ((*answer)->time_ratio, 1);
  EXPECT_GE(to_seconds((*answer)->to - (*answer)->from).value(), 19)
      << "long enough to compare with";
  EXPECT_EQ((*answer)->from, at(5));
  EXPECT_GT(window.trace().t_s.size(), 900U);
}

TEST(TraceWindow, ALongerIterationIsMeasured) {
  Card card;
  card.run(0, 30, 0.5);
  TraceWindow first(kGoal, at(0));
  ASSERT_TRUE(ask(first, card, 0, 30, nullptr));
  for (const double ratio : {1.0, 1.04, 1.2}) {
    Card slower;
    slower.run(100, 140, 0.5 * ratio);
    TraceWindow window(kGoal, at(100));
    const auto answer = ask(window, slower, 100, 140, &first.trace());
    ASSERT_TRUE(answer && *answer) << ratio;
    EXPECT_NEAR((*answer)->time_ratio, ratio, 4 * (*answer)->error) << ratio;
    EXPECT_LE((*answer)->error, 0.02) << ratio;
    EXPECT_GE((*answer)->error, 0.001) << "no spectrum is surer";
  }
}

TEST(TraceWindow, NothingIsSaidTooEarly) {
  Card card;
  card.run(0, 60, 0.5);
  TraceWindow window(kGoal, at(0));
  EXPECT_FALSE(ask(window, card, 0, 15, nullptr));
  telemetry::History empty;
  EXPECT_FALSE(window.look(empty, at(50), nullptr)) << "no reading, no answer";
}

// Noise has no rhythm: that is an answer, once its time is up, and none before.
TEST(TraceWindow, WithoutARhythmItSaysSoWhenItsTimeIsUp) {
  Card card;
  card.run(0, 60, 0);
  TraceWindow window(kGoal, at(0));
  const auto answer = ask(window, card, 0, 60, nullptr);
  ASSERT_TRUE(answer);
  ASSERT_FALSE(*answer);
  EXPECT_EQ(answer->error().kind, ErrorKind::kInvalid);
  EXPECT_FALSE(answer->error().text.empty());
  EXPECT_GE(window.latest_answer(), at(30));
  for (const double longest : {33.0, 37.0, 47.0}) {
    TraceWindow patient({.least = Seconds(3), .longest = Seconds(longest)}, at(0));
    EXPECT_TRUE(ask(patient, card, 0, longest + 0.5, nullptr))
        << longest << ": no longer than asked";
  }
  TraceWindow again(kGoal, at(0));
  EXPECT_FALSE(ask(again, card, 0, to_seconds(again.latest_answer() - at(0)).value() - 1, nullptr));
}

TEST(TraceWindow, PowerBeforeTheCardHadSettledDoesNotCount) {
  Card card;
  card.run(0, 20, 0.8);  // another rhythm
  card.run(20, 60, 0.5);
  TraceWindow first(kGoal, at(20));
  ASSERT_TRUE(ask(first, card, 20, 60, nullptr));
  TraceWindow window(kGoal, at(25));
  const auto answer = ask(window, card, 25, 60, &first.trace());
  ASSERT_TRUE(answer && *answer);
  EXPECT_NEAR((*answer)->time_ratio, 1, 4 * (*answer)->error);
}

}  // namespace
}  // namespace gpoeo::control
