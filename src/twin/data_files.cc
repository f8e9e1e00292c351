// SPDX-License-Identifier: Apache-2.0
#include "twin/data_files.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <system_error>
#include <vector>

namespace gpoeo::twin {
namespace {

namespace fs = std::filesystem;

bool holds_data(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_directory(folder / "twin" / "devices", ignored);
}

// The file this code was loaded from: the executable, or the twin's libnvidia-ml.so.1.
fs::path own_file() {
  std::error_code failed;
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&data_directory), &info) != 0 && info.dli_fname &&
      std::string_view(info.dli_fname).find('/') != std::string_view::npos) {
    const fs::path file = fs::canonical(info.dli_fname, failed);
    if (!failed) return file;
  }
  return fs::canonical("/proc/self/exe", failed);
}

}  // namespace

Result<fs::path> data_directory() {
  if (const char* set = std::getenv("GPOEO_DATA_DIR"); set && *set) {
    if (holds_data(set)) return fs::path(set);
    return make_error(ErrorKind::kNotFound,
                      fmt::format("GPOEO_DATA_DIR={} has no twin/devices in it; set it to the "
                                  "folder that has, or unset it",
                                  set));
  }
  const fs::path file = own_file();
  for (fs::path folder = file.parent_path(); folder.has_relative_path();
       folder = folder.parent_path()) {
    if (holds_data(folder / "share" / "gpoeo")) return folder / "share" / "gpoeo";
    if (holds_data(folder / "data")) return folder / "data";
  }
  if (holds_data(GPOEO_INSTALLED_DATA_DIR)) return fs::path(GPOEO_INSTALLED_DATA_DIR);
  return make_error(ErrorKind::kNotFound,
                    fmt::format("the twin's data files are neither in a data/ or share/gpoeo/ "
                                "above {} nor in {}; set GPOEO_DATA_DIR to the folder that holds "
                                "twin/devices",
                                file.string(), GPOEO_INSTALLED_DATA_DIR));
}

}  // namespace gpoeo::twin
