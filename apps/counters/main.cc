// SPDX-License-Identifier: Apache-2.0
// gpoeo-counters: reads a GPU's hardware counters once, by CUPTI PM sampling, and prints them as
// one line of JSON. `gpoeo run` starts it beside the job while it profiles.
//
// A process of its own because nothing of this may happen in the job's. PM sampling is of the whole
// card, whoever uses it, and needs no context and no memory there. Inside the job it works too, but
// a job that ended meanwhile died of it: CUPTI's libraries tear themselves down at exit under the
// thread that samples (docs/hardware.md, "Counters in a process of their own").
//
// With --until-input-closes it ends early, and well, when the pipe on its standard input is closed:
// so it never outlives gpoeo.
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "sampling.h"

namespace gpoeo::counters {
namespace {

constexpr unsigned kLongestLife_s = 90;  // a reading takes at most 60 and what CUPTI needs

nlohmann::ordered_json to_json(const Answer& answer) {
  nlohmann::ordered_json json;
  json["chip"] = answer.chip;
  json["cupti"] = answer.cupti_path;
  json["passes"] = answer.passes;
  if (!answer.error.empty()) {
    json["error"] = answer.error;
    return json;
  }
  json["begin_unix_ns"] = answer.begin_unix_ns;
  json["end_unix_ns"] = answer.end_unix_ns;
  json["covered_s"] = answer.covered_s;
  json["values"] = nlohmann::ordered_json::object();
  for (const auto& [word, value] : answer.values) json["values"][word] = value;
  return json;
}

int main(int argc, char** argv) {
  CLI::App app{
      "Reads one GPU's hardware counters for a few seconds (CUPTI PM sampling) and prints them as "
      "JSON.\nExample: gpoeo-counters --gpu 0 --metrics /usr/share/gpoeo/counters/cupti.txt",
      "gpoeo-counters"};
  Request request;
  app.add_option("--gpu", request.gpu, "As in CUDA_VISIBLE_DEVICES: a UUID, or a number")
      ->required();
  app.add_option("--metrics", request.metrics_file, "List of metrics (data/counters/cupti.txt)")
      ->required()
      ->take_last();
  app.add_option("--cupti", request.cupti, "libcupti.so to try first; may be given several times");
  app.add_option("--job", request.job, "A process whose own libcupti is tried then");
  app.add_option("--seconds", request.seconds, "Over all passes, each at least half a second")
      ->check(CLI::Range(0.5, 60.0));
  app.add_option(
         "--iteration", request.iteration_s,
         "The job's, in seconds; a pass is whole ones, unless they are longer than two passes")
      ->check(CLI::Range(0.0, 3600.0));
  app.add_flag("--by-cycles", request.by_cycles,
               "Sample by cycles of the system clock, as on Turing and GA100, which have no timer");
  app.add_flag("--check", request.check_only, "Only see whether it could be done; samples nothing");
  app.add_flag("--until-input-closes", request.until_input_closes,
               "End early when standard input, a pipe, is closed: as gpoeo starts it");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (!std::isfinite(request.seconds) || !std::isfinite(request.iteration_s)) {
    std::fprintf(stderr, "gpoeo-counters: --seconds and --iteration take numbers\n");
    return 2;
  }
  // Whatever hangs in the driver does not hang for ever.
  ::alarm(kLongestLife_s);
  const Answer answer = read_counters(request);
  // Paths need not be UTF-8.
  constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;
  const bool told =
      std::printf("%s\n", to_json(answer).dump(-1, ' ', false, kReplace).c_str()) > 0 &&
      std::fflush(stdout) == 0;
  if (!told) return 1;
  return answer.error.empty() ? 0 : 1;
}

}  // namespace
}  // namespace gpoeo::counters

int main(int argc, char** argv) { return gpoeo::counters::main(argc, argv); }
