// SPDX-License-Identifier: Apache-2.0
#include "policy/gpoeo_paper.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "policy/cubic_fit.h"
#include "policy/replay.h"

namespace gpoeo::policy {
namespace {

// Five periods of a trace that is 10 s long at least, as after a stable detection.
constexpr MeasureGoal kTrace{
    .least_iterations = 5, .least = Seconds(10), .longest = Seconds(82), .precision = 0.0};
// All as published; see ALGORITHMS 5 of the paper's own code for shares.
constexpr double kWide = 0.15, kNarrow = 0.10;        // radius, of the gears
constexpr double kClearly = 0.85;                     // so much better moves the centre
constexpr double kUpperSide = 0.8, kLowerSide = 1.2;  // of the limit
constexpr double kMemoryGivesUp = 0.161;              // slow-down at which no other memory is tried
constexpr int kSmallestShare = 17;                    // stop below 1/17 of the gears (7 of 120)
constexpr int kMostNewProbes = 6;
constexpr double kSection = 0.382;

struct Probed {
  Look look;
  double reward;
  double slowdown() const { return look.time - 1; }
};

class Search {
 public:
  Search(const Replay& replay, const GpoeoPaperOptions& options)
      : replay_(replay), problem_(replay.problem()), options_(options) {
    limit_ = (options.published_reward ? 0.9 : 1.0) * problem_.max_slowdown;
  }

  Known<Decision> run() {
    gears_ = problem_.sm_clocks;
    const ClockSetting predicted = predict();
    GPOEO_TRY(memory_, search_memory(predicted));
    // A slower memory clock may come with fewer SM clocks.
    for (const MemoryGear& gear : problem_.memory_gears) {
      if (memory_ == gear.memory) gears_ = gear.sm_clocks;
    }
    keep_usable_gears();
    if (gears_.size() < 4) return hold({}, "too few SM clocks to search");
    return search_sm(nearest_gear(predicted.sm.value_or(gears_.back())));
  }

 private:
  double reward_of(const Look& look) const {
    return options_.published_reward ? replay_.reward(look, Objective::kEd2p)
                                     : replay_.reward(look);
  }
  bool feasible(const Probed& p) const { return p.slowdown() <= limit_; }
  // Both feasible: the lower reward; neither: the faster; else the feasible one.
  bool better(const Probed& a, const Probed& b) const {
    if (feasible(a) && feasible(b)) return a.reward < b.reward;
    if (feasible(a) != feasible(b)) return feasible(a);
    return a.slowdown() < b.slowdown();
  }

  void keep_usable_gears() {
    const double lowest = options_.lowest * problem_.sm_clocks.back().value();
    std::erase_if(gears_, [&](Hertz f) { return f.value() < lowest; });
  }
  int nearest_gear(Hertz f) const {
    const auto at =
        std::ranges::min_element(gears_, {}, [&](Hertz g) { return std::abs((g - f).value()); });
    return static_cast<int>(at - gears_.begin());
  }
  ClockSetting setting(int gear) const {
    ClockSetting s;
    s.memory = memory_;
    const Hertz f = gears_[static_cast<std::size_t>(gear)];
    if (memory_ || f < problem_.sm_clocks.back()) s.sm = f;
    return s;
  }

  // The feasible prediction of the lowest reward.
  ClockSetting predict() const {
    ClockSetting best;
    double least = 1;
    for (const Prediction& p : problem_.prior) {
      if (p.time > 1 + limit_ || p.setting.power_limit) continue;
      const double reward = reward_of({.time = p.time, .energy = p.energy});
      if (reward < least) {
        least = reward;
        best = p.setting;
      }
    }
    if (problem_.prior.empty()) best.sm = problem_.sm_clocks.back() * options_.start_without_prior;
    return best;
  }

  Known<Probed> probe(const ClockSetting& s, const char* why) {
    GPOEO_TRY(const Look look, replay_.probe(s, why));
    return Probed{look, reward_of(look)};
  }
  Known<Probed> probe(int gear, const char* why) {
    if (const auto known = probed_.find(gear); known != probed_.end()) return known->second;
    GPOEO_TRY(const Probed p, probe(setting(gear), why));
    probed_[gear] = p;
    return p;
  }

  // At the predicted SM clock: the predicted memory clock, then its neighbours.
  Known<std::optional<Hertz>> search_memory(const ClockSetting& predicted) {
    if (problem_.memory_gears.empty()) return std::nullopt;
    std::vector<std::optional<Hertz>> memories;  // ascending, the default last
    for (const MemoryGear& gear : problem_.memory_gears) memories.emplace_back(gear.memory);
    std::ranges::sort(memories);
    memories.emplace_back(std::nullopt);
    const int top = static_cast<int>(memories.size()) - 1;
    const int centre =
        static_cast<int>(std::ranges::find(memories, predicted.memory) - memories.begin());
    std::optional<Probed> best;
    std::optional<Hertz> chosen;
    const auto look = [&](int m) -> Known<double> {
      GPOEO_TRY(const Probed p, probe(with_memory(predicted.sm, memories[idx(m)]), "memory clock"));
      if (!best || better(p, *best)) {
        best = p;
        chosen = memories[idx(m)];
      }
      return p.slowdown();
    };
    GPOEO_TRY(const double slowdown, look(std::min(centre, top)));
    std::vector<int> others;
    if (slowdown >= kLowerSide * limit_) {
      for (int m = top; m > centre && others.size() < 2; --m) others.push_back(m);
    } else if (centre >= top) {
      others = {top - 1, top - 2};
    } else if (centre == 0) {
      others = {2, 1};
    } else {
      others = {centre + 1, centre - 1};
    }
    for (const int m : others) {
      if (m < 0 || m > top) continue;
      GPOEO_TRY(const double slower, look(m));
      if (slower > kMemoryGivesUp) break;
    }
    if (!best || !feasible(*best)) return std::nullopt;  // none feasible: the highest clock
    return chosen;
  }
  // The clock of that memory's own table next to the predicted one.
  ClockSetting with_memory(std::optional<Hertz> sm, std::optional<Hertz> memory) const {
    ClockSetting s{.sm = {}, .memory = memory, .power_limit = {}};
    const std::vector<Hertz>* clocks = &problem_.sm_clocks;
    for (const MemoryGear& gear : problem_.memory_gears) {
      if (memory == gear.memory) clocks = &gear.sm_clocks;
    }
    const Hertz wanted = sm.value_or(clocks->back());
    const Hertz f = *std::ranges::min_element(
        *clocks, {}, [&](Hertz g) { return std::abs((g - wanted).value()); });
    if (memory || f < problem_.sm_clocks.back()) s.sm = f;
    return s;
  }

