// SPDX-License-Identifier: Apache-2.0
// Sets a scene for tests of NVML clients: simulated cards with a job on the first, in a process of
// its own, and runs the client in it with GPOEO_TWIN set. The client speaks NVML; what NVML does
// not have (moving the time, counting the job's iterations) it asks through the socket whose
// descriptor is in GPOEO_SCENE_FD, a line each way:
//   step SECONDS  -> ok          moves the twin's time
//   iterations    -> NUMBER      that the job has finished
//   fail N KIND   -> ok          the N-th setter from now fails ("permission" or "lost")
//
//   twin_scene DEVICE JOB CARDS CLIENT [ARGUMENTS...]
// Exit status: the client's.
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "twin/card_front.h"
#include "twin/compile.h"
#include "twin/device_spec.h"
#include "twin/job_catalog.h"
#include "twin/judge.h"
#include "twin/segment.h"

namespace {

using namespace gpoeo;
using namespace gpoeo::twin;

[[noreturn]] void fail(const Error& error) {
  std::fprintf(stderr, "twin_scene: %s\n", error.text.c_str());
  std::exit(1);
}

template <typename T>
T need(Result<T> result) {
  if (!result) fail(result.error());
  return std::move(*result);
}

void need(const Status& status) {
  if (!status) fail(status.error());
}

// A process that holds the job and does nothing: the twin runs it.
pid_t start_job(Segment& segment, const Work& work) {
  int ready[2];
  if (pipe(ready) != 0) fail({ErrorKind::kIo, "pipe"});
  const pid_t pid = fork();
  if (pid == 0) {
    close(ready[0]);
    need(segment.attach_job(0, work, JobOptions{}));
    (void)!write(ready[1], "x", 1);
    for (;;) pause();
  }
  close(ready[1]);
  char byte;
  if (read(ready[0], &byte, 1) != 1) fail({ErrorKind::kIo, "the job did not start"});
  close(ready[0]);
  return pid;
}

std::string answer(Segment& segment, std::string_view line) {
  const auto words = split(line, ' ');
  if (words[0] == "step" && words.size() == 2) {
    need(segment.step(to_duration(Seconds(need(parse_double(words[1]))))));
    return "ok";
  }
  if (words[0] == "iterations") {
    const CardTruth card = need(truth(segment, 0));
    return std::to_string(card.jobs.empty() ? 0 : card.jobs.front().iterations);
  }
  if (words[0] == "fail" && words.size() == 3) {
    const auto kind = words[2] == "lost" ? ErrorKind::kDeviceLost : ErrorKind::kNoPermission;
    need(CardFront(segment, 0)
             .inject_write_failure(static_cast<int>(need(parse_int(words[1]))), kind));
    return "ok";
  }
  fail({ErrorKind::kInvalid, "unknown request: " + std::string(line)});
}

void serve(Segment& segment, int fd) {
  FILE* in = fdopen(fd, "r");
  char line[256];
  while (std::fgets(line, sizeof line, in) != nullptr) {
    const std::string reply = answer(segment, trim(line)) + "\n";
    if (send(fd, reply.data(), reply.size(), MSG_NOSIGNAL) < 0) break;
  }
  std::fclose(in);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) fail({ErrorKind::kInvalid, "usage: DEVICE JOB CARDS CLIENT [ARGUMENTS...]"});
  const DeviceModel device = need(find_device(argv[1]));
  const JobSpec job = need(find_job(device.key.data(), argv[2]));
  const std::unique_ptr<Work> work = need(compile(job, device));

  const std::string path = "/dev/shm/gpoeo-scene-" + std::to_string(getpid());
  SegmentOptions options;
  options.cards.assign(static_cast<std::size_t>(need(parse_int(argv[3]))), device);
  options.manual_time = true;
  std::unique_ptr<Segment> segment = need(Segment::create(path, options));
  const pid_t job_pid = start_job(*segment, *work);

  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) fail({ErrorKind::kIo, "socketpair"});
  const pid_t client = fork();
  if (client == 0) {
    close(ends[0]);
    setenv(kSegmentEnvironment, path.c_str(), 1);
    setenv("GPOEO_SCENE_FD", std::to_string(ends[1]).c_str(), 1);
    execvp(argv[4], argv + 4);
    std::fprintf(stderr, "twin_scene: cannot run %s: %s\n", argv[4], std::strerror(errno));
    _exit(127);
  }
  close(ends[1]);
  serve(*segment, ends[0]);  // until the client and its children have closed their end

  int status = 0;
  waitpid(client, &status, 0);
  kill(job_pid, SIGKILL);
  waitpid(job_pid, nullptr, 0);
  segment.reset();
  need(Segment::remove(path, true));
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
