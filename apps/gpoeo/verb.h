// SPDX-License-Identifier: Apache-2.0
// How a verb joins the program: one file a verb, holding its options, their checks and its action.
// A verb's add_NAME() declares the options; when the user names the verb, CLI11 calls back, and
// the verb stores what is to be done. main() then runs it. Nothing happens while parsing.
#pragma once

#include <CLI/App.hpp>

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace gpoeo::app {

// Exit codes beside the child's own (docs/usage.md has the table).
inline constexpr int kExitOk = 0;
inline constexpr int kExitUsage = 2;         // bad options or input files of a verb
inline constexpr int kExitOwnFailure = 125;  // we failed before the job started
inline constexpr int kExitNotExecutable = 126;
inline constexpr int kExitNotFound = 127;

struct Invocation {
  std::vector<std::string> command;  // what stood behind "--"
  std::function<int()> action;
};
// The command that a verb was given: from the first word that is no flag of ours, or behind "--".
inline std::vector<std::string> given_command(const CLI::App& verb, const Invocation& invocation) {
  std::vector<std::string> command = verb.remaining();
  // A "--" further back belongs to the command itself.
  if (!command.empty() && !invocation.command.empty()) command.emplace_back("--");
  command.insert(command.end(), invocation.command.begin(), invocation.command.end());
  return command;
}

// Prints "gpoeo: error: ..." on stderr and gives back `code`.
int fail(const Error& error, int code);

void add_bench(CLI::App& root, Invocation& invocation);
void add_compare(CLI::App& root, Invocation& invocation);
void add_detect(CLI::App& root, Invocation& invocation);
void add_doctor(CLI::App& root, Invocation& invocation);
void add_guardian(CLI::App& root, Invocation& invocation);
void add_monitor(CLI::App& root, Invocation& invocation);
void add_predict(CLI::App& root, Invocation& invocation);
void add_reset(CLI::App& root, Invocation& invocation);
void add_run(CLI::App& root, Invocation& invocation);
void add_train(CLI::App& root, Invocation& invocation);
void add_twin(CLI::App& root, Invocation& invocation);

}  // namespace gpoeo::app
