// SPDX-License-Identifier: Apache-2.0
// The options of `gpoeo measure`.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <memory>

#include "measure.h"
#include "verb.h"

namespace gpoeo::app {

void add_measure(CLI::App& root, Invocation& invocation) {
  auto* verb = root.add_subcommand(
      "measure", "Sweep a job over clocks into a response table, or check such a table");
  auto o = std::make_shared<MeasureOptions>();
  verb->add_option("--sweep", o->sweep, "Over sm clocks (the default), memory clocks, or both")
      ->check(CLI::IsMember({"sm", "memory", "both"}));
  auto* clocks =
      verb->add_option("--clocks", o->clocks, "SM clocks in MHz, as 1410,1200,900, or all");
  verb->add_option("--points", o->points,
                   "So many SM clocks, from a third of the highest to the highest; default 12")
      ->check(CLI::Range(2, 256))
      ->excludes(clocks);
  verb->add_option("--repeats", o->repeats, "Each setting so often, in another order; default 1")
      ->check(CLI::Range(1, 100));
  verb->add_option("--seconds-per-clock", o->seconds,
                   "Whole iterations over at least so long at each setting; default 8")
      ->check(CLI::Range(1.0, 3600.0));
  verb->add_option(
          "--soak", o->soak_s,
          "Seconds at each setting before it is measured, so that heat settles; default 10")
      ->check(CLI::Range(0.0, 3600.0));
  verb->add_flag("--whole-runs", o->whole_runs,
                 "Run the command from start to end at each setting; needs no iterations");
  verb->add_option("--warm-up", o->warm_up_s,
                   "Seconds at default clocks before the first window; default 15")
      ->check(CLI::Range(0.0, 3600.0));
  verb->add_option("--default-every", o->default_every,
                   "Default clocks again after so many settings; default 6")
      ->check(CLI::Range(1, 1000));
  verb->add_option("--seed", o->seed, "Of the order; default 1");
  verb->add_option("--workload", o->workload, "Its name in the table; default the command");
  verb->add_option("-o,--output", o->output, "Table to write");
  verb->add_flag("--force", o->force, "Write over a table that is there");
  verb->add_option("--gpus", o->gpus, "all, or a list of indices, UUIDs or PCI ids");
  verb->add_option("--twin", o->backend.twin,
                   "Simulated GPU: a device, a device file, or a twin that is up");
  verb->add_option("--twin-speed", o->backend.twin_speed,
                   "Simulated seconds per second, for a twin that this run makes")
      ->check(CLI::Range(0.001, 10000.0));
  verb->add_flag("--yes", o->yes, "Do not ask before the clocks of a real GPU are set");
  verb->add_flag("--no-inject", o->no_inject, "Do not load gpoeo's launch log into the job");
  verb->add_flag("-q,--quiet", o->quiet, "No progress");
  verb->add_option("--check", o->check, "Only say what is done to this table on its way to curves");
  verb->prefix_command();
  verb->footer(
      "Example: gpoeo measure --twin a100 --twin-speed 50 -o lstm.csv -- gpoeo-twin-job lstm "
      "--seconds 100000");
  verb->callback([&invocation, verb, o] {
    o->command = given_command(*verb, invocation);
    invocation.action = [o] {
      if (!o->check.empty()) return check_table(o->check);
      return measure(*o);
    };
  });
}

}  // namespace gpoeo::app
