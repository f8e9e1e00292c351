// SPDX-License-Identifier: Apache-2.0
#include "control/tool_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

extern char** environ;

namespace gpoeo::control {
namespace {

struct Pipe {
  Fd read, write;
};
Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno_error("pipe", errno);
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

}  // namespace

Result<ToolProcess> ToolProcess::start(const std::vector<std::string>& command) {
  GPOEO_CHECK(!command.empty());
  GPOEO_TRY(Pipe to_it, make_pipe());
  GPOEO_TRY(Pipe from_it, make_pipe());
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);

  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_adddup2(&files, to_it.read.get(), STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, from_it.write.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  // Our thread blocks the signals that end jobs; the tool shall not. A group of its own: what the
  // terminal sends is for the job, and we end the tool ourselves.
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  pid_t pid = -1;
  const int error =
      ::posix_spawn(&pid, arguments[0], &files, &attributes, arguments.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&files);
  if (error != 0) return errno_error(fmt::format("cannot start '{}'", command[0]), error);
  ::fcntl(from_it.read.get(), F_SETFL, O_NONBLOCK);
  return ToolProcess(pid, std::move(to_it.write), std::move(from_it.read));
}

ToolProcess::~ToolProcess() {
  if (pid_ <= 0) return;
  ::kill(-pid_, SIGKILL);  // its group: whatever it started, too
  // One that hangs in the driver cannot be waited for.
  for (int i = 0; i < 100 && ::waitpid(pid_, nullptr, WNOHANG) == 0; ++i) ::usleep(1000);
}

std::optional<Result<std::string>> ToolProcess::poll() {
  if (pid_ <= 0) return make_error(ErrorKind::kIo, "it has ended already");
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t got = ::read(output_.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;  // its end, or nothing yet
    answer_.append(buffer.data(), static_cast<std::size_t>(got));
    if (answer_.size() > kLongestAnswer) return make_error(ErrorKind::kIo, "its answer has no end");
  }
  int status = 0;
  const pid_t ended = ::waitpid(pid_, &status, WNOHANG);
  if (ended == 0) return std::nullopt;
  pid_ = -1;
  if (ended > 0 && WIFSIGNALED(status)) {
    return make_error(ErrorKind::kIo, fmt::format("it was killed by signal {}", WTERMSIG(status)));
  }
  // What it wrote between the last read and its end.
  for (ssize_t got; (got = ::read(output_.get(), buffer.data(), buffer.size())) > 0;) {
    answer_.append(buffer.data(), static_cast<std::size_t>(got));
    if (answer_.size() > kLongestAnswer) return make_error(ErrorKind::kIo, "its answer has no end");
  }
  return std::exchange(answer_, {});
}

}  // namespace gpoeo::control
