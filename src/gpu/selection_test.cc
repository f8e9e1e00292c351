// SPDX-License-Identifier: Apache-2.0
#include "gpu/selection.h"

#include <gmock/gmock.h>

#include <map>

namespace gpoeo::gpu {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

std::vector<DeviceIdentity> cards(const std::string& last_name = "A100") {
  return {{0, "GPU-aaaa1111-0", "A100", "00000000:07:00.0"},
          {1, "GPU-aaaa2222-0", "A100", "00000000:0F:00.0"},
          {2, "GPU-bbbb3333-0", last_name, "00000001:47:00.0"}};
}

EnvironmentLookup environment(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const char* name) -> std::optional<std::string> {
    const auto it = variables.find(name);
    return it == variables.end() ? std::nullopt : std::optional(it->second);
  };
}

struct Case {
  std::optional<std::string> option;
  std::map<std::string, std::string> variables;
  std::vector<unsigned> indices;
};

TEST(Selection, FindsTheJobsGpus) {
  const Case kCases[] = {
      {std::nullopt, {}, {0, 1, 2}},
      {"all", {{"CUDA_VISIBLE_DEVICES", "1"}}, {0, 1, 2}},
      {"1", {}, {1}},
      {"2,0", {}, {2, 0}},
      {"0, 0", {}, {0}},
      {"GPU-aaaa2", {}, {1}},
      {"gpu-BBBB", {}, {2}},
      {"0F:00.0", {}, {1}},
      {"0000:07:00.0", {}, {0}},
      {"00000001:47:00.0", {}, {2}},
      {"0001:47:00.0", {}, {2}},
      {std::nullopt, {{"CUDA_VISIBLE_DEVICES", "2,1"}}, {2, 1}},
      {std::nullopt, {{"CUDA_VISIBLE_DEVICES", "GPU-aaaa1"}}, {0}},
      {std::nullopt, {{"CUDA_VISIBLE_DEVICES", ""}}, {}},
      {std::nullopt, {{"CUDA_VISIBLE_DEVICES", "-1"}}, {}},
      {std::nullopt, {{"CUDA_VISIBLE_DEVICES", "NoDevFiles"}}, {}},
      {std::nullopt, {{"CUDA_VISIBLE_DEVICES", "1,-1,0"}}, {1}},
      {std::nullopt, {{"CUDA_VISIBLE_DEVICES", "1,7,0"}}, {1}},
      {std::nullopt, {{"CUDA_VISIBLE_DEVICES", "0,GPU-aaaa,2"}}, {0}},  // two begin so
      {std::nullopt, {{"SLURM_JOB_GPUS", "1,2"}}, {1, 2}},
      {std::nullopt, {{"SLURM_JOB_GPUS", "1,2"}, {"CUDA_VISIBLE_DEVICES", "0"}}, {0}},
      {std::nullopt, {{"SLURM_JOB_GPUS", ""}}, {0, 1, 2}},
  };
  for (const Case& c : kCases) {
    const auto selection = select_gpus(c.option, environment(c.variables), cards());
    const std::string what =
        c.option.value_or("-") + " / " + (c.variables.empty() ? "" : c.variables.begin()->second);
    ASSERT_TRUE(selection) << what << ": " << selection.error().text;
    EXPECT_THAT(selection->indices, ElementsAreArray(c.indices)) << what;
    EXPECT_EQ(selection->warning, "") << what;
  }
}

TEST(Selection, BadEntriesAreNamedWithWhatThereIs) {
  const struct {
    const char* option;
    ErrorKind kind;
    const char* part;
  } kCases[] = {
      {"7", ErrorKind::kNotFound, "no GPU 7: there are 0 GPU-aaaa1111-0"},
      {"99999999999999999999", ErrorKind::kNotFound, "no GPU 9999"},
      {"GPU-cccc", ErrorKind::kNotFound, "no GPU 'GPU-cccc'"},
      {"GPU-aaaa", ErrorKind::kInvalid, "begins the UUID of 2 GPUs"},
      {"MIG-1234", ErrorKind::kNotSupported, "MIG slice"},
      {"99:00.0", ErrorKind::kNotFound, "no GPU at 99:00.0"},
      {"47:00.0", ErrorKind::kNotFound, "no GPU at 47:00.0"},  // that one is in domain 1
      {"1,,2", ErrorKind::kInvalid, "empty entry"},
      {"fast", ErrorKind::kInvalid, "'fast' is no index"},
      {"-1", ErrorKind::kInvalid, "'-1' is no index"},
  };
  for (const auto& c : kCases) {
    const auto selection = select_gpus(c.option, environment({}), cards());
    ASSERT_FALSE(selection) << c.option;
    EXPECT_EQ(selection.error().kind, c.kind) << c.option;
    EXPECT_THAT(selection.error().text, HasSubstr(c.part));
    EXPECT_THAT(selection.error().text, HasSubstr("--gpus"));
  }
}

TEST(Selection, MigSliceInTheEnvironmentIsRefusedWithTheReason) {
  const auto selection =
      select_gpus(std::nullopt, environment({{"CUDA_VISIBLE_DEVICES", "MIG-6b1f"}}), cards());
  EXPECT_EQ(selection.error().kind, ErrorKind::kNotSupported);
  EXPECT_THAT(selection.error().text, HasSubstr("CUDA_VISIBLE_DEVICES"));
}

TEST(Selection, ADeviceNamedTwiceIsWhatCudaRefuses) {
  const auto selection =
      select_gpus(std::nullopt, environment({{"CUDA_VISIBLE_DEVICES", "0,GPU-aaaa1"}}), cards());
  EXPECT_EQ(selection.error().kind, ErrorKind::kInvalid);
}

TEST(Selection, SaysWhenCudasOrderMayDiffer) {
  const auto mixed = cards("RTX 3080 Ti");
  const auto warning_of = [&](std::map<std::string, std::string> variables) {
    return select_gpus(std::nullopt, environment(std::move(variables)), mixed)->warning;
  };
  EXPECT_THAT(warning_of({{"CUDA_VISIBLE_DEVICES", "1"}}), HasSubstr("CUDA_DEVICE_ORDER"));
  EXPECT_THAT(warning_of({{"CUDA_VISIBLE_DEVICES", "1"}, {"CUDA_DEVICE_ORDER", "FASTEST_FIRST"}}),
              HasSubstr("CUDA_DEVICE_ORDER"));
  EXPECT_EQ(warning_of({{"CUDA_VISIBLE_DEVICES", "1"}, {"CUDA_DEVICE_ORDER", "PCI_BUS_ID"}}), "");
  EXPECT_EQ(warning_of({{"CUDA_VISIBLE_DEVICES", "GPU-bbbb"}}), "");
}

TEST(Selection, SaysWhereTheAnswerCameFrom) {
  EXPECT_EQ(select_gpus("0", environment({}), cards())->source, "--gpus");
  EXPECT_EQ(select_gpus(std::nullopt, environment({}), cards())->source, "all GPUs");
}

}  // namespace
}  // namespace gpoeo::gpu
