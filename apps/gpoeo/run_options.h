// SPDX-License-Identifier: Apache-2.0
// What `gpoeo run` was asked to do, with flags, variables and configuration files already merged
// and checked.
#pragma once

#include <CLI/App.hpp>

#include <optional>
#include <string>
#include <vector>

#include "backend.h"
#include "base/result.h"
#include "policy/policy.h"

namespace gpoeo::app {

struct RunOptions {
  std::vector<std::string> command;
  std::string policy = "gpoeo";
  std::string max_slowdown_text = "5%";
  double max_slowdown = 0.05;
  std::string objective_text = "energy";
  policy::Objective objective = policy::Objective::kEnergy;
  double cost_eta = 0.5;
  std::optional<std::string> gpus;
  BackendOptions backend;
  std::string trace_file;   // empty: none
  std::string report_file;  // JSON; empty: none
  bool json = false;        // on stdout, instead of the text on stderr
  bool dry_run = false;
  bool strict = false;
  bool quiet = false;
  std::string counters = "auto";
  std::string model = "auto";  // none, or a file
  bool no_inject = false;      // leave libgpoeo_inject.so out of the job
  bool no_guardian = false;
};

// Declares the flags of `run` on `verb`; they write into `options`.
void declare_run_options(CLI::App& verb, RunOptions& options);
// Fills what no flag set from variables and configuration files, and checks everything. kInvalid
// names the flag, variable or file and line that is wrong.
Status complete_run_options(const CLI::App& verb, RunOptions& options);

}  // namespace gpoeo::app
