// SPDX-License-Identifier: Apache-2.0
// Files and descriptors. Everything returns an error that names the path.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace gpoeo {

// Owns a file descriptor; closes it once.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  Fd& operator=(Fd&& o) noexcept {
    if (this != &o) reset(std::exchange(o.fd_, -1));
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

// The whole file, refused over `max_bytes` (kInvalid) so that a wrong path cannot fill memory.
Result<std::string> read_file(const std::filesystem::path& path,
                              std::size_t max_bytes = std::size_t{64} << 20);
// Replaces `path` in one step and only returns when the data is on the disk: write to a
// temporary file beside it, fsync, rename, fsync of the folder. Mode 0600 unless told otherwise.
Status write_file_durably(const std::filesystem::path& path, std::string_view content,
                          unsigned mode = 0600);
// Writes what a user asked for where they asked for it: through links, into devices and pipes;
// never replaces what is not a regular file.
Status write_output_file(const std::filesystem::path& path, std::string_view content);
// Removes `path` and fsyncs the folder; a file that is not there is not an error.
Status remove_file_durably(const std::filesystem::path& path);
// A file we are about to trust with root's power: regular, owned by us or root, and not writable
// by group or others. kNoPermission with the cure when it is not.
Status check_trusted_file(const std::filesystem::path& path);
// Creates `path` (and parents) with mode 0700 if it is missing, then holds it to the same rule.
Status ensure_private_directory(const std::filesystem::path& path);

}  // namespace gpoeo
