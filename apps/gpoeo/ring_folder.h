// SPDX-License-Identifier: Apache-2.0
// The private folder in which a job's processes make their progress rings; removed with its owner.
#pragma once

#include <string>

#include "base/result.h"

namespace gpoeo::app {

class RingFolder {
 public:
  // /dev/shm/gpoeo-rings-<pid>-XXXXXX, mode 0700. Folders that dead runs of this user left behind
  // are removed on the way.
  static Result<RingFolder> create();
  RingFolder(RingFolder&& other) noexcept;
  RingFolder& operator=(RingFolder&&) = delete;
  ~RingFolder();
  const std::string& path() const { return path_; }

 private:
  explicit RingFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace gpoeo::app
