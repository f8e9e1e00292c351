// SPDX-License-Identifier: Apache-2.0
// Values that a user may set once instead of typing them: /etc/gpoeo/config.toml,
// ~/.config/gpoeo/config.toml, ./.gpoeo.toml, GPOEO_* variables; a flag beats them all.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace gpoeo::app {

class Settings {
 public:
  struct Value {
    std::string text;
    std::string source;  // "/etc/gpoeo/config.toml" or "GPOEO_POLICY"
  };

  // Reads what is there. kInvalid for a file that is not TOML, an unknown key or a value that is no
  // string, number or boolean: one line with file, line and key. `files` is for tests.
  static Result<Settings> load(const std::vector<std::filesystem::path>& files = default_files());
  static std::vector<std::filesystem::path> default_files();

  // `key` as in the files and flags ("max-slowdown"); its variable is GPOEO_MAX_SLOWDOWN.
  std::optional<Value> get(const std::string& key) const;
  const std::vector<std::string>& files_read() const { return files_read_; }
  // Keys that files may hold.
  static const std::vector<std::string>& known_keys();

 private:
  Status read(const std::filesystem::path& file);
  std::map<std::string, Value> values_;
  std::vector<std::string> files_read_;
};

}  // namespace gpoeo::app
