// SPDX-License-Identifier: Apache-2.0
// `gpoeo twin`: the simulated GPUs, for people who want to try or test an energy tool without one.
#include <CLI/CLI.hpp>

#include <memory>

#include "twin/segment.h"
#include "twin_verbs.h"
#include "verb.h"

namespace gpoeo::app {

void add_twin(CLI::App& root, Invocation& invocation) {
  auto* twin =
      root.add_subcommand("twin", "Simulated GPUs: list, show, up, down, exec, fault, corpus");
  twin->require_subcommand(1);
  auto options = std::make_shared<TwinOptions>();
  const auto set_action = [&invocation, options](CLI::App* verb,
                                                 int (*action)(const TwinOptions&)) {
    verb->callback([&invocation, options, action] {
      invocation.action = [options, action] { return action(*options); };
    });
  };
  const auto add_making_options = [&](CLI::App* verb) {
    verb->add_option("device", options->device, "A device of 'gpoeo twin list', or a device file")
        ->required();
    verb->add_option("--cards", options->cards, "How many of them")
        ->check(CLI::Range(1U, twin::kMaxCards));
    verb->add_option("--speed", options->speed, "Simulated seconds per second")
        ->check(CLI::Range(0.001, 10000.0));
  };
  auto* list_verb =
      twin->add_subcommand("list", "Devices, the jobs they can run, and twins that are up");
  list_verb->add_flag("--json", options->json, "Print JSON");
  set_action(list_verb, twin_list);

  auto* show_verb = twin->add_subcommand("show", "What a simulated device is like");
  show_verb->add_option("device", options->device, "A device, or a device file")->required();
  show_verb->add_flag("--json", options->json, "Print JSON");
  set_action(show_verb, twin_show);

  auto* up_verb =
      twin->add_subcommand("up", "Make a twin that several programs share; prints its variables");
  add_making_options(up_verb);
  up_verb->add_option("--name", options->name, "Its name (default: the device's)");
  up_verb->footer("Example: eval \"$(gpoeo twin up a100)\"; gpoeo monitor");
  set_action(up_verb, twin_up);

  auto* down_verb = twin->add_subcommand("down", "Remove a twin that is up");
  down_verb->add_option("name", options->name, "Its name")->required();
  down_verb->add_flag("--force", options->force, "Even while programs use it");
  set_action(down_verb, twin_down);

  auto* exec_verb = twin->add_subcommand("exec", "Run any NVML client on a twin of its own");
  add_making_options(exec_verb);
  exec_verb->prefix_command();
  exec_verb->footer("Example: gpoeo twin exec a100 -- python3 client.py");
  exec_verb->callback([&invocation, options, exec_verb] {
    options->command = given_command(*exec_verb, invocation);
    invocation.action = [options] { return twin_exec(*options); };
  });

  auto* corpus_verb = twin->add_subcommand(
      "corpus", "Response table of generated jobs at every clock of a device, to train on");
  corpus_verb->add_option("--device", options->device, "A device of 'gpoeo twin list', or a file")
      ->required();
  auto* jobs = corpus_verb->add_option("--jobs", options->jobs, "How many; default 200")
                   ->check(CLI::Range(1, 9999));
  corpus_verb->add_option("--seed", options->seed, "Of what is drawn; default 1");
  corpus_verb->add_option("--suite", options->suite, "The jobs of a suite instead (twin-71)")
      ->excludes(jobs);
  corpus_verb
      ->add_option("--points", options->points,
                   "At most so many SM clocks for each memory clock; default all")
      ->check(CLI::Range(2, 256));
  corpus_verb->add_option("-o,--output", options->output, "File to write; default stdout");
  corpus_verb->footer("Example: gpoeo twin corpus --device a100 --jobs 200 --seed 1 -o corpus.csv");
  set_action(corpus_verb, twin_corpus);

  auto* fault_verb = twin->add_subcommand("fault", "Make a twin that is up fail on demand");
  fault_verb->add_option("name", options->name, "Its name")->required();
  fault_verb->add_option("--card", options->card, "Which of its cards");
  fault_verb->add_option("--write", options->write, "The N-th write of a control from now fails");
  fault_verb->add_option("--kind", options->kind, "permission, unsupported, lost, timeout or io");
  fault_verb
      ->add_option("--lost", options->lost, "The card falls off the bus (on), or is back (off)")
      ->check(CLI::IsMember({"on", "off"}));
  set_action(fault_verb, twin_fault);
}

}  // namespace gpoeo::app
