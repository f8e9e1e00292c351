// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>

#include <fcntl.h>

#include <algorithm>
#include <exception>
#include <string_view>

#include "apps_config.h"
#include "base/log.h"
#include "verb.h"

namespace gpoeo::app {

int fail(const Error& error, int code) {
  log::error("{}", error.text);
  return code;
}

}  // namespace gpoeo::app

namespace {

// A descriptor 0 to 2 that is closed would go to the next file we open, and messages into it.
void open_standard_descriptors() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) < 0) {
      [[maybe_unused]] const int opened = ::open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_descriptors();
  using namespace gpoeo::app;
  CLI::App root{"GPOEO: makes a training job on an NVIDIA GPU use less energy, measured.", "gpoeo"};
  root.set_version_flag("-V,--version", "gpoeo " GPOEO_VERSION);
  root.require_subcommand(1);
  Invocation invocation;
  // What stands behind the first "--" is a command for run or twin exec and not ours to parse.
  char** const end = argv + argc;
  char** const dashes = std::find(argv, end, std::string_view("--"));
  if (dashes != end) invocation.command.assign(dashes + 1, end);
  argc = static_cast<int>(dashes - argv);
  add_run(root, invocation);
  add_monitor(root, invocation);
  add_doctor(root, invocation);
  add_reset(root, invocation);
  add_twin(root, invocation);
  add_guardian(root, invocation);
  add_detect(root, invocation);
  add_compare(root, invocation);
  add_train(root, invocation);
  add_predict(root, invocation);
  add_bench(root, invocation);
  try {
    root.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool shown = error.get_exit_code() == 0;  // --help and --version end here
    root.exit(error);
    return shown ? kExitOk : kExitUsage;
  }
  if (!invocation.action) return kExitUsage;
  try {
    return invocation.action();
  } catch (const std::exception& error) {  // a full disk behind stdout, for one
    gpoeo::log::error("{}", error.what());
    return kExitOwnFailure;
  }
}
