// SPDX-License-Identifier: Apache-2.0
#include "bench/suite.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "bench/table_device.h"
#include "response/response_curve.h"
#include "response/response_table.h"
#include "twin/data_files.h"
#include "twin/device_spec.h"
#include "twin/job_suite.h"

namespace gpoeo::bench {
namespace {

// Any length will do: the seed sets it.
constexpr double kPlaceholderPeriodS = 1.0;

Status add_workloads(Suite& suite, const response::ResponseTable& table, std::size_t device,
                     const std::string& prefix) {
  GPOEO_TRY(auto fitted, response::fit_all(table));
  for (response::WorkloadCurves& curves : fitted) {
    const std::string name = prefix + curves.name();
    const auto family = suite.families.find(curves.name());
    auto shared = std::make_shared<const response::WorkloadCurves>(std::move(curves));
    twin::JobSpec job = twin::measured_job(name, shared, kPlaceholderPeriodS);
    suite.subjects.push_back({.name = name,
                              .job = std::move(job),
                              .device = device,
                              .family = family != suite.families.end() ? family->second : name});
  }
  return {};
}

struct Shipped {
  const char* name;
  const char* table;
  const char* device;
  const char* origin;
};
constexpr Shipped kShipped[] = {
    {"a100-measured", "a100", "a100", "replayed: measured on an NVIDIA A100"},
    {"titanx-measured", "titanx", "titanx", "replayed: measured on an NVIDIA GTX Titan X"},
};

Result<Suite> shipped_table(const Shipped& shipped) {
  GPOEO_TRY(const auto data, twin::data_directory());
  const auto path = data / "tables" / (std::string(shipped.table) + ".csv");
  GPOEO_TRY(const auto table, response::read_response_table(path));
  GPOEO_TRY(auto device, twin::find_device(shipped.device));
  drop_unmeasured_clocks(device, table);
  Suite suite{.name = shipped.name, .origin = shipped.origin, .devices = {device}, .subjects = {}};
  GPOEO_TRY(suite.families, model::read_families(data / "tables" / "families.csv"));
  GPOEO_TRY_STATUS(add_workloads(suite, table, 0, ""));
  suite.tables.push_back({table, 0});
  return suite;
}

// Four cards, whose power limit is the only knob.
constexpr const char* kZeusSuite = "zeus-power-measured";
constexpr const char* kZeusCards[] = {"a40", "v100", "p100", "rtx6000"};

Result<Suite> zeus_tables() {
  GPOEO_TRY(const auto data, twin::data_directory());
  Suite suite{.name = kZeusSuite,
              .origin = "replayed: measured by the Zeus authors on an A40, V100, P100 and RTX 6000",
              .devices = {},
              .subjects = {}};
  for (const char* card : kZeusCards) {
    const auto path = data / "tables" / fmt::format("zeus_{}.csv", card);
    GPOEO_TRY(const auto table, response::read_response_table(path));
    GPOEO_TRY(const auto device, device_for_table(table, card));
    suite.devices.push_back(device);
    GPOEO_TRY_STATUS(
        add_workloads(suite, table, suite.devices.size() - 1, fmt::format("{}/", card)));
  }
  return suite;
}

Result<Suite> generated(std::string_view name) {
  GPOEO_TRY(auto jobs, twin::find_suite(name));
  GPOEO_TRY(const auto device, twin::find_device(jobs.device));
  Suite suite{.name = jobs.name,
              .origin = "generated, not measured: " + jobs.about,
              .devices = {device},
              .subjects = {}};
  for (twin::SuiteJob& job : jobs.jobs) {
    suite.subjects.push_back({.name = job.spec.name,
                              .job = std::move(job.spec),
                              .own_period = true,
                              .own_noise = true,
                              .family = std::move(job.family)});
  }
  return suite;
}

}  // namespace

std::vector<std::string> suite_names() {
  std::vector<std::string> names;
  for (const Shipped& shipped : kShipped) names.emplace_back(shipped.name);
  names.emplace_back(kZeusSuite);
  if (const auto jobs = twin::suite_names()) names.insert(names.end(), jobs->begin(), jobs->end());
  return names;
}

Result<Suite> load_suite(std::string_view name) {
  for (const Shipped& shipped : kShipped) {
    if (shipped.name == name) return shipped_table(shipped);
  }
  if (name == kZeusSuite) return zeus_tables();
  const auto names = suite_names();
  if (std::ranges::find(names, name) != names.end()) return generated(name);
  return make_error(ErrorKind::kNotFound,
                    fmt::format("no suite '{}'; there are {}, or give a table with --table", name,
                                fmt::join(names, ", ")));
}

Result<Suite> suite_of_table(const std::filesystem::path& path,
                             const std::optional<std::string>& device_name) {
  GPOEO_TRY(const auto table, response::read_response_table(path));
  Suite suite{.name = path.filename().string(),
              .origin = "replayed: " + path.filename().string(),
              .devices = {},
              .subjects = {}};
  if (device_name) {
    GPOEO_TRY(auto device, twin::find_device(*device_name));
    drop_unmeasured_clocks(device, table);
    suite.devices.push_back(device);
  } else {
    GPOEO_TRY(const auto device, device_for_table(table, path.stem().string()));
    suite.devices.push_back(device);
  }
  GPOEO_TRY_STATUS(add_workloads(suite, table, 0, ""));
  if (suite.devices.front().limit_step_w <= 0) suite.tables.push_back({table, 0});
  return suite;
}

Status keep_only(Suite& suite, const std::vector<std::string>& names) {
  if (names.empty()) return {};
  std::vector<Subject> kept;
  for (const std::string& name : names) {
    const auto found = std::ranges::find(suite.subjects, name, &Subject::name);
    if (found == suite.subjects.end()) {
      std::vector<std::string> there;
      for (const Subject& subject : suite.subjects) there.push_back(subject.name);
      return make_error(ErrorKind::kNotFound,
                        fmt::format("no workload '{}' in {}; there are {}", name, suite.name,
                                    fmt::join(there, ", ")));
    }
    kept.push_back(*found);
  }
  suite.subjects = std::move(kept);
  return {};
}

}  // namespace gpoeo::bench
