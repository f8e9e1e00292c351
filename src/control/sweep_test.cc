// SPDX-License-Identifier: Apache-2.0
// Whole sweeps on virtual time: a simulated A100, its sensors and chance, and the table that its
// job replays.
#include "control/sweep.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "control/sweep_drift.h"
#include "control/testing/twin_progress.h"
#include "gpu/testing/faulty_device.h"
#include "response/response_curve.h"
#include "twin/data_files.h"
#include "twin/testing/fixtures.h"
#include "twin/twin_device.h"

namespace gpoeo::control {
namespace {

using ::testing::HasSubstr;
using testing::TwinProgress;
using twin::testing::expect_ok;

policy::ClockSetting sm(double mhz) { return {.sm = megahertz(mhz)}; }

class Scene {
 public:
  explicit Scene(const char* device = "a100", std::uint64_t seed = 1)
      : bench(twin::testing::device(device), seed), key_(device) {
    std::string name = ::testing::TempDir() + "/gpoeo_sweep_XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    state_dir_ = name;
    journal_ = std::make_unique<Journal>(expect_ok(Journal::open(state_dir_)));
    faulty_ = std::make_unique<gpu::testing::FaultyDevice>(
        expect_ok(twin::open_device(bench.twin, 0, gpu::Access::kControl)), faults);
  }
  ~Scene() {
    sweep.reset();
    std::filesystem::remove_all(state_dir_);
  }
  void start_job(const char* job, std::uint64_t seed = 1) {
    const auto handle = bench.attach(expect_ok(twin::find_job(key_, job)), {.seed = seed});
    job_ = handle;
    progress = std::make_unique<TwinProgress>(bench.twin, handle);
  }
  void stop_job() { ASSERT_TRUE(bench.twin.detach(0, job_).has_value()); }
  void start(std::vector<policy::ClockSetting> order, double soak_s = 0, bool whole = false) {
    constexpr double seconds = 8;
    SweepInput input;
    input.clock = &bench.clock;
    input.gpus.push_back({.device = faulty_.get(), .guard = {}, .trace = {}});
    input.gpus[0].guard.emplace(expect_ok(Guard::acquire(*faulty_, *journal_, {})));
    input.goal = {.least = Seconds(seconds), .longest = Seconds(10 * seconds), .precision = 0};
    input.whole_runs = whole;
    input.soak = Seconds(soak_s);
    sweep = std::make_unique<Sweep>(std::move(input));
    sweep->plan(std::move(order));
    sweep->on_event([this](const std::string& line) { events += line + "\n"; });
    if (!whole) sweep->attach(*progress);
  }
  // One life of a job of so many iterations, as `measure --whole-runs` drives it.
  void whole_run(const char* job, std::int64_t iterations) {
    sweep->begin_run();
    const Instant from = bench.clock.now();
    const auto handle =
        bench.attach(expect_ok(twin::find_job(key_, job)), {.iterations = iterations});
    const auto running = [&] {
      const auto ends = bench.twin.iteration_ends(0, handle, iterations - 1);
      return !ends || ends->empty();
    };
    while (running() && !sweep->over()) pass(0.05);
    const Instant to = bench.clock.now();
    ASSERT_TRUE(bench.twin.detach(0, handle).has_value());
    for (int i = 0; i < 1000 && !sweep->end_run(from, to); ++i) pass(0.05);
  }
  // At most so long.
  void pass(double seconds) {
    const Instant until = bench.clock.now() + to_duration(Seconds(seconds));
    while (bench.clock.now() < until && !sweep->over()) {
      const Instant next = std::min(sweep->step(), until);
      bench.clock.advance(std::max(next - bench.clock.now(), Duration(1'000'000)));
    }
  }
  void reach(std::size_t points) {
    for (int i = 0; i < 3000 && sweep->points().size() < points && !sweep->over(); ++i) pass(0.2);
  }
  std::optional<gpu::ClockRange> lock() {
    return expect_ok(expect_ok(twin::open_device(bench.twin, 0, gpu::Access::kControl))
                         ->controls()
                         ->sm_clock_lock());
  }
  bool journal_left() const { return !journal_->list().empty(); }

