// SPDX-License-Identifier: Apache-2.0
// The private folder in which a job's processes make their progress rings; removed with its owner.
// The owner holds it with flock(2), which ends with the process however that ends: containers that
// share /dev/shm do not share process ids, so that a pid says nothing about who is alive.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "base/file.h"
#include "base/result.h"

namespace gpoeo::app {

class RingFolder {
 public:
  // /dev/shm/gpoeo-rings-<pid>-XXXXXX, mode 0700, held by this process (and by what it forks
  // without exec). Folders of this user that nobody holds any more are removed on the way.
  static Result<RingFolder> create();
  // The same in `parent`, which is there.
  static Result<RingFolder> create(const std::filesystem::path& parent);
  RingFolder(RingFolder&& other) noexcept;
  RingFolder& operator=(RingFolder&&) = delete;
  ~RingFolder();
  const std::string& path() const { return path_; }

 private:
  RingFolder(std::string path, Fd held) : path_(std::move(path)), held_(std::move(held)) {}
  std::string path_;
  Fd held_;
};

}  // namespace gpoeo::app
