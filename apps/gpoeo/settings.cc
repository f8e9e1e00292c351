// SPDX-License-Identifier: Apache-2.0
#include "settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "base/file.h"

namespace gpoeo::app {
namespace {

namespace fs = std::filesystem;

std::string variable_of(const std::string& key) {
  std::string name = "GPOEO_";
  for (const char c : key) {
    name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

std::optional<std::string> as_text(const toml::node& node) {
  if (const auto s = node.value_exact<std::string>()) return *s;
  if (const auto b = node.value_exact<bool>()) return *b ? "true" : "false";
  if (const auto i = node.value_exact<std::int64_t>()) return std::to_string(*i);
  if (const auto d = node.value_exact<double>()) return fmt::format("{}", *d);
  return std::nullopt;
}

}  // namespace

std::vector<fs::path> Settings::default_files() {
  std::vector<fs::path> files = {"/etc/gpoeo/config.toml"};
  if (const char* config = std::getenv("XDG_CONFIG_HOME"); config != nullptr && *config != '\0') {
    files.push_back(fs::path(config) / "gpoeo/config.toml");
  } else if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') {
    files.push_back(fs::path(home) / ".config/gpoeo/config.toml");
  }
  files.emplace_back(".gpoeo.toml");
  return files;
}

const std::vector<std::string>& Settings::known_keys() {
  static const std::vector<std::string> kKeys = {
      "policy",  "max-slowdown", "gpus",      "twin",     "twin-speed", "strict",
      "dry-run", "quiet",        "no-inject", "counters", "objective",  "model"};
  return kKeys;
}

Result<Settings> Settings::load(const std::vector<fs::path>& files) {
  Settings settings;
  for (const auto& file : files) GPOEO_TRY_STATUS(settings.read(file));
  return settings;
}

Status Settings::read(const fs::path& file) {
  const auto text = read_file(file, std::size_t{1} << 20);
  if (!text) {
    if (text.error().kind == ErrorKind::kNotFound) return {};
    return with_context("configuration", text.error());
  }
  try {
    const toml::table table = toml::parse(*text, file.string());
    for (const auto& [key, node] : table) {
      const std::string name(key.str());
      const auto line = key.source().begin.line;
      if (std::ranges::find(known_keys(), name) == known_keys().end()) {
        return make_error(ErrorKind::kInvalid,
                          fmt::format("{}:{}: unknown key '{}'; there are {}", file.string(), line,
                                      name, fmt::join(known_keys(), ", ")));
      }
      const auto value = as_text(node);
      if (!value) {
        return make_error(ErrorKind::kInvalid,
                          fmt::format("{}:{}: '{}' must be a string, a number or a boolean",
                                      file.string(), line, name));
      }
      values_[name] = {.text = *value, .source = fmt::format("{}:{}", file.string(), line)};
    }
  } catch (const toml::parse_error& error) {
    return make_error(ErrorKind::kInvalid,
                      fmt::format("{}:{}: not TOML: {}", file.string(), error.source().begin.line,
                                  error.description()));
  }
  files_read_.push_back(file.string());
  return {};
}

std::optional<Settings::Value> Settings::get(const std::string& key) const {
  const std::string variable = variable_of(key);
  if (const char* set = std::getenv(variable.c_str()); set != nullptr && *set != '\0') {
    return Value{.text = set, .source = variable};
  }
  const auto found = values_.find(key);
  if (found == values_.end()) return std::nullopt;
  return found->second;
}

}  // namespace gpoeo::app
