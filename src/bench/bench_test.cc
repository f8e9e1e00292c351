// SPDX-License-Identifier: Apache-2.0
// The judge: reproducible to the byte, right about the best setting, fair about violations, and
// harmless on the page. Short jobs: what policies are worth is bench's to say, not a test's.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "bench/contest.h"
#include "bench/render.h"
#include "bench/suite.h"
#include "bench/truth.h"
#include "control/controller.h"
#include "gpu/testing/faulty_device.h"
#include "twin/testing/fixtures.h"
#include "twin/twin_device.h"

namespace gpoeo::bench {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using twin::testing::expect_ok;

class BenchTest : public ::testing::Test {
 protected:
  BenchTest() {
    std::string name = ::testing::TempDir() + "/gpoeo_bench_XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    folder = name;
  }
  ~BenchTest() override { std::filesystem::remove_all(folder); }
  std::filesystem::path write(const std::string& name, const std::string& text) const {
    std::ofstream(folder / name) << text;
    return folder / name;
  }
  // Time as 1000 / clock up to 8 %; energy falls, then rises again.
  std::filesystem::path table(const std::string& workload = "job") const {
    std::string text = "workload,sm_clock_mhz,mem_clock_mhz,power_limit_w,time_s,power_w\n";
    const std::pair<double, double> time_and_power[] = {
        {1.20, 62}, {1.14, 64}, {1.08, 66}, {1.045, 70}, {1.02, 80}, {1.01, 90}, {1.0, 100}};
    double mhz = 700;
    for (const auto& [t, p] : time_and_power) {
      text += fmt::format("{},{},,,{},{}\n", workload, mhz, 10 * t, p);
      mhz += 50;
    }
    return write("table.csv", text);
  }
  std::filesystem::path folder;
};

ContestOptions short_jobs(unsigned threads = 1) {
  ContestOptions options;
  options.run.job_s = 90;
  options.seeds = 2;
  options.threads = threads;
  return options;
}

Contest contest(const Suite& suite, const std::vector<std::string>& policies,
                const ContestOptions& options) {
  return expect_ok(run_contest(suite, expect_ok(contestants(policies)), options));
}

TEST_F(BenchTest, SameSeedSameBytesWhateverTheThreads) {
  Suite suite = expect_ok(load_suite("a100-measured"));
  ASSERT_TRUE(keep_only(suite, {"LSTM", "dgemm", "stream"}));
  const std::vector<std::string> policies = {"gpoeo", "zeus", "default"};
  std::vector<std::string> said;
  for (const unsigned threads : {1U, 2U, 2U}) {
    const ContestOptions options = short_jobs(threads);
    const Contest c = contest(suite, policies, options);
    const Shown shown{suite, options, c, "gpoeo bench"};
    said.push_back(as_json(shown) + as_text(shown) + as_html(shown));
  }
  EXPECT_EQ(said[0], said[1]);
  EXPECT_EQ(said[1], said[2]);
  ContestOptions other = short_jobs();
  other.first_seed = 50;
  const Contest c = contest(suite, policies, other);
  EXPECT_NE(as_json({suite, other, c, "gpoeo bench"}), said[0]) << "the seed matters";
}

TEST_F(BenchTest, TheOracleIsTheBestSettingWithinTheLimit) {
  const Suite suite = expect_ok(suite_of_table(table(), std::nullopt));
  ASSERT_EQ(suite.subjects.size(), 1U);
  const Truth truth = expect_ok(Truth::of(suite.subjects[0].job, suite.devices[0]));
  ASSERT_EQ(truth.points().size(), 7U) << "the default and six clocks below it";
  EXPECT_DOUBLE_EQ(truth.at({}).time, 1);
  EXPECT_DOUBLE_EQ(truth.at({}).energy, 1);
  for (const TruthPoint& p : truth.points()) EXPECT_EQ(truth.at(p.setting).time, p.response.time);
  policy::ClockSetting s;
  s.sm = megahertz(850);
  EXPECT_NEAR(truth.at(s).time, 1.045, 0.004) << "smoothed";
  EXPECT_NEAR(truth.at(s).energy, 1.045 * 0.70, 0.01);
  s.sm = megahertz(1000);
  EXPECT_EQ(truth.at(s).energy, 1) << "a bound at the default's clock changes nothing";
  const auto best = [&](double limit, policy::Objective objective) {
    return oracle(truth.points(), limit, objective, 0.5, 2);
  };
  EXPECT_EQ(best(0.05, policy::Objective::kEnergy).setting.sm, megahertz(850));
  EXPECT_EQ(best(0.03, policy::Objective::kEnergy).setting.sm, megahertz(900));
  EXPECT_TRUE(best(0.0, policy::Objective::kEnergy).setting.is_default());
  // ED2P: 0.70 * 1.045^3 = 0.80 at 850, 0.66 * 1.08^3 = 0.83 at 800.
  EXPECT_EQ(best(0.2, policy::Objective::kEd2p).setting.sm, megahertz(850));
}

TEST(Truth, ObjectivesFollowTheirFormulas) {
  const Response r{.time = 1.1, .energy = 0.8};
  EXPECT_DOUBLE_EQ(objective_value(policy::Objective::kEnergy, r, 0.5, 2), 0.8);
  EXPECT_DOUBLE_EQ(objective_value(policy::Objective::kEdp, r, 0.5, 2), 0.8 * 1.1);
  EXPECT_DOUBLE_EQ(objective_value(policy::Objective::kEd2p, r, 0.5, 2), 0.8 * 1.1 * 1.1);
  EXPECT_DOUBLE_EQ(objective_value(policy::Objective::kCost, r, 0.25, 2),
                   0.25 * 0.8 + 0.75 * 2 * 1.1);
}

Row row(std::size_t subject, std::uint64_t seed, double net, double steady, double slowdown,
        double oracle_saving) {
  Row r;
  r.subject = subject;
  r.seed = seed;
  r.run.net_saving = net;
  r.run.steady_saving = steady;
  r.run.steady_slowdown = slowdown;
  r.oracle_saving = oracle_saving;
  return r;
}

TEST(Summary, CountsViolationsAndRatios) {
  EXPECT_FALSE(is_violation(0.0549, 0.05));
  EXPECT_TRUE(is_violation(0.0551, 0.05));
  std::vector<Row> rows = {row(0, 1, 0.16, 0.18, 0.04, 0.20), row(0, 2, 0.18, 0.20, 0.056, 0.20),
                           row(1, 1, 0.00, 0.00, 0.00, 0.00), row(1, 2, -0.002, 0.00, 0.00, 0.00)};
  rows[0].run.time_to_hold_s = 30;
  rows[1].run.time_to_hold_s = 50;
  Row failed = row(1, 3, 9, 9, 9, 9);
  failed.error = "it broke";
  rows.push_back(failed);
  const auto all = summarise(rows, 1, {0.05});
  ASSERT_EQ(all.size(), 1U);
  const Summary& s = all[0];
  EXPECT_EQ(s.runs, 4U);
  EXPECT_EQ(s.failed, 1U);
  EXPECT_DOUBLE_EQ(s.violations, 0.25);
  EXPECT_DOUBLE_EQ(s.worst_steady_slowdown, 0.056);
  EXPECT_DOUBLE_EQ(s.worst_net_saving, -0.002);
  EXPECT_NEAR(s.net_ratio, 0.338 / 0.40, 1e-12);
  EXPECT_NEAR(s.steady_ratio, 0.38 / 0.40, 1e-12);
  EXPECT_NEAR(s.net_ratio_each, 0.85, 1e-12) << "where there is something to save";
  EXPECT_DOUBLE_EQ(*s.hold_median_s, 40);
}

TEST_F(BenchTest, TheDefaultPolicyNeitherSavesNorLoses) {
  Suite suite = expect_ok(load_suite("a100-measured"));
  ASSERT_TRUE(keep_only(suite, {"dgemm", "LSTM"}));
  const Contest c = contest(suite, {"default"}, short_jobs());
  for (const Row& r : c.rows) {
    EXPECT_EQ(r.error, "");
    EXPECT_NEAR(r.run.net_saving, 0, 1e-3);
    EXPECT_NEAR(r.run.net_slowdown, 0, 1e-3);
    EXPECT_EQ(r.run.clock_writes, 0U);
    EXPECT_EQ(r.run.steady_saving, 0);
  }
}

TEST_F(BenchTest, AStaticClockIsJudgedByTheTable) {
  const Suite suite = expect_ok(suite_of_table(table(), std::nullopt));
  ContestOptions options = short_jobs();
  options.run.job_s = 1200;
  const Contest c = contest(suite, {"static:850"}, options);
  for (const Row& r : c.rows) {
    EXPECT_EQ(r.run.held.sm, megahertz(850));
    EXPECT_NEAR(r.run.steady_slowdown, 0.045, 0.004);
    // Nearly all of the run is at that clock.
    EXPECT_NEAR(r.run.net_saving, r.run.steady_saving, 0.012);
    EXPECT_NEAR(r.run.net_slowdown, r.run.steady_slowdown, 0.004);
  }
}

TEST_F(BenchTest, PowerLimitsWhereNothingElseCanBeSet) {
  std::string text = "workload,sm_clock_mhz,mem_clock_mhz,power_limit_w,time_s,power_w\n";
  for (const auto& [w, t] :
       {std::pair(100, 13.0), {125, 11.0}, {150, 10.3}, {175, 10.05}, {200, 10.0}}) {
    text += fmt::format("net,default,default,{},{},{}\n", w, t, 0.95 * w);
  }
  const Suite suite = expect_ok(suite_of_table(write("limits.csv", text), std::nullopt));
  ContestOptions options = short_jobs();
  options.run.job_s = 1800;
  const Contest c = contest(suite, {"zeus", "power-limit:150"}, options);
  for (const Row& r : c.rows) {
    ASSERT_EQ(r.error, "");
    ASSERT_TRUE(r.run.held.power_limit);
    EXPECT_FALSE(r.run.held.sm);
    EXPECT_GE(r.run.held.power_limit->value(), 150);
    EXPECT_GT(r.run.steady_saving, 0.05);
    EXPECT_TRUE(r.oracle.setting.power_limit);
  }
}

TEST_F(BenchTest, WorkThatChangesIsNoticedAndJudgedAtItsEnd) {
  Suite suite = expect_ok(load_suite("a100-measured"));
  ASSERT_TRUE(keep_only(suite, {"LSTM", "dgemm"}));
  ContestOptions options = short_jobs();
  options.run.job_s = 900;
  options.shift_by = 1;
  const Contest c = contest(suite, {"gpoeo"}, options);
  for (const Row& r : c.rows) {
    ASSERT_EQ(r.error, "");
    ASSERT_EQ(r.run.resettled_s.size(), 1U);
    ASSERT_TRUE(r.run.resettled_s[0]);
    EXPECT_GT(*r.run.resettled_s[0], 0);
    const std::size_t last = 1 - r.subject;
    EXPECT_EQ(r.run.steady_saving, 1 - c.truths[last].at(r.run.held).energy);
  }
}

TEST_F(BenchTest, ThePageEscapesWhatCameFromOutside) {
  const Suite suite =
      expect_ok(suite_of_table(table("<script>alert('x')</script>&q"), std::nullopt));
  const ContestOptions options = short_jobs();
  const Contest c = contest(suite, {"gpoeo"}, options);
  const std::string page = as_html({suite, options, c, "gpoeo bench --table '<b>'"});
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, Not(HasSubstr("<b>")));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;q"));
  EXPECT_THAT(page, HasSubstr("<svg"));
  EXPECT_EQ(escape_html("a\"b"), "a&quot;b");
}

