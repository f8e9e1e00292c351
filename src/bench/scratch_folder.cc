// SPDX-License-Identifier: Apache-2.0
#include "bench/scratch_folder.h"

#include <stdlib.h>

#include <cerrno>
#include <string>
#include <system_error>

namespace gpoeo::bench {

namespace fs = std::filesystem;

Result<std::unique_ptr<ScratchFolder>> ScratchFolder::create() {
  std::error_code failed;
  const fs::path shared = "/dev/shm";
  const fs::path parent = fs::is_directory(shared, failed) ? shared : fs::temp_directory_path();
  std::string name = (parent / "gpoeo-bench-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) return errno_error("cannot make " + name, errno);
  return std::unique_ptr<ScratchFolder>(new ScratchFolder(name));
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace gpoeo::bench
