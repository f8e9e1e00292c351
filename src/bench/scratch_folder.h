// SPDX-License-Identifier: Apache-2.0
// A folder that is gone when its owner is.
#pragma once

#include <filesystem>
#include <memory>
#include <utility>

#include "base/result.h"

namespace gpoeo::bench {

// Guards keep their journals here: in memory where the system offers it, since each first write to
// a control is synced to the disk.
class ScratchFolder {
 public:
  static Result<std::unique_ptr<ScratchFolder>> create();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  explicit ScratchFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace gpoeo::bench
