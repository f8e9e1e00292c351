// SPDX-License-Identifier: Apache-2.0
#include "gpu/testing/recording_device.h"

namespace gpoeo::gpu::testing {

std::vector<std::string> CallLog::lines() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> texts;
  for (const Line& line : lines_) texts.push_back(line.text);
  return texts;
}

std::vector<std::string> CallLog::writes() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> texts;
  for (const Line& line : lines_) {
    if (line.write) texts.push_back(line.text);
  }
  return texts;
}

void CallLog::clear() {
  const std::lock_guard lock(mutex_);
  lines_.clear();
}

void CallLog::after(Call call, std::string_view arguments, const Error* error) {
  std::string text(to_string(call));
  if (!arguments.empty()) text.append(" ").append(arguments);
  if (error != nullptr) text.append(" -> ").append(gpoeo::to_string(error->kind));
  const std::lock_guard lock(mutex_);
  lines_.push_back({std::move(text), is_write(call)});
}

}  // namespace gpoeo::gpu::testing
