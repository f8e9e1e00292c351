// SPDX-License-Identifier: Apache-2.0
// What `gpoeo twin ...` was asked to do, and its actions: each returns an exit code.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gpoeo::app {

struct TwinOptions {
  std::string device;
  std::string name;
  unsigned cards = 1;
  double speed = 1.0;
  bool json = false;
  bool force = false;
  std::vector<std::string> command;  // of exec
  // Of fault.
  unsigned card = 0;
  int write = 0;  // the n-th write from now fails; 0: none
  std::string kind = "permission";
  std::string lost;  // "on", "off" or empty
  // Of corpus.
  int jobs = 200;
  std::uint64_t seed = 1;
  int points = 0;      // SM clocks a memory clock; 0: all
  std::string suite;   // instead of generated jobs
  std::string output;  // empty: stdout
};

int twin_list(const TwinOptions& options);
int twin_show(const TwinOptions& options);
int twin_up(const TwinOptions& options);
int twin_down(const TwinOptions& options);
int twin_exec(const TwinOptions& options);
int twin_corpus(const TwinOptions& options);
// Faults on demand, for testing how a tool takes them.
int twin_fault(const TwinOptions& options);

}  // namespace gpoeo::app
