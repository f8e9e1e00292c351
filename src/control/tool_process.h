// SPDX-License-Identifier: Apache-2.0
// A program of ours that does one thing beside the job and prints its answer. Started, asked now
// and then, never waited for.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/result.h"

namespace gpoeo::control {

// Thread rule: one thread. The program's standard input is a pipe that closes when this object
// goes, or when our process dies: its sign to end.
class ToolProcess {
 public:
  // Longer answers are an error.
  static constexpr std::size_t kLongestAnswer = std::size_t{1} << 16;

  // `command`: path and arguments. kNotFound, kNoPermission, or kIo when it cannot be started.
  static Result<ToolProcess> start(const std::vector<std::string>& command);

  ToolProcess(ToolProcess&& o) noexcept
      : pid_(std::exchange(o.pid_, -1)),
        input_(std::move(o.input_)),
        output_(std::move(o.output_)),
        answer_(std::move(o.answer_)) {}
  ToolProcess& operator=(ToolProcess&&) = delete;
  // Kills it when it has not ended (it holds nothing that the system does not give back) and waits
  // for that, a tenth of a second at most.
  ~ToolProcess();

  // Asks it to end by itself.
  void stop() { input_.reset(); }

  // What it printed, once it has ended, whatever its exit code. nullopt: still running. kIo when it
  // was killed or printed too much.
  std::optional<Result<std::string>> poll();

 private:
  ToolProcess(pid_t pid, Fd input, Fd output)
      : pid_(pid), input_(std::move(input)), output_(std::move(output)) {}

  pid_t pid_;
  Fd input_, output_;
  std::string answer_;
};

}  // namespace gpoeo::control
