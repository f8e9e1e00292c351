// SPDX-License-Identifier: Apache-2.0
#include "model/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>

#include "base/file.h"
#include "base/text.h"

namespace gpoeo::model {
namespace {

// FNV-1a, 64 bits: tells two sets apart, no more.
class Hash {
 public:
  void add(std::string_view text) {
    for (const char c : text) mix(static_cast<unsigned char>(c));
    mix(0);
  }
  void add(double value) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    for (int i = 0; i < 8; ++i) mix(static_cast<unsigned char>(bits >> (8 * i)));
  }
  std::string text() const { return fmt::format("{:016x}", state_); }

 private:
  void mix(unsigned char byte) { state_ = (state_ ^ byte) * 1099511628211U; }
  std::uint64_t state_ = 14695981039346656037U;
};

Line make_line(const response::WorkloadCurves& curves, const response::Line& line,
               double default_mhz, std::optional<double> default_memory) {
  Line out;
  if (line.mem_mhz && default_memory) out.memory_slowdown = *default_memory / *line.mem_mhz;
  out.is_default = out.memory_slowdown == 1;
  response::Setting setting;
  setting.mem_mhz = line.mem_mhz;
  setting.power_limit_w = line.power_limit_w;
  for (auto mhz = line.x.rbegin(); mhz != line.x.rend(); ++mhz) {
    setting.sm_mhz = *mhz;
    const response::Response r = curves.at(setting);
    if (!r.relative_power || r.clamped || *r.relative_power <= 0) continue;
    out.sm_slowdown.push_back(default_mhz / *mhz);
    out.log_time.push_back(std::log(r.relative_time));
    out.log_power.push_back(std::log(*r.relative_power));
  }
  return out;
}

}  // namespace

std::string Dataset::hash() const {
  Hash hash;
  for (const Example& e : examples) {
    hash.add(e.workload);
    hash.add(e.family);
    for (const auto& value : e.features.values) hash.add(value ? *value : -1e300);
    for (const Line& line : e.lines) {
      hash.add(line.memory_slowdown);
      for (std::size_t i = 0; i < line.log_time.size(); ++i) {
        hash.add(line.sm_slowdown[i]);
        hash.add(line.log_time[i]);
        hash.add(line.log_power[i]);
      }
    }
  }
  return hash.text();
}

Result<Families> read_families(const std::filesystem::path& path) {
  GPOEO_TRY(const std::string text, read_file(path));
  Families families;
  int number = 0;
  for (const std::string_view raw : split(text, '\n')) {
    ++number;
    const std::string_view line = trim(raw);
    if (line.empty() || line.front() == '#' || line == "workload,family") continue;
    const auto fields = split(line, ',');
    if (fields.size() != 2 || trim(fields[0]).empty() || trim(fields[1]).empty())
      return make_error(ErrorKind::kInvalid,
                        fmt::format("{}:{}: expected workload,family", path.string(), number));
    families.emplace(trim(fields[0]), trim(fields[1]));
  }
  return families;
}

Status add_table(Dataset& dataset, const response::ResponseTable& table, Device device,
                 const Families& families) {
  auto all = response::fit_all(table);
  if (!all) return with_context(table.source, all.error());
  for (std::size_t w = 0; w < all->size(); ++w) {
    const response::WorkloadCurves& curves = (*all)[w];
    const response::Point& at_default = table.workloads[w].default_point();
    Example example;
    example.workload = curves.name();
    const auto known = families.find(curves.name());
    example.family = known == families.end() ? curves.name() : known->second;
    example.device = device;
    if (at_default.setting.sm_mhz) example.device.sm_mhz = *at_default.setting.sm_mhz;
    if (at_default.setting.mem_mhz) example.device.memory_mhz = at_default.setting.mem_mhz;
    example.profile.power_w = at_default.power_w.value_or(curves.default_power_w());
    example.profile.counters = at_default.counters;
    for (const response::Line& line : curves.lines()) {
      if (line.axis != response::Line::Axis::kSmClock || example.device.sm_mhz <= 0) continue;
      Line made = make_line(curves, line, example.device.sm_mhz, example.device.memory_mhz);
      if (made.sm_slowdown.size() >= 2) example.lines.push_back(std::move(made));
    }
    if (example.lines.empty()) continue;
    example.features = make_features(example.device, example.profile);
    dataset.examples.push_back(std::move(example));
  }
  dataset.sources.push_back(table.source);
  return {};
}

Dataset without_families(const Dataset& dataset, std::span<const std::string> families) {
  Dataset out;
  out.sources = dataset.sources;
  for (const Example& e : dataset.examples)
    if (std::ranges::find(families, e.family) == families.end()) out.examples.push_back(e);
  return out;
}

}  // namespace gpoeo::model
