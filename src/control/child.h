// SPDX-License-Identifier: Apache-2.0
// The user's command: started as it was given, its streams untouched, waited for without polling.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/result.h"

namespace gpoeo::control {

// How a command ended, as a shell would say it: its exit code, or 128 + the signal that killed it.
struct ExitStatus {
  int code = 0;
  std::optional<int> signal;
};

// What the waiting loop woke up for.
struct Wake {
  enum class Kind { kExited, kSignal, kTimeout } kind = Kind::kTimeout;
  ExitStatus exit;  // kExited
  int signal = 0;   // kSignal: INT, TERM, HUP, QUIT, USR1 or USR2, sent to us and not ignored
  bool from_terminal = false;  // kSignal: the terminal sent it to the whole foreground group
};

// Blocks the signals that a Child waits for, in this thread and in all that it starts from now on,
// and ignores SIGPIPE: a reader of our messages that goes away must not end us without a restore.
// Create it before anything that may start threads, a driver library above all: a process-wide
// signal goes to any thread that does not block it, and there it would end us without a restore.
class BlockedSignals {
 public:
  BlockedSignals();
  const sigset_t& watched() const { return watched_; }
  // The mask that was in force before, which the job gets.
  const sigset_t& before() const { return before_; }
  const struct sigaction& pipe_before() const { return pipe_before_; }

 private:
  sigset_t watched_, before_;
  struct sigaction pipe_before_ {};
};

// Thread rule: the main thread.
class Child {
 public:
  using Environment = std::vector<std::pair<std::string, std::string>>;  // added or replaced

  // kNotFound: no such program (exit 127); kNoPermission: not executable (126); kIo: fork failed.
  static Result<Child> start(const std::vector<std::string>& command, const Environment& added,
                             const BlockedSignals& signals);

  Child(Child&&) noexcept = default;
  Child& operator=(Child&&) = delete;
  // The child is left alone: it may outlive us.
  ~Child() = default;

  pid_t pid() const { return pid_; }
  // Waits for the child's end, a signal, or `timeout` of wall time.
  Wake wait(std::chrono::milliseconds timeout);
  // Passes a signal on; a child that is gone already is no error.
  void forward(int signal) const;

 private:
  Child(pid_t pid, Fd process, Fd signals)
      : pid_(pid), process_(std::move(process)), signals_(std::move(signals)) {}
  std::optional<ExitStatus> reap();

  pid_t pid_;
  Fd process_;  // a pidfd: readable when the child has ended; empty on kernels without
  Fd signals_;
  std::optional<ExitStatus> ended_;
};

}  // namespace gpoeo::control
