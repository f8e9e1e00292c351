// SPDX-License-Identifier: Apache-2.0
#include "twin/job_catalog.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <system_error>

#include "response/response_table.h"
#include "twin/data_files.h"
#include "twin/job_suite.h"

namespace gpoeo::twin {
namespace {

namespace fs = std::filesystem;

bool same(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

// A steady choice for each name, 0.1 to 0.8 s, even in the logarithm (FNV-1a): tables time whole
// runs or single kernels, so the length of an iteration is ours to choose.
double iteration_length_s(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const unsigned char c : name) hash = (hash ^ c) * 0x100000001b3ULL;
  return 0.1 * std::pow(8.0, static_cast<double>(hash >> 11) * 0x1.0p-53);
}

Result<std::vector<fs::path>> job_files(const fs::path& data) {
  std::vector<fs::path> files;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(data / "twin" / "jobs", failed))
    if (entry.path().extension() == ".toml") files.push_back(entry.path());
  if (failed)
    return make_error(
        ErrorKind::kIo,
        fmt::format("cannot list {}: {}", (data / "twin" / "jobs").string(), failed.message()));
  return files;
}

}  // namespace

Result<std::vector<JobEntry>> jobs_for(std::string_view device_key) {
  GPOEO_TRY(const fs::path data, data_directory());
  std::vector<JobEntry> jobs;
  const fs::path table = data / "tables" / (std::string(device_key) + ".csv");
  std::error_code ignored;
  if (fs::exists(table, ignored)) {
    GPOEO_TRY(const response::ResponseTable read, response::read_response_table(table));
    for (const response::Workload& workload : read.workloads)
      jobs.push_back({workload.name, true, table.string()});
  }
  GPOEO_TRY(const std::vector<fs::path> files, job_files(data));
  for (const fs::path& file : files) jobs.push_back({file.stem().string(), false, file.string()});
  std::sort(jobs.begin(), jobs.end(),
            [](const JobEntry& a, const JobEntry& b) { return a.name < b.name; });
  return jobs;
}

Result<JobSpec> find_job(std::string_view device_key, std::string_view name) {
  if (const auto slash = name.find('/'); slash != std::string_view::npos) {
    GPOEO_TRY(const JobSuite suite, find_suite(name.substr(0, slash)));
    GPOEO_TRY(const SuiteJob* job, suite.find(name.substr(slash + 1)));
    return job->spec;
  }
  GPOEO_TRY(const std::vector<JobEntry> jobs, jobs_for(device_key));
  const auto found = std::find_if(jobs.begin(), jobs.end(),
                                  [&](const JobEntry& job) { return same(job.name, name); });
  if (found == jobs.end()) {
    std::vector<std::string> names;
    for (const JobEntry& job : jobs) names.push_back(job.name);
    return make_error(ErrorKind::kNotFound,
                      fmt::format("no job '{}' for a simulated {}; there are {}, or give your own "
                                  "file with --job-file",
                                  name, device_key, fmt::join(names, ", ")));
  }
  if (!found->measured) return load_job(found->source);
  GPOEO_TRY(const response::ResponseTable table, response::read_response_table(found->source));
  GPOEO_TRY(const response::Workload* workload, table.find(found->name));
  GPOEO_TRY(response::WorkloadCurves curves, response::WorkloadCurves::fit(*workload));
  return measured_job(found->name,
                      std::make_shared<const response::WorkloadCurves>(std::move(curves)),
                      iteration_length_s(found->name));
}

}  // namespace gpoeo::twin