TEST_F(BenchTest, BadInputsNameTheCure) {
  EXPECT_THAT(load_suite("a100").error().text, HasSubstr("a100-measured"));
  EXPECT_FALSE(suite_of_table(folder / "missing.csv", std::nullopt));
  EXPECT_FALSE(suite_of_table(table(), "no-such-card"));
  Suite suite = expect_ok(suite_of_table(table(), std::nullopt));
  EXPECT_THAT(keep_only(suite, {"other"}).error().text, HasSubstr("job"));
  EXPECT_THAT(contestants({"gpoeo", "wizard"}).error().text, HasSubstr("wizard"));
  EXPECT_FALSE(contestants({}));
  const auto no_knob = write("no_knob.csv",
                             "workload,sm_clock_mhz,mem_clock_mhz,power_limit_w,time_s,power_w\n"
                             "x,default,default,200,1,100\n");
  EXPECT_THAT(suite_of_table(no_knob, std::nullopt).error().text, HasSubstr("no_knob"));
}

TEST_F(BenchTest, ALimitOfNothingIsKept) {
  const Suite suite = expect_ok(suite_of_table(table(), std::nullopt));
  ContestOptions options = short_jobs();
  options.run.job_s = 300;
  options.limits = {0.0};
  for (const char* policy : {"gpoeo", "gpoeo-paper", "odpp"}) {
    for (const Row& r : contest(suite, {policy}, options).rows) {
      EXPECT_LE(r.run.steady_slowdown, 0.005 + 0.006) << policy;
    }
  }
}

