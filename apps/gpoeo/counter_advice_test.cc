// SPDX-License-Identifier: Apache-2.0
#include "counter_advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "twin/testing/fixtures.h"
#include "twin/twin_device.h"

namespace gpoeo::app {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// A twin's card that does not say it is one.
class PlainDevice final : public gpu::Device {
 public:
  explicit PlainDevice(const char* card) : bench_(twin::testing::device(card)) {
    inner_ = twin::testing::expect_ok(twin::open_device(bench_.twin, 0, gpu::Access::kReadOnly));
    identity_ = inner_->identity();
    identity_.simulated = false;
  }
  const gpu::DeviceIdentity& identity() const override { return identity_; }
  const gpu::Capabilities& capabilities() const override { return inner_->capabilities(); }
  Result<std::vector<gpu::PowerSample>> power_samples_since(Instant since) override {
    return inner_->power_samples_since(since);
  }
  Result<Watts> power_instant() override { return inner_->power_instant(); }
  Result<Watts> power_average() override { return inner_->power_average(); }
  Result<Joules> energy_counter() override { return inner_->energy_counter(); }
  Result<Hertz> sm_clock() override { return inner_->sm_clock(); }
  Result<Hertz> memory_clock() override { return inner_->memory_clock(); }
  Result<gpu::Utilization> utilization() override { return inner_->utilization(); }
  Result<Celsius> temperature() override { return inner_->temperature(); }
  Result<gpu::EventReasons> event_reasons() override { return inner_->event_reasons(); }
  Result<gpu::Counters> counters() override { return inner_->counters(); }
  Result<std::vector<gpu::ComputeProcess>> compute_processes() override {
    return inner_->compute_processes();
  }
  Result<Watts> power_limit() override { return inner_->power_limit(); }
  gpu::Controls* controls() override { return nullptr; }

 private:
  twin::testing::Bench bench_;
  std::unique_ptr<gpu::Device> inner_;
  gpu::DeviceIdentity identity_;
};

std::filesystem::path params(const char* text) {
  const auto path = std::filesystem::path(::testing::TempDir()) / "gpoeo_params";
  std::ofstream(path) << text;
  return path;
}

Result<std::string> found(const gpu::Device&) { return "libcupti.so.13, chip GA100, 8 passes"; }
Result<std::string> not_found(const gpu::Device&) {
  return make_error(ErrorKind::kNotSupported, "no libcupti of CUDA 12.6 or newer");
}

TEST(CounterAdvice, GpmWhereThereIsAny) {
  const auto advice = advise_on_counters(PlainDevice("h200"), false, &found, "/nonexistent");
  EXPECT_TRUE(advice.ok);
  EXPECT_THAT(advice.text, StartsWith("GPM"));
}

TEST(CounterAdvice, RestrictedProfilingComesWithTheModuleOptionThatCuresIt) {
  const auto file = params("EnableMSI: 1\nRmProfilingAdminOnly: 1\nx: 0\n");
  const auto advice = advise_on_counters(PlainDevice("a100"), false, &found, file);
  EXPECT_FALSE(advice.ok);
  EXPECT_THAT(advice.text, HasSubstr("administrators"));
  EXPECT_THAT(advice.cure, HasSubstr("NVreg_RestrictProfilingToAdminUsers=0"));
  EXPECT_TRUE(advise_on_counters(PlainDevice("a100"), true, &found, file).ok) << "root may";
}

TEST(CounterAdvice, CuptiWhereTheDriverLetsUs) {
  const auto advice =
      advise_on_counters(PlainDevice("a100"), false, &found, params("RmProfilingAdminOnly: 0\n"));
  EXPECT_TRUE(advice.ok);
  EXPECT_THAT(advice.text, StartsWith("CUPTI"));
  EXPECT_THAT(advice.text, HasSubstr("chip GA100")) << "tried, not supposed";
  EXPECT_THAT(advice.text, HasSubstr("Hopper")) << "why not the better one";
  EXPECT_THAT(advice.cure, IsEmpty());
}

TEST(CounterAdvice, ACuptiThatWillNotDoIsToldWithTheReason) {
  const auto advice = advise_on_counters(PlainDevice("a100"), false, &not_found,
                                         params("RmProfilingAdminOnly: 0\n"));
  EXPECT_THAT(advice.text, HasSubstr("12.6"));
}

TEST(CounterAdvice, ADriverThatDoesNotSayIsToldAsThat) {
  for (const auto& file : {std::filesystem::path("/nonexistent"), params("EnableMSI: 1\n")}) {
    const auto advice = advise_on_counters(PlainDevice("a100"), false, &found, file);
    EXPECT_TRUE(advice.ok);
    EXPECT_THAT(advice.text, HasSubstr("does not say"));
  }
}

}  // namespace
}  // namespace gpoeo::app
