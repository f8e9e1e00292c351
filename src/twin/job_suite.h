// SPDX-License-Identifier: Apache-2.0
// A suite: many analytic jobs for one simulated device in one TOML file (data/suites/*.toml), each
// as in a job file (docs/twin.md) under [[jobs]], with a `family` and a line `about` it. Suites are
// what `bench` judges policies on, so they are generated, labelled and written down before any
// policy is tuned. Thread rule: values.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "twin/job_spec.h"

namespace gpoeo::twin {

struct SuiteJob {
  JobSpec spec;
  std::string family;  // jobs that resemble one another: never on both sides of a cross-validation
  std::string about;
};

struct JobSuite {
  std::string name;    // "twin-71"
  std::string device;  // short name of the device it was made for: "rtx3080ti"
  std::string about;
  std::vector<SuiteJob> jobs;  // never empty, no name twice

  // By name, case ignored; kNotFound lists what there is.
  Result<const SuiteJob*> find(std::string_view job) const;
};

// kInvalid in one line that names file, key and cure.
Result<JobSuite> load_suite(const std::filesystem::path& file);
// `name_or_path`: a path when it has a '/' or ends in ".toml", else the name of a shipped suite
// ("twin-71"). kNotFound lists the names there are.
Result<JobSuite> find_suite(std::string_view name_or_path);
// Names of the shipped suites, sorted; none is no error.
Result<std::vector<std::string>> suite_names();

}  // namespace gpoeo::twin
