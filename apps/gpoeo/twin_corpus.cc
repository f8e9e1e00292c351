// SPDX-License-Identifier: Apache-2.0
// `gpoeo twin corpus`: the settled truth of generated jobs, or of a suite's, at every clock of a
// simulated GPU, as a response table to train or judge on. Simulated, and every line of its head
// says so.
#include <fmt/format.h>

#include <cstdio>

#include "base/file.h"
#include "base/log.h"
#include "response/table_writer.h"
#include "twin/compile.h"
#include "twin/device_spec.h"
#include "twin/job_generator.h"
#include "twin/job_suite.h"
#include "twin/steady_run.h"
#include "twin_verbs.h"
#include "verb.h"

namespace gpoeo::app {
namespace {

response::TableRow row_of(const twin::SteadyPoint& point, const twin::DeviceModel& device,
                          bool at_default) {
  static_assert(response::kCounterCount == static_cast<std::size_t>(twin::kActivityCount));
  response::TableRow row;
  row.setting.driver_clocks = at_default;
  if (!at_default) {
    row.setting.sm_mhz = device.sm_mhz[static_cast<std::size_t>(point.sm)];
    row.setting.mem_mhz = device.memory_mhz[static_cast<std::size_t>(point.memory)];
  }
  row.setting.power_limit_w = device.limit_default_w;
  row.time_s = point.iteration_s;
  row.power_w = point.power_w;
  for (std::size_t i = 0; i < response::kCounterCount; ++i)
    row.counters.values[i] = point.activity[i];
  return row;
}

// At most `most` of the SM clocks of each memory clock, evenly, ends included; 0: all.
bool chosen(const twin::DeviceModel& device, int memory, int sm, int most) {
  const auto m = static_cast<std::size_t>(memory);
  const int last = device.sm_number[m] - 1;
  const int i = sm - device.sm_first[m];
  if (most <= 0 || last < most) return true;
  if (i == last) return true;
  // Index i is taken when an even grid of `most` points rounds to it.
  const double step = static_cast<double>(last) / std::max(1, most - 1);
  const int slot = static_cast<int>(i / step + 0.5);
  return static_cast<int>(slot * step + 0.5) == i;
}

Result<std::string> rows_of(const twin::JobSpec& spec, const twin::DeviceModel& device,
                            int points) {
  GPOEO_TRY(const auto work, twin::compile(spec, device));
  std::string rows =
      response::row_line(spec.name, row_of(twin::steady_default(*work, device, 0), device, true));
  for (int m = 0; m < device.memory_clock_count; ++m) {
    const auto at = static_cast<std::size_t>(m);
    for (int s = device.sm_first[at]; s < device.sm_first[at] + device.sm_number[at]; ++s) {
      if (!chosen(device, m, s, points)) continue;
      rows += response::row_line(spec.name,
                                 row_of(twin::steady_point(*work, device, 0, m, s), device, false));
    }
  }
  return rows;
}

Result<std::vector<twin::JobSpec>> jobs_of(const TwinOptions& options,
                                           const twin::DeviceModel& device) {
  std::vector<twin::JobSpec> specs;
  if (options.suite.empty()) {
    for (int i = 0; i < options.jobs; ++i) specs.push_back(twin::generate_job(options.seed, i));
    return specs;
  }
  GPOEO_TRY(const twin::JobSuite suite, twin::find_suite(options.suite));
  if (suite.device != device.key.data())
    log::warning("suite {} was made for {}, not {}", suite.name, suite.device, device.key.data());
  for (const twin::SuiteJob& job : suite.jobs) specs.push_back(job.spec);
  return specs;
}

Status write_corpus(const TwinOptions& options) {
  GPOEO_TRY(const twin::DeviceModel device, twin::find_device(options.device));
  GPOEO_TRY(const auto specs, jobs_of(options, device));
  std::string text = response::comment_lines(fmt::format(
      "SIMULATED: settled truth of {} jobs on the twin of {} ({}), nothing measured.\n"
      "Made by: gpoeo twin corpus --device {} {} --points {}\n"
      "Rows with `default` are the driver's own clocks.",
      specs.size(), device.name.data(), device.key.data(), options.device,
      options.suite.empty() ? fmt::format("--jobs {} --seed {}", options.jobs, options.seed)
                            : "--suite " + options.suite,
      options.points));
  text += response::header_line();
  for (const twin::JobSpec& spec : specs) {
    GPOEO_TRY(const std::string rows, rows_of(spec, device, options.points));
    text += rows;
  }
  if (options.output.empty() || options.output == "-") {
    std::fputs(text.c_str(), stdout);
    return {};
  }
  return write_output_file(options.output, text);
}

}  // namespace

int twin_corpus(const TwinOptions& options) {
  if (Status written = write_corpus(options); !written) {
    return fail(written.error(), kExitUsage);
  }
  return kExitOk;
}

}  // namespace gpoeo::app