  twin::testing::Bench bench;
  gpu::testing::FaultPlan faults;
  std::unique_ptr<TwinProgress> progress;
  std::unique_ptr<Sweep> sweep;
  std::string events;

 private:
  std::string key_;
  std::filesystem::path state_dir_;
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<gpu::Device> faulty_;
  twin::JobHandle job_;
};

TEST(SweepOrder, StartsAndEndsAtDefaultAndComesBackToIt) {
  std::vector<policy::ClockSetting> settings;
  for (int i = 0; i < 10; ++i) settings.push_back(sm(600 + 60 * i));
  const auto order = sweep_order(settings, 2, 4, 7);
  EXPECT_TRUE(order.front().is_default());
  EXPECT_TRUE(order.back().is_default());
  int since = 0;
  std::map<double, int> times;
  for (const auto& setting : order) {
    since = setting.is_default() ? 0 : since + 1;
    EXPECT_LE(since, 4);
    if (setting.sm) ++times[to_mhz(*setting.sm)];
  }
  ASSERT_EQ(times.size(), 10U);
  for (const auto& [mhz, n] : times) EXPECT_EQ(n, 2) << mhz;
  EXPECT_EQ(order, sweep_order(settings, 2, 4, 7));
  EXPECT_NE(order, sweep_order(settings, 2, 4, 8));
}

// What the twin replays comes back out through sensors, noise and drift.
TEST(Sweep, ReproducesTheMeasuredCurveThatTheTwinReplays) {
  const auto data = expect_ok(twin::data_directory());
  const auto table = expect_ok(response::read_response_table(data / "tables" / "a100.csv"));
  for (const char* job : {"LSTM", "stream", "LAMMPS"}) {
    SCOPED_TRACE(job);
    const auto curves = expect_ok(response::WorkloadCurves::fit(*expect_ok(table.find(job))));
    Scene scene;
    scene.start_job(job);
    std::vector<policy::ClockSetting> settings;
    for (double mhz = 510; mhz <= 1410; mhz += 100)
      settings.push_back(sm(510 + 15 * std::round((mhz - 510) / 15)));
    scene.start(sweep_order(settings, 1, 3, 5), 30);
    scene.pass(2000);
    ASSERT_TRUE(scene.sweep->complete()) << scene.sweep->why_stopped();
    EXPECT_FALSE(scene.lock());
    const auto& points = scene.sweep->points();
    std::vector<policy::Observation> observations;
    for (const auto& point : points) observations.push_back(point.observation);
    const Undrifted rows = take_out_drift(observations);
    double time = 0, power = 0, n = 0;  // at default clocks
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (!observations[i].setting.is_default()) continue;
      time += rows.rows[i].time_s, power += rows.rows[i].power_w, ++n;
    }
    double worst_time = 0, worst_power = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (!observations[i].setting.sm) continue;
      response::Setting setting;
      setting.sm_mhz = to_mhz(*observations[i].setting.sm);
      const response::Response truth = curves.at(setting);
      const double t = rows.rows[i].time_s / (time / n) / truth.relative_time - 1;
      const double p = rows.rows[i].power_w / (power / n) / *truth.relative_power - 1;
      worst_time = std::max(worst_time, std::abs(t));
      worst_power = std::max(worst_power, std::abs(p));
    }
    fmt::print("{}: {} points, worst time {:.2f} %, worst power {:.2f} %\n", job, points.size(),
               100 * worst_time, 100 * worst_power);
    // 8 s of 2 % jitter an iteration and a drift of 0.3 % in time and power.
    EXPECT_LT(worst_time, 0.015);
    EXPECT_LT(worst_power, 0.015);
  }
}

TEST(Sweep, ReadsCountersWhereTheCardHasThem) {
  Scene scene("h200");
  scene.start_job("dlrm");
  scene.start(sweep_order({sm(1200)}, 1, 3, 1));
  scene.pass(200);
  ASSERT_TRUE(scene.sweep->complete());
  ASSERT_TRUE(scene.sweep->points()[0].counters.has_value());
  EXPECT_GT(*scene.sweep->points()[0].counters->dram_active, 0.3);
  // Slower, so that a second moves fewer bytes.
  EXPECT_LT(*scene.sweep->points()[1].counters->dram_active,
            *scene.sweep->points()[0].counters->dram_active);
  Scene without("a100");
  without.start_job("LSTM");
  without.start(sweep_order({}, 1, 3, 1));
  without.pass(100);
  ASSERT_TRUE(without.sweep->complete());
  EXPECT_FALSE(without.sweep->points()[0].counters.has_value());
}

