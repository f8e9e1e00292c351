// SPDX-License-Identifier: Apache-2.0
// What `gpoeo bench` runs: jobs, each on a simulated card, from response tables that were measured
// on real ones (replayed) or from job files (generated). Which of the two is always said.
//
// Thread rule: immutable once loaded. Errors: kInvalid / kNotFound with file and cure.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/dataset.h"
#include "response/response_table.h"
#include "twin/device_model.h"
#include "twin/job_spec.h"

namespace gpoeo::bench {

struct Subject {
  std::string name;
  twin::JobSpec job;
  std::size_t device = 0;  // into Suite::devices
  // The job says how long an iteration takes. A table does not: the seed chooses.
  bool own_period = false;
  bool own_noise = false;  // likewise
  std::string family{};    // jobs that resemble one another: left out together
};

// What models are trained on.
struct SuiteTable {
  response::ResponseTable table;
  std::size_t device = 0;
};

struct Suite {
  std::string name;
  std::string origin;  // one line: measured on what, or generated
  std::vector<twin::DeviceModel> devices;
  std::vector<Subject> subjects;
  std::vector<SuiteTable> tables{};
  model::Families families{};  // of workloads; one that is not here is its own
};

// Names of the suites that are shipped.
std::vector<std::string> suite_names();
Result<Suite> load_suite(std::string_view name);
// Each workload of a response table, on `device` (a shipped one or a device file) or, without one,
// on a card made for the table: its clocks and power limits, everything else as assumed in
// table_device.cc.
Result<Suite> suite_of_table(const std::filesystem::path& table,
                             const std::optional<std::string>& device);
// Only the workloads named; kNotFound lists what there is.
Status keep_only(Suite& suite, const std::vector<std::string>& names);

}  // namespace gpoeo::bench
