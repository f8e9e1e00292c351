// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace gpoeo {
namespace {

Status sync_parent(const std::filesystem::path& path) {
  const auto parent = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  const Fd folder(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return errno_error(parent.string(), errno);
  if (::fsync(folder.get()) != 0) return errno_error(parent.string(), errno);
  return {};
}

Status write_all(int fd, std::string_view content, const std::string& name) {
  while (!content.empty()) {
    const ssize_t n = ::write(fd, content.data(), content.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      return errno_error(name, errno);
    }
    content.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

// Shared by files and folders: whoever else may write it could make us write anything.
Status check_owner_and_mode(const struct stat& info, const std::filesystem::path& path) {
  if (info.st_uid != 0 && info.st_uid != ::geteuid()) {
    return make_error(
        ErrorKind::kNoPermission,
        fmt::format("{}: owned by uid {}, not by root or uid {}; remove it or chown it",
                    path.string(), info.st_uid, ::geteuid()));
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return make_error(ErrorKind::kNoPermission,
                      fmt::format("{}: mode {:04o} lets others write it; run chmod go-w {}",
                                  path.string(), info.st_mode & 07777U, path.string()));
  }
  return {};
}

}  // namespace

void Fd::reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

// For the writer of a pipe that is given as a file.
static constexpr int kPipePatience_ms = 10'000;

Result<std::string> read_file(const std::filesystem::path& path, std::size_t max_bytes) {
  // A pipe that nobody writes to must not hold us up; for files O_NONBLOCK means nothing.
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return errno_error(path.string(), errno);
  std::string content;
  std::string chunk(std::size_t{64} << 10, '\0');
  for (;;) {
    pollfd ready{.fd = file.get(), .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, kPipePatience_ms) == 0) {
      return make_error(ErrorKind::kIo, fmt::format("{}: nothing came for {} s", path.string(),
                                                    kPipePatience_ms / 1000));
    }
    const ssize_t n = ::read(file.get(), chunk.data(), chunk.size());
    if (n < 0) {
      if (errno == EINTR || errno == EAGAIN) continue;
      return errno_error(path.string(), errno);
    }
    if (n == 0) return content;
    content.append(chunk, 0, static_cast<std::size_t>(n));
    if (content.size() > max_bytes) {
      return make_error(ErrorKind::kInvalid,
                        fmt::format("{}: larger than {} bytes", path.string(), max_bytes));
    }
  }
}

Status write_file_durably(const std::filesystem::path& path, std::string_view content,
                          unsigned mode) {
  const std::string temporary = fmt::format("{}.{}.tmp", path.string(), ::getpid());
  Fd file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode));
  if (!file) return errno_error(temporary, errno);
  Status status = write_all(file.get(), content, temporary);
  if (status && ::fsync(file.get()) != 0) status = errno_error(temporary, errno);
  file.reset();
  if (status && ::rename(temporary.c_str(), path.c_str()) != 0) {
    status = errno_error(path.string(), errno);
  }
  if (!status) {
    ::unlink(temporary.c_str());
    return status;
  }
  return sync_parent(path);
}

Status write_output_file(const std::filesystem::path& path, std::string_view content) {
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file) return errno_error(path.string(), errno);
  return write_all(file.get(), content, path.string());
}

Status remove_file_durably(const std::filesystem::path& path) {
  if (::unlink(path.c_str()) != 0) {
    if (errno == ENOENT) return {};
    return errno_error(path.string(), errno);
  }
  return sync_parent(path);
}

Status check_trusted_file(const std::filesystem::path& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return errno_error(path.string(), errno);
  if (!S_ISREG(info.st_mode)) {
    return make_error(ErrorKind::kNoPermission,
                      fmt::format("{}: not a regular file; remove it", path.string()));
  }
  return check_owner_and_mode(info, path);
}

Status ensure_private_directory(const std::filesystem::path& path) {
  std::error_code error;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return errno_error(path.string(), errno);
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return errno_error(path.string(), errno);
  if (!S_ISDIR(info.st_mode)) {
    return make_error(ErrorKind::kNoPermission,
                      fmt::format("{}: not a folder; remove it", path.string()));
  }
  return check_owner_and_mode(info, path);
}

}  // namespace gpoeo