TEST(Sweep, SweepsMemoryClocksToo) {
  Scene scene("rtx3080ti");
  scene.start_job("dlrm");
  scene.start(
      {{}, {.memory = megahertz(5001)}, {.sm = megahertz(1200), .memory = megahertz(5001)}, {}});
  scene.pass(300);
  ASSERT_TRUE(scene.sweep->complete()) << scene.sweep->why_stopped();
  const auto& points = scene.sweep->points();
  EXPECT_GT(points[1].observation.time / points[0].observation.time, 1.2);  // memory-bound
  EXPECT_NEAR(points[3].observation.time / points[0].observation.time, 1, 0.02);
}

TEST(Sweep, ReleaseGivesTheClocksBackAndKeepsWhatWasMeasured) {
  Scene scene;
  scene.start_job("LSTM");
  scene.start(sweep_order({sm(600), sm(900)}, 5, 10, 1));
  scene.reach(3);
  scene.pass(3);
  ASSERT_TRUE(scene.lock());
  scene.sweep->release("signal");
  EXPECT_FALSE(scene.lock());
  EXPECT_TRUE(scene.sweep->over());
  EXPECT_FALSE(scene.sweep->complete());
  EXPECT_EQ(scene.sweep->points().size(), 3U);
  EXPECT_TRUE(scene.sweep->finish());
  EXPECT_FALSE(scene.journal_left());
}

TEST(Sweep, AFailedWriteEndsItWithTheReason) {
  Scene scene;
  scene.start_job("LSTM");
  scene.start(sweep_order({sm(600), sm(900)}, 5, 10, 1));
  scene.reach(2);
  scene.faults.fail(gpu::testing::Call::kLockSmClocks, {ErrorKind::kIo, "the driver said no"});
  scene.pass(100);
  EXPECT_TRUE(scene.sweep->over());
  EXPECT_THAT(scene.sweep->why_stopped(), HasSubstr("the driver said no"));
  EXPECT_FALSE(scene.lock());
  EXPECT_GE(scene.sweep->points().size(), 2U);
}

TEST(Sweep, ALostGpuEndsIt) {
  Scene scene;
  scene.start_job("LSTM");
  scene.start(sweep_order({sm(600)}, 5, 10, 1));
  scene.reach(2);
  scene.faults.lose_from();
  scene.pass(100);
  EXPECT_THAT(scene.sweep->why_stopped(), HasSubstr("lost"));
  EXPECT_FALSE(scene.sweep->finish());  // and says that the clocks are not given back
  scene.faults.heal();
  EXPECT_TRUE(scene.sweep->finish());
}

TEST(Sweep, AJobWithoutIterationsIsGivenUp) {
  Scene scene;
  scene.start_job("LSTM");
  scene.progress->hidden = true;
  scene.start(sweep_order({sm(600)}, 1, 10, 1));
  scene.pass(200);
  EXPECT_THAT(scene.sweep->why_stopped(), HasSubstr("iterations can be counted"));
  EXPECT_TRUE(scene.sweep->points().empty());
}

TEST(Sweep, AJobThatIsStartedAgainGoesOnWhereItWas) {
  Scene scene;
  scene.start_job("LSTM");
  scene.start(sweep_order({sm(600), sm(900), sm(1200)}, 1, 10, 1));
  scene.reach(3);
  scene.pass(2);  // in the middle of a window
  scene.stop_job();
  const auto before = std::move(scene.progress);
  scene.start_job("LSTM", 2);
  scene.sweep->attach(*scene.progress);
  EXPECT_FALSE(scene.lock());
  scene.pass(300);
  ASSERT_TRUE(scene.sweep->complete()) << scene.sweep->why_stopped();
  // Five windows and one more look at default clocks.
  EXPECT_EQ(scene.sweep->points().size(), 6U);
  EXPECT_TRUE(scene.sweep->points()[3].observation.setting.is_default());
}

