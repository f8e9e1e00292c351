// SPDX-License-Identifier: Apache-2.0
#include "ring_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace gpoeo::app {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "gpoeo-rings-";
// Each is lost only to another gpoeo that starts in the very same moment.
constexpr int kTries = 8;

fs::path shared_memory() {
  std::error_code error;
  return fs::is_directory("/dev/shm", error) ? fs::path("/dev/shm") : fs::temp_directory_path();
}

// Empty when it is not there, is another user's, or is held.
Fd hold(const fs::path& folder) {
  Fd held(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  struct stat info {};
  if (!held || ::fstat(held.get(), &info) != 0 || info.st_uid != ::geteuid()) return {};
  if (::flock(held.get(), LOCK_EX | LOCK_NB) != 0) return {};
  return held;
}

bool still_named(const Fd& held, const fs::path& folder) {
  struct stat ours {
  }, theirs{};
  return ::fstat(held.get(), &ours) == 0 && ::lstat(folder.c_str(), &theirs) == 0 &&
         ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev;
}

// Folders whose gpoeo is gone: killed before it could clean up, and no guardian did.
void remove_stale(const fs::path& parent) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(parent, error)) {
    if (!entry.path().filename().string().starts_with(kPrefix)) continue;
    if (const Fd held = hold(entry.path())) fs::remove_all(entry.path(), error);
  }
}

}  // namespace

Result<RingFolder> RingFolder::create() { return create(shared_memory()); }

Result<RingFolder> RingFolder::create(const fs::path& parent) {
  remove_stale(parent);
  for (int i = 0; i < kTries; ++i) {
    std::string path = (parent / fmt::format("{}{}-XXXXXX", kPrefix, ::getpid())).string();
    if (::mkdtemp(path.data()) == nullptr) return errno_error(path, errno);
    // Until it is held, another gpoeo takes it for a stale one.
    Fd held = hold(path);
    if (held && still_named(held, path)) return RingFolder(std::move(path), std::move(held));
    std::error_code error;
    fs::remove_all(path, error);
  }
  return make_error(
      ErrorKind::kBusy,
      fmt::format("{}: no folder for progress rings could be locked (flock)", parent.string()));
}

RingFolder::RingFolder(RingFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})), held_(std::move(other.held_)) {}

RingFolder::~RingFolder() {
  std::error_code error;
  if (!path_.empty()) fs::remove_all(path_, error);
}

}  // namespace gpoeo::app