  Known<Decision> search_sm(int centre) {
    const int top = static_cast<int>(gears_.size()) - 1;
    const int radius =
        std::max(1, static_cast<int>(std::lround((memory_ ? kWide : kNarrow) * (top + 1))));
    GPOEO_TRY(const Probed first, probe(centre, "predicted clock"));
    int low = centre, high = centre;
    if (first.slowdown() >= kUpperSide * limit_) {
      GPOEO_TRY(high, bound_above(centre, low, radius));
    }
    if (first.slowdown() <= kLowerSide * limit_) {
      GPOEO_TRY(low, bound_below(centre, high, radius));
    }
    GPOEO_TRY_STATUS(golden_section(low, high, centre));
    return choose();
  }

  // Steps up until nothing gets better there; much better moves the centre along.
  Known<int> bound_above(int& centre, int& low, int radius) {
    const int top = static_cast<int>(gears_.size()) - 1;
    for (int gear = centre; gear < top;) {
      gear = std::min(top, gear + radius);
      GPOEO_TRY(const Probed p, probe(gear, "upper bound"));
      const Probed& middle = probed_.at(centre);
      if (!better(p, middle)) return gear;
      if (p.reward < kClearly * middle.reward || !feasible(middle)) {
        low = centre;
        centre = gear;
      }
    }
    return top;
  }

  Known<int> bound_below(int& centre, int& high, int radius) {
    constexpr double kGoodEnough = 0.75;  // of the default's reward
    for (int gear = centre; gear > 0;) {
      gear = std::max(0, gear - radius);
      GPOEO_TRY(const Probed p, probe(gear, "lower bound"));
      const Probed& middle = probed_.at(centre);
      if (!better(p, middle) || !feasible(p)) return gear;
      if (p.reward < kClearly * middle.reward) {
        high = centre;
        centre = gear;
      }
      if (p.reward < kGoodEnough) return gear;
    }
    return 0;
  }

  std::expected<void, Decision> golden_section(int low, int high, int middle) {
    const int smallest = std::max(2, static_cast<int>(gears_.size()) / kSmallestShare);
    const std::size_t before = probed_.size();
    const auto fresh = [&] { return static_cast<int>(probed_.size() - before); };
    const auto section = [](int from, int to) {
      return from + static_cast<int>(std::lround(kSection * (to - from)));
    };
    if (high - low >= smallest && (middle <= low || middle >= high)) {
      middle = middle <= low ? section(high, low) : section(low, high);
      GPOEO_TRY_STATUS(probe(middle, "golden section"));
    }
    while (high - low >= smallest && fresh() < kMostNewProbes) {
      const bool up = high - middle > middle - low;
      const int point = up ? section(middle, high) : section(middle, low);
      if (point == middle || point == low || point == high) break;
      GPOEO_TRY(const Probed p, probe(point, "golden section"));
      const bool moves = better(p, probed_.at(middle));
      (up == moves ? low : high) = moves ? middle : point;
      if (moves) middle = point;
    }
    return {};
  }

  // Cubics through the probes, and the best gear that they predict.
  Decision choose() const {
    std::vector<double> x, times, energies;
    for (const auto& [gear, p] : probed_) {
      x.push_back(gear);
      times.push_back(p.look.time);
      energies.push_back(p.look.energy);
    }
    const CubicFit time(x, times), energy(x, energies);
    std::optional<int> best;
    Probed expected{};
    for (int gear = probed_.begin()->first; gear <= probed_.rbegin()->first; ++gear) {
      const Look look{.time = time.at(gear), .energy = energy.at(gear)};
      const Probed p{look, reward_of(look)};
      if (!feasible(p) || (best && p.reward >= expected.reward)) continue;
      best = gear;
      expected = p;
    }
    if (!best) return hold({}, "no clock within the limit: the highest");
    return hold(setting(*best),
                fmt::format("{:.1f} % less energy at {:+.1f} % time fitted",
                            100 * (1 - expected.look.energy), 100 * expected.slowdown()));
  }

  static std::size_t idx(int i) { return static_cast<std::size_t>(i); }

  const Replay& replay_;
  const Problem& problem_;
  const GpoeoPaperOptions& options_;
  double limit_ = 0;
  std::optional<Hertz> memory_;
  std::vector<Hertz> gears_;
  std::map<int, Probed> probed_;
};

}  // namespace

Decision GpoeoPaper::decide(const Problem& problem,
                            std::span<const Observation> observations) const {
  if (problem.sm_clocks.size() < 4) return hold({}, "the driver lists fewer than four SM clocks");
  const Replay replay(problem, observations, kTrace);
  auto decision = Search(replay, options_).run();
  return decision ? *decision : decision.error();
}

}  // namespace gpoeo::policy
