// SPDX-License-Identifier: Apache-2.0
#include "twin/job_suite.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <system_error>

#include "twin/data_files.h"
#include "twin/toml_file.h"

namespace gpoeo::twin {
namespace {

namespace fs = std::filesystem;

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

}  // namespace

Result<const SuiteJob*> JobSuite::find(std::string_view job) const {
  const auto found = std::ranges::find_if(
      jobs, [&](const SuiteJob& one) { return lower(one.spec.name) == lower(job); });
  if (found != jobs.end()) return &*found;
  std::vector<std::string> names;
  for (const SuiteJob& one : jobs) names.push_back(one.spec.name);
  return make_error(ErrorKind::kNotFound, fmt::format("no job '{}' in suite '{}'; there are {}",
                                                      job, name, fmt::join(names, ", ")));
}

Result<JobSuite> load_suite(const fs::path& path) {
  GPOEO_TRY(TomlFile file, TomlFile::read(path));
  JobSuite suite;
  suite.name = file.text_or("name", path.stem().string());
  suite.device = file.text("device");
  suite.about = file.text_or("about", "");
  std::set<std::string> names;
  for (int i = 0; i < file.size("jobs"); ++i) {
    const std::string at = fmt::format("jobs[{}].", i);
    SuiteJob job;
    job.family = file.text_or(at + "family", "");
    job.about = file.text_or(at + "about", "");
    job.spec = read_job(file, at, fmt::format("job{}", i));
    if (!names.insert(lower(job.spec.name)).second)
      file.fault(at + "name", "was given to an earlier job too; rename one");
    suite.jobs.push_back(std::move(job));
  }
  if (suite.jobs.empty()) file.fault("jobs", "is missing; add [[jobs]]");
  GPOEO_TRY_STATUS(file.finish());
  return suite;
}

Result<std::vector<std::string>> suite_names() {
  GPOEO_TRY(const fs::path data, data_directory());
  std::vector<std::string> names;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(data / "suites", failed))
    if (entry.path().extension() == ".toml") names.push_back(entry.path().stem().string());
  std::ranges::sort(names);
  return names;
}

Result<JobSuite> find_suite(std::string_view name_or_path) {
  if (name_or_path.find('/') != std::string_view::npos || name_or_path.ends_with(".toml"))
    return load_suite(fs::path(name_or_path));
  GPOEO_TRY(const auto names, suite_names());
  GPOEO_TRY(const fs::path data, data_directory());
  if (std::ranges::find(names, name_or_path) == names.end())
    return make_error(ErrorKind::kNotFound,
                      fmt::format("no suite '{}'; there are {}, or give a file's path",
                                  name_or_path, fmt::join(names, ", ")));
  return load_suite(data / "suites" / (std::string(name_or_path) + ".toml"));
}

}  // namespace gpoeo::twin
