// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>

#include "base/log.h"
#include "run_job.h"

// Exit codes: 0 all iterations done, 1 could not run, 2 bad usage.
int main(int argc, char** argv) {
  gpoeo::twin_job::JobOptions options;
  CLI::App app{
      "A simulated training job on the simulated GPU that GPOEO_TWIN names.\n"
      "Example: gpoeo run --twin a100 -- gpoeo-twin-job lstm --seconds 60",
      "gpoeo-twin-job"};
  app.set_version_flag("-V,--version", "gpoeo-twin-job " GPOEO_VERSION);
  app.add_option("job", options.job, "Name of a shipped job (see --list)");
  app.add_option("--job-file", options.file, "A job file of your own instead")
      ->check(CLI::ExistingFile);
  auto* seconds = app.add_option("--seconds", options.seconds,
                                 "As many iterations as fit into so many (twin) seconds at default "
                                 "clocks; default 60")
                      ->check(CLI::Range(0.001, 1e9));
  app.add_option("--iterations", options.iterations, "So many iterations instead")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000'000'000}))
      ->excludes(seconds);
  app.add_option("--seed", options.seed, "Of its chance (jitter, drift); default 1");
  app.add_option("--iteration-seconds", options.iteration_s,
                 "Length of an iteration at default clocks; default the job's own")
      ->check(CLI::Range(0.001, 1e5));
  app.add_option("--card", options.card, "Index of the card; default the first visible one")
      ->check(CLI::Range(0, 15));
  app.add_option("--progress", options.progress,
                 "What it tells gpoeo of its progress: launches (the default, as an unmodified job "
                 "under the injected library), steps, both or none")
      ->check(CLI::IsMember({"launches", "steps", "both", "none"}));
  app.add_flag("--steady", options.steady, "No jitter and no drift");
  app.add_flag("--list", options.list, "Print the jobs that this card can run");
  app.add_option("--crash-after", options.crash_after_s,
                 "For tests: abort after so many (twin) seconds")
      ->check(CLI::Range(0.001, 1e9));
  try {
    app.parse(argc, argv);
    if (!options.list && options.job.empty() == options.file.empty())
      throw CLI::RequiredError("exactly one of JOB and --job-file");
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (options.seconds <= 0) options.seconds = 60;
  const gpoeo::Status done =
      options.list ? gpoeo::twin_job::list_jobs(options) : gpoeo::twin_job::run_job(options);
  if (done) return 0;
  gpoeo::log::error("twin job: {}", done.error().text);
  return 1;
}
