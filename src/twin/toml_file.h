// SPDX-License-Identifier: Apache-2.0
// A TOML file read field by field, with errors a person can act on: "FILE:LINE: key 'a.b' ...".
// The first fault is kept and everything after it answers defaults, so that a loader reads straight
// through and asks once at the end. Keys that nobody asked for are faults too (a typing error in
// an optional key would otherwise pass in silence).
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gpoeo::twin {

// Keys are paths: "power.idle_w", "stages[1].phases[0].name". Thread rule: one thread.
class TomlFile {
 public:
  static Result<TomlFile> read(const std::filesystem::path& path);
  // `name` stands for the path in messages.
  static Result<TomlFile> parse(std::string_view text, std::string name);
  TomlFile(TomlFile&&) noexcept;
  TomlFile& operator=(TomlFile&&) noexcept;
  ~TomlFile();

  bool has(std::string_view key) const;
  // Elements of an array (of tables, mostly); 0 when it is not there.
  int size(std::string_view key) const;

  double number(std::string_view key, double least, double most);
  double number_or(std::string_view key, double otherwise, double least, double most);
  std::string text(std::string_view key);
  std::string text_or(std::string_view key, std::string_view otherwise);
  bool flag_or(std::string_view key, bool otherwise);
  std::vector<double> numbers(std::string_view key, double least, double most);
  std::vector<std::string> texts_or(std::string_view key, std::vector<std::string> otherwise);

  // A fault of the caller's own: kept like the others, with the key's line.
  void fault(std::string_view key, std::string_view what);
  bool ok() const { return !error_; }
  // The first fault, if any; else the first key that was never asked for.
  Status finish() const;

 private:
  struct Document;
  TomlFile(std::unique_ptr<Document> document, std::string name);

  std::unique_ptr<Document> document_;
  std::string name_;
  std::unique_ptr<Error> error_;
};

}  // namespace gpoeo::twin
