// SPDX-License-Identifier: Apache-2.0
#include "control/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>

extern char** environ;

namespace gpoeo::control {
namespace {

constexpr int kForwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

bool is_ignored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

// A signal that our starter made us ignore (nohup: HUP; a shell's '&': INT) stays ignored, for the
// job too: watched by a signalfd it would come through all the same.
sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kForwarded) {
    if (!is_ignored(signal)) sigaddset(&set, signal);
  }
  return set;
}

std::vector<std::string> merged_environment(const Child::Environment& added) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    bool replaced = false;
    for (const auto& [name, value] : added) {
      replaced = replaced || text.starts_with(name + "=");
    }
    if (!replaced) merged.emplace_back(text);
  }
  for (const auto& [name, value] : added) merged.push_back(name + "=" + value);
  return merged;
}

std::vector<char*> as_argv(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const auto& s : strings) pointers.push_back(const_cast<char*>(s.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

BlockedSignals::BlockedSignals() : watched_(watched_signals()) {
  pthread_sigmask(SIG_BLOCK, &watched_, &before_);
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, &pipe_before_);
}

Result<Child> Child::start(const std::vector<std::string>& command, const Environment& added,
                           const BlockedSignals& signals) {
  GPOEO_CHECK(!command.empty());
  // Everything that allocates happens before the fork.
  const std::vector<std::string> environment = merged_environment(added);
  const std::vector<char*> arguments = as_argv(command);
  const std::vector<char*> variables = as_argv(environment);

  int report[2];  // closed by a successful exec, else carries its errno
  if (::pipe2(report, O_CLOEXEC) != 0) return errno_error("pipe", errno);
  const Fd report_read(report[0]);
  Fd report_write(report[1]);

  // With SIGCHLD ignored the system would throw the exit code away.
  if (is_ignored(SIGCHLD)) ::signal(SIGCHLD, SIG_DFL);

  const pid_t pid = ::fork();
  if (pid == 0) {
    pthread_sigmask(SIG_SETMASK, &signals.before(), nullptr);
    ::sigaction(SIGPIPE, &signals.pipe_before(), nullptr);
    ::execvpe(arguments[0], arguments.data(), variables.data());
    const int error = errno;
    [[maybe_unused]] const ssize_t sent = ::write(report[1], &error, sizeof error);
    ::_exit(127);
  }
  if (pid < 0) return errno_error("fork", errno);
  report_write.reset();
  int exec_error = 0;
  ssize_t got = 0;
  do {
    got = ::read(report_read.get(), &exec_error, sizeof exec_error);
  } while (got < 0 && errno == EINTR);
  if (got == sizeof exec_error) {
    ::waitpid(pid, nullptr, 0);
    return errno_error("cannot start '" + command[0] + "'", exec_error);
  }
  Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  Fd arriving(::signalfd(-1, &signals.watched(), SFD_CLOEXEC | SFD_NONBLOCK));
  GPOEO_CHECK(arriving);
  return Child(pid, std::move(process), std::move(arriving));
}

std::optional<ExitStatus> Child::reap() {
  if (ended_) return ended_;
  int status = 0;
  const pid_t got = ::waitpid(pid_, &status, WNOHANG);
  if (got == 0) return std::nullopt;
  if (got < 0) {
    ended_ = ExitStatus{.code = 125, .signal = std::nullopt};  // somebody else reaped it
  } else if (WIFSIGNALED(status)) {
    ended_ = ExitStatus{.code = 128 + WTERMSIG(status), .signal = WTERMSIG(status)};
  } else {
    ended_ = ExitStatus{.code = WEXITSTATUS(status), .signal = std::nullopt};
  }
  return ended_;
}

Wake Child::wait(std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    if (const auto exit = reap()) return {.kind = Wake::Kind::kExited, .exit = *exit};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return {};
    // Without a pidfd the child's end is looked for once a second.
    const auto longest = process_ ? std::chrono::hours(1) : std::chrono::seconds(1);
    pollfd waiting[] = {{.fd = signals_.get(), .events = POLLIN, .revents = 0},
                        {.fd = process_.get(), .events = POLLIN, .revents = 0}};
    const auto most = std::chrono::duration_cast<std::chrono::milliseconds>(longest);
    if (::poll(waiting, 2, static_cast<int>(std::min(left, most).count())) <= 0) continue;
    signalfd_siginfo info{};
    if (::read(signals_.get(), &info, sizeof info) != sizeof info) continue;
    return {.kind = Wake::Kind::kSignal,
            .exit = {},
            .signal = static_cast<int>(info.ssi_signo),
            .from_terminal = info.ssi_code == SI_KERNEL};
  }
}

void Child::forward(int signal) const {
  // Once reaped, the number may be another process's.
  if (!ended_) ::kill(pid_, signal);
}

}  // namespace gpoeo::control