// Whatever the driver does, a policy ends with the card as it was found.
TEST_F(BenchTest, EachPolicySurvivesAFaultyCard) {
  for (const char* name :
       {"gpoeo", "gpoeo-paper", "odpp", "zeus", "power-limit:300", "static:1005"}) {
    for (const int nth : {1, 2, 3, 5}) {
      twin::testing::Bench bench(twin::testing::device("a100"));
      const auto job = bench.attach(expect_ok(twin::find_job("a100", "LSTM")));
      static_cast<void>(job);
      gpu::testing::FaultPlan faults;
      gpu::testing::FaultyDevice device(
          expect_ok(twin::open_device(bench.twin, 0, gpu::Access::kControl)), faults);
      const auto journal =
          expect_ok(control::Journal::open(folder / fmt::format("{}{}", name[0], nth)));
      const auto policy = expect_ok(policy::make_policy(name));
      class Ends final : public control::ProgressReader {
       public:
        explicit Ends(twin::Twin& twin, twin::JobHandle handle) : twin_(twin), handle_(handle) {}
        void poll(Instant) override {
          const auto ends = twin_.iteration_ends(0, handle_, next_);
          if (!ends) return;
          next_ += static_cast<std::int64_t>(ends->size());
          for (const auto& e : *ends) ends_.push_back(e.time);
        }
        control::ProgressSource source() const override {
          return control::ProgressSource::kLaunchLog;
        }
        std::vector<Instant> take_ends() override { return std::exchange(ends_, {}); }
        unsigned generation() const override { return 0; }
        std::vector<std::string> take_notes() override { return {}; }

       private:
        twin::Twin& twin_;
        twin::JobHandle handle_;
        std::int64_t next_ = 0;
        std::vector<Instant> ends_;
      } progress(bench.twin, job);
      control::ControllerInput input;
      input.clock = &bench.clock;
      input.progress = &progress;
      input.policy = policy.get();
      control::GpuInput gpu;
      gpu.device = &device;
      gpu.guard.emplace(expect_ok(control::Guard::acquire(device, journal, {})));
      input.gpus.push_back(std::move(gpu));
      faults.fail_nth_write(nth, {ErrorKind::kIo, "the driver says no"});
      control::Controller controller(std::move(input));
      const Instant until = bench.clock.now() + std::chrono::seconds(240);
      while (bench.clock.now() < until) {
        const Instant next = controller.step();
        bench.clock.advance(std::max<Duration>(next - bench.clock.now(), Duration(1'000'000)));
      }
      controller.finish();
      const auto after = expect_ok(twin::open_device(bench.twin, 0, gpu::Access::kControl));
      EXPECT_FALSE(after->controls()->sm_clock_lock().value()) << name << nth;
      EXPECT_FALSE(after->controls()->memory_clock_lock().value()) << name << nth;
      EXPECT_EQ(after->controls()->power_limit_setting().value(), Watts(500)) << name << nth;
      EXPECT_TRUE(journal.list().empty()) << name << nth;
    }
  }
}

}  // namespace
}  // namespace gpoeo::bench
