// SPDX-License-Identifier: Apache-2.0
#include "guardian.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <memory>
#include <thread>

#include "base/log.h"
#include "restore.h"
#include "twin/segment.h"

namespace gpoeo::app {
namespace {

// One message a line on the pipe: "job PID" or "goodbye".
constexpr std::string_view kGoodbye = "goodbye\n";

struct Heard {
  bool goodbye = false;
  pid_t job = 0;
};

Heard listen_until_closed(int fd) {
  std::string text;
  char buffer[256];
  for (;;) {
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    text.append(buffer, static_cast<std::size_t>(n));
  }
  Heard heard;
  heard.goodbye = text.ends_with(kGoodbye);
  if (const auto at = text.find("job "); at != std::string::npos) {
    heard.job = static_cast<pid_t>(std::strtol(text.c_str() + at + 4, nullptr, 10));
  }
  return heard;
}

bool alive(pid_t pid) { return pid > 0 && (::kill(pid, 0) == 0 || errno == EPERM); }

// True when nothing is left to be done for this GPU.
bool settle(const control::Journal& journal, const std::string& uuid) {
  const auto left = journal.read(uuid);
  if (left && !*left) return true;
  const Status restored = restore_from_journal(journal, uuid).status;
  if (restored) {
    log::warning("gpoeo was killed; the guardian restored the clocks of GPU {}", uuid);
    return true;
  }
  if (restored.error().kind != ErrorKind::kInvalid) return false;
  log::error("guardian: {}", restored.error().text);
  return true;
}

// A driver that does not answer now may do so in a while: waits grow from 1 s to a minute, for as
// long as a journal is there. No GPU waits for another one.
void restore_until_done(const control::Journal& journal, std::vector<std::string> uuids) {
  for (auto wait = std::chrono::seconds(1);; wait = std::min(wait * 2, std::chrono::seconds(60))) {
    std::erase_if(uuids, [&](const std::string& uuid) { return settle(journal, uuid); });
    if (uuids.empty()) return;
    std::this_thread::sleep_for(wait);
  }
}

int guard(const GuardianCharge& charge) {
  // What is sent to a whole group or session must not end the one that outlives the others.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) ::signal(signal, SIG_IGN);
  const Heard heard = listen_until_closed(STDIN_FILENO);
  if (heard.goodbye) return kExitOk;
  const auto journal = control::Journal::open(charge.state_dir);
  if (!journal) return fail(journal.error(), kExitOwnFailure);
  restore_until_done(*journal, charge.uuids);

  while (alive(heard.job)) std::this_thread::sleep_for(std::chrono::seconds(1));
  std::error_code ignored;
  if (!charge.ring_dir.empty()) std::filesystem::remove_all(charge.ring_dir, ignored);
  if (!charge.twin_segment.empty()) {
    if (Status removed = twin::Segment::remove(charge.twin_segment, /*force=*/true); !removed) {
      log::debug("guardian: {}", removed.error().text);
    }
  }
  return kExitOk;
}

}  // namespace

Result<Guardian> Guardian::start(const GuardianCharge& charge) {
  std::vector<std::string> arguments = {"gpoeo", "guardian", "--state-dir", charge.state_dir};
  for (const auto& uuid : charge.uuids) arguments.insert(arguments.end(), {"--uuid", uuid});
  if (!charge.ring_dir.empty()) arguments.insert(arguments.end(), {"--ring-dir", charge.ring_dir});
  if (!charge.twin_segment.empty()) {
    arguments.insert(arguments.end(), {"--twin-segment", charge.twin_segment});
  }
  std::vector<char*> argv;
  for (auto& a : arguments) argv.push_back(a.data());
  argv.push_back(nullptr);

  GPOEO_TRY_STATUS(ensure_private_directory(charge.state_dir));
  const std::string log_path = charge.state_dir + "/guardian.log";
  const Fd log(
      ::open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!log) return errno_error(log_path, errno);
  const Fd nothing(::open("/dev/null", O_WRONLY | O_CLOEXEC));

  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno_error("pipe", errno);
  const Fd read_end(ends[0]);
  Fd write_end(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) return errno_error("fork", errno);
  if (pid == 0) {
    // A session of its own: what the terminal sends to the job's group must not end it.
    ::setsid();
    ::dup2(read_end.get(), STDIN_FILENO);
    // And it must not hold the user's pipes open after us.
    ::dup2(nothing.get(), STDOUT_FILENO);
    ::dup2(log.get(), STDERR_FILENO);
    ::execv("/proc/self/exe", argv.data());
    ::_exit(127);
  }
  return Guardian(pid, std::move(write_end));
}

void Guardian::watch_job(pid_t job) {
  const std::string line = "job " + std::to_string(job) + "\n";
  [[maybe_unused]] const ssize_t sent = ::write(pipe_.get(), line.data(), line.size());
}

void Guardian::dismiss() {
  [[maybe_unused]] const ssize_t sent = ::write(pipe_.get(), kGoodbye.data(), kGoodbye.size());
  pipe_.reset();
  // Usually at once. One that is stopped, or slow, is left to end by itself.
  for (int i = 0; i < 50 && ::waitpid(pid_, nullptr, WNOHANG) == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

void add_guardian(CLI::App& root, Invocation& invocation) {
  auto* verb = root.add_subcommand("guardian", "(started by `gpoeo run`)");
  verb->group("");  // not in --help: nobody types it
  auto charge = std::make_shared<GuardianCharge>();
  verb->add_option("--state-dir", charge->state_dir)->required();
  verb->add_option("--uuid", charge->uuids);
  verb->add_option("--ring-dir", charge->ring_dir);
  verb->add_option("--twin-segment", charge->twin_segment);
  verb->callback(
      [&invocation, charge] { invocation.action = [charge] { return guard(*charge); }; });
}

}  // namespace gpoeo::app
