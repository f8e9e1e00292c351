// SPDX-License-Identifier: Apache-2.0
// `gpoeo reset`: gives back every clock that a gpoeo which is gone had set. Needs nothing else
// running.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <memory>
#include <nlohmann/json.hpp>

#include "restore.h"
#include "verb.h"

namespace gpoeo::app {
namespace {

struct ResetOptions {
  bool json = false;
};

int reset(const ResetOptions& options) {
  const auto journal = control::Journal::open(control::default_state_dir());
  if (!journal) return fail(journal.error(), kExitOwnFailure);
  const auto uuids = journal->list();
  nlohmann::json report = nlohmann::json::array();
  int exit_code = kExitOk;
  for (const auto& uuid : uuids) {
    const RestoreResult result = restore_from_journal(*journal, uuid);
    if (!result.status) exit_code = fail(result.status.error(), kExitOwnFailure);
    nlohmann::json controls = nlohmann::json::array();
    for (const auto& outcome : result.outcomes) {
      controls.push_back({{"control", gpu::to_string(outcome.control)},
                          {"restored_to", outcome.restored_to},
                          {"ok", outcome.status.has_value()}});
      if (!options.json && outcome.status) {
        fmt::print("GPU {}: {} restored to {}\n", uuid, gpu::to_string(outcome.control),
                   outcome.restored_to);
      }
    }
    report.push_back({{"uuid", uuid}, {"ok", result.status.has_value()}, {"controls", controls}});
  }
  if (options.json) {
    fmt::print("{}\n", report.dump(2));
  } else if (uuids.empty()) {
    fmt::print("nothing to restore: no journal in {}\n", journal->folder().string());
  }
  return exit_code;
}

}  // namespace

void add_reset(CLI::App& root, Invocation& invocation) {
  auto* verb = root.add_subcommand(
      "reset", "Give back the clocks that a gpoeo which is gone had set, from its journal");
  auto options = std::make_shared<ResetOptions>();
  verb->add_flag("--json", options->json, "Print what was restored as JSON");
  verb->footer("Example: sudo gpoeo reset");
  verb->callback(
      [&invocation, options] { invocation.action = [options] { return reset(*options); }; });
}

}  // namespace gpoeo::app
