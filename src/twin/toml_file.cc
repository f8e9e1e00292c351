// SPDX-License-Identifier: Apache-2.0
#include "twin/toml_file.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <set>
#include <utility>

#include "base/file.h"

namespace gpoeo::twin {

struct TomlFile::Document {
  toml::table root;
  std::set<std::string, std::less<>> asked;
};

namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 20;

// Leaves in file order: the first one that `visit` returns true for, as (path, line).
template <typename Visit>
bool walk(const toml::node& node, const std::string& path, Visit visit) {
  if (const auto* table = node.as_table()) {
    for (auto&& [key, child] : *table) {
      const std::string name(key.str());
      if (walk(child, path.empty() ? name : path + "." + name, visit)) return true;
    }
    return false;
  }
  if (const auto* array = node.as_array()) {
    const bool tables = !array->empty() && (*array)[0].is_table();
    if (tables) {
      for (std::size_t i = 0; i < array->size(); ++i)
        if (walk((*array)[i], fmt::format("{}[{}]", path, i), visit)) return true;
      return false;
    }
  }
  return visit(path, node);
}

}  // namespace

TomlFile::TomlFile(std::unique_ptr<Document> document, std::string name)
    : document_(std::move(document)), name_(std::move(name)) {}
TomlFile::TomlFile(TomlFile&&) noexcept = default;
TomlFile& TomlFile::operator=(TomlFile&&) noexcept = default;
TomlFile::~TomlFile() = default;

Result<TomlFile> TomlFile::read(const std::filesystem::path& path) {
  GPOEO_TRY(const std::string text, read_file(path, kMaxFileBytes));
  return parse(text, path.string());
}

Result<TomlFile> TomlFile::parse(std::string_view text, std::string name) {
  auto document = std::make_unique<Document>();
  try {
    document->root = toml::parse(text);
  } catch (const toml::parse_error& error) {
    return make_error(ErrorKind::kInvalid,
                      fmt::format("{}:{}: not valid TOML: {}; correct this line", name,
                                  error.source().begin.line, error.description()));
  }
  return TomlFile(std::move(document), std::move(name));
}

bool TomlFile::has(std::string_view key) const {
  return static_cast<bool>(document_->root.at_path(key));
}

int TomlFile::size(std::string_view key) const {
  const auto* array = document_->root.at_path(key).as_array();
  return array ? static_cast<int>(array->size()) : 0;
}

void TomlFile::fault(std::string_view key, std::string_view what) {
  if (error_) return;
  const auto node = document_->root.at_path(key);
  const auto line = node ? node.node()->source().begin.line : 0;
  const std::string where = line > 0 ? fmt::format("{}:{}", name_, line) : name_;
  error_ = std::make_unique<Error>(
      Error{ErrorKind::kInvalid, fmt::format("{}: key '{}' {}", where, key, what)});
}

double TomlFile::number(std::string_view key, double least, double most) {
  document_->asked.emplace(key);
  const auto node = document_->root.at_path(key);
  const auto value = node.value<double>();
  if (!node) {
    fault(key, fmt::format("is missing; add it, a number from {} to {}", least, most));
    return least;
  }
  if (!node.is_number() || !value) {
    fault(key, fmt::format("must be a number from {} to {}", least, most));
    return least;
  }
  if (!(*value >= least && *value <= most)) {
    fault(key, fmt::format("is {}; it must be from {} to {}", *value, least, most));
    return least;
  }
  return *value;
}

double TomlFile::number_or(std::string_view key, double otherwise, double least, double most) {
  return has(key) ? number(key, least, most) : otherwise;
}

std::string TomlFile::text(std::string_view key) {
  document_->asked.emplace(key);
  const auto node = document_->root.at_path(key);
  const auto value = node.value<std::string>();
  if (!value || value->empty()) {
    fault(key, node ? "must be a text in quotes" : "is missing; add it, a text in quotes");
    return {};
  }
  return *value;
}

std::string TomlFile::text_or(std::string_view key, std::string_view otherwise) {
  return has(key) ? text(key) : std::string(otherwise);
}

bool TomlFile::flag_or(std::string_view key, bool otherwise) {
  document_->asked.emplace(key);
  const auto node = document_->root.at_path(key);
  if (!node) return otherwise;
  if (!node.is_boolean()) fault(key, "must be true or false");
  return node.value_or(otherwise);
}

std::vector<double> TomlFile::numbers(std::string_view key, double least, double most) {
  document_->asked.emplace(key);
  const auto node = document_->root.at_path(key);
  const auto* array = node.as_array();
  if (!array || array->empty()) {
    fault(key, node ? "must be a list of numbers" : "is missing; add it, a list of numbers");
    return {};
  }
  std::vector<double> values;
  for (const auto& element : *array) {
    const auto value = element.value<double>();
    if (!element.is_number() || !value || !(*value >= least && *value <= most)) {
      fault(key, fmt::format("must be a list of numbers from {} to {}", least, most));
      return {};
    }
    values.push_back(*value);
  }
  return values;
}

std::vector<std::string> TomlFile::texts_or(std::string_view key,
                                            std::vector<std::string> otherwise) {
  document_->asked.emplace(key);
  const auto node = document_->root.at_path(key);
  if (!node) return otherwise;
  const auto* array = node.as_array();
  std::vector<std::string> values;
  if (array)
    for (const auto& element : *array)
      if (const auto value = element.value<std::string>()) values.push_back(*value);
  if (!array || values.size() != array->size()) fault(key, "must be a list of texts in quotes");
  return values;
}

Status TomlFile::finish() const {
  if (error_) return std::unexpected(*error_);
  Status status;
  walk(document_->root, "", [&](const std::string& path, const toml::node& node) {
    if (document_->asked.contains(path)) return false;
    status = make_error(ErrorKind::kInvalid,
                        fmt::format("{}:{}: key '{}' is not known; check its spelling and section "
                                    "(docs/twin.md lists them) or remove it",
                                    name_, node.source().begin.line, path));
    return true;
  });
  return status;
}

}  // namespace gpoeo::twin
