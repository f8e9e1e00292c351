// SPDX-License-Identifier: Apache-2.0
#include "ring_folder.h"

#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "base/text.h"

namespace gpoeo::app {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "gpoeo-rings-";

fs::path parent_folder() {
  std::error_code error;
  return fs::is_directory("/dev/shm", error) ? fs::path("/dev/shm") : fs::temp_directory_path();
}

// A folder whose gpoeo is gone: killed before it could clean up, and no guardian did.
void remove_stale(const fs::path& parent) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(parent, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    const auto pid = parse_int(std::string_view(name).substr(
        kPrefix.size(), name.find('-', kPrefix.size()) - kPrefix.size()));
    if (!pid || *pid <= 0) continue;
    const bool gone = ::kill(static_cast<pid_t>(*pid), 0) != 0 && errno == ESRCH;
    if (gone) fs::remove_all(entry.path(), error);  // other users' folders refuse, rightly
  }
}

}  // namespace

Result<RingFolder> RingFolder::create() {
  const fs::path parent = parent_folder();
  remove_stale(parent);
  std::string pattern = (parent / fmt::format("{}{}-XXXXXX", kPrefix, ::getpid())).string();
  if (::mkdtemp(pattern.data()) == nullptr) return errno_error(pattern, errno);
  return RingFolder(std::move(pattern));
}

RingFolder::RingFolder(RingFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}

RingFolder::~RingFolder() {
  std::error_code error;
  if (!path_.empty()) fs::remove_all(path_, error);
}

}  // namespace gpoeo::app
