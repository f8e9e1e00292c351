// SPDX-License-Identifier: Apache-2.0
// What a policy may choose from when a job has several cards, of one kind or of two.
#include "control/problem.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "twin/testing/fixtures.h"
#include "twin/twin_device.h"

namespace gpoeo::control {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using twin::testing::device;
using twin::testing::expect_ok;

class Cards {
 public:
  explicit Cards(const std::vector<twin::DeviceModel>& models) : twin_(clock_, "test") {
    for (unsigned i = 0; i < models.size(); ++i) {
      twin_.add_card(models[i], i + 1);
      devices.push_back(expect_ok(twin::open_device(twin_, i, gpu::Access::kControl)));
      channels.push_back(std::make_unique<GpuChannel>(
          GpuInput{.device = devices.back().get(), .guard = {}, .trace = {}}, clock_));
    }
  }

 private:
  VirtualClock clock_;
  twin::Twin twin_;

 public:
  std::vector<std::unique_ptr<gpu::Device>> devices;
  std::vector<std::unique_ptr<GpuChannel>> channels;
};

TEST(Problem, CardsOfOneKindAreAsOne) {
  const Cards one({device("a100")}), two({device("a100"), device("a100")});
  EXPECT_TRUE(check_alike(one.devices));
  EXPECT_TRUE(check_alike(two.devices));
  EXPECT_FALSE(choices(one.channels).sm_clocks.empty());
  EXPECT_EQ(choices(two.channels).sm_clocks, choices(one.channels).sm_clocks);
}

TEST(Problem, CardsOfTwoKindsHaveNoClocksInCommonAndAreNamed) {
  for (const auto& models :
       {std::vector{device("a100"), device("v100")}, std::vector{device("v100"), device("a100")}}) {
    const Cards cards(models);
    const Status alike = check_alike(cards.devices);
    ASSERT_FALSE(alike);
    EXPECT_EQ(alike.error().kind, ErrorKind::kNotSupported);
    for (const auto& card : cards.devices) {
      EXPECT_THAT(alike.error().text, HasSubstr(card->identity().name));
    }
    EXPECT_THAT(alike.error().text, HasSubstr("--gpus"));
    EXPECT_THAT(choices(cards.channels).sm_clocks, IsEmpty());
    EXPECT_FALSE(choices(cards.channels).power);
    EXPECT_THAT(choices(cards.channels).memory_gears, IsEmpty());
  }
}

TEST(Problem, OtherMemoryClocksCostTheMemoryGearsOnly) {
  auto other = device("rtx3080ti");
  ASSERT_GT(other.memory_clock_count, 1);
  --other.memory_clock_count;
  const Cards same({device("rtx3080ti"), device("rtx3080ti")}), cards({device("rtx3080ti"), other});
  ASSERT_FALSE(choices(same.channels).memory_gears.empty());
  EXPECT_TRUE(check_alike(cards.devices));
  EXPECT_EQ(choices(cards.channels).sm_clocks, choices(same.channels).sm_clocks);
  EXPECT_THAT(choices(cards.channels).memory_gears, IsEmpty());
}

}  // namespace
}  // namespace gpoeo::control