TEST(Sweep, StartsOverWhenAnIterationTurnsOutToBeAnotherThing) {
  Scene scene;
  scene.start_job("LSTM");
  scene.start(sweep_order({sm(600), sm(900)}, 1, 10, 1));
  scene.reach(2);
  scene.progress->every = 4;  // micro-steps before, whole steps now
  ++scene.progress->generation_;
  scene.pass(400);
  ASSERT_TRUE(scene.sweep->complete()) << scene.sweep->why_stopped();
  EXPECT_THAT(scene.events, HasSubstr("starts over"));
  EXPECT_EQ(scene.sweep->points().size(), 4U);
  for (const auto& point : scene.sweep->points()) EXPECT_GT(point.observation.time.value(), 0.4);
}

TEST(Sweep, MeasuresWholeRunsOfAJobWithoutIterations) {
  for (const std::int64_t iterations : {400, 6000}) {  // 47 s, and longer than readings are kept
    SCOPED_TRACE(iterations);
    Scene scene;
    scene.start(sweep_order({sm(600)}, 1, 3, 1), 0, /*whole=*/true);
    for (int i = 0; i < 3; ++i) scene.whole_run("LSTM", iterations);
    ASSERT_TRUE(scene.sweep->complete()) << scene.sweep->why_stopped();
    EXPECT_FALSE(scene.lock());
    const auto& points = scene.sweep->points();
    const auto seconds = [&](int i) {
      return points[static_cast<std::size_t>(i)].observation.time;
    };
    const auto power = [&](int i) {
      const auto& o = points[static_cast<std::size_t>(i)].observation;
      return (o.energy / o.time).value();
    };
    EXPECT_NEAR(seconds(0).value(), 0.1167 * static_cast<double>(iterations),
                0.02 * seconds(0).value());
    EXPECT_NEAR(seconds(1) / seconds(0), 1.18, 0.03);
    EXPECT_NEAR(power(0), 88, 2.5);
    EXPECT_NEAR(power(1), 62, 2.5);
    EXPECT_NEAR(power(2) / power(0), 1, 0.02);
  }
}

policy::Observation seen(double at_s, bool standard, double time_s, double power_w) {
  policy::Observation o;
  if (!standard) o.setting = sm(900);
  o.at = Seconds(at_s);
  o.time = Seconds(time_s);
  o.time_error = Seconds(0.001 * time_s);
  o.energy = Joules(time_s * power_w);
  o.energy_error = Joules(0.001 * time_s * power_w);
  return o;
}

TEST(SweepDrift, TakesOutWhatDefaultClocksShow) {
  std::vector<policy::Observation> observations;
  for (int i = 0; i < 9; ++i) {
    const double drift = 1 + 0.01 * i;  // 8 % over the sweep
    observations.push_back(seen(10 * i, i % 2 == 0, (i % 2 == 0 ? 1.0 : 1.3) * drift, 200));
  }
  const Undrifted rows = take_out_drift(observations);
  EXPECT_GT(rows.time.weight, 0.99);
  for (std::size_t i = 0; i < rows.rows.size(); ++i)
    EXPECT_NEAR(rows.rows[i].time_s / rows.rows[i % 2].time_s, 1, 0.002) << i;
  EXPECT_EQ(rows.power.weight, 0);
  EXPECT_NEAR(rows.rows[3].power_w, 200, 1e-9);
}

TEST(SweepDrift, LeavesNoiseAlone) {
  const double noise[] = {1.0005, 0.9995, 1.001, 0.9992, 1.0004};
  std::vector<policy::Observation> observations;
  for (int i = 0; i < 5; ++i) observations.push_back(seen(10 * i, true, noise[i], 200));
  observations.push_back(seen(60, false, 1.5, 200));
  const Undrifted rows = take_out_drift(observations);
  EXPECT_EQ(rows.time.weight, 0);
  EXPECT_EQ(rows.rows.back().time_s, 1.5);
}

}  // namespace
}  // namespace gpoeo::control
