// SPDX-License-Identifier: Apache-2.0
// The recorded traces of ../shared/data/h200_traces, with their truth, for benchmarks.
#pragma once

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "iteration/log_csv.h"

namespace gpoeo::bench {

struct Recording {
  std::string name;
  std::string kind;                // regular, accum, short, aperiodic, drift, shift
  std::vector<double> accepted_s;  // periods
  iteration::PowerTrace trace;     // time from its first sample
  std::vector<double> end_s;       // iteration ends on the same time
};

// A CSV column of numbers without the header.
inline std::vector<double> read_column(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  std::vector<double> values;
  while (std::getline(file, line)) {
    if (const auto value = parse_double(line.substr(0, line.find(',')))) values.push_back(*value);
  }
  return values;
}

// Empty, with a message, when the recordings are not there.
inline std::vector<Recording> read_recordings(const std::filesystem::path& shared) {
  const auto folder = shared / "data" / "h200_traces";
  std::ifstream truth(folder / "truth.csv");
  if (!truth) fmt::print("no recordings in {}: skipped\n", folder.string());
  std::string line;
  std::getline(truth, line);
  std::vector<Recording> recordings;
  while (std::getline(truth, line)) {
    const auto fields = split(line, ',');
    if (fields.size() < 3) continue;
    Recording r;
    r.name = fields[0];
    r.kind = fields[1];
    for (const auto part : split(fields[2], ' ')) {
      if (const auto value = parse_double(part)) r.accepted_s.push_back(*value);
    }
    const auto power = folder / (r.name + ".power.csv");
    const auto trace = iteration::read_trace_csv(power);
    if (!trace) {
      fmt::print("{}\n", trace.error().text);
      continue;
    }
    r.trace = *trace;
    const double start_us = read_column(power).front();
    for (const double end_us : read_column(folder / (r.name + ".iterations.csv"))) {
      r.end_s.push_back((end_us - start_us) * 1e-6);
    }
    recordings.push_back(std::move(r));
  }
  return recordings;
}

// The part of `trace` in [from, to), its time stretched by `factor` around `from`.
inline iteration::PowerTrace cut(const iteration::PowerTrace& trace, double from, double to,
                                 double factor) {
  iteration::PowerTrace part;
  for (std::size_t i = 0; i < trace.t_s.size(); ++i) {
    if (trace.t_s[i] < from || trace.t_s[i] >= to) continue;
    part.t_s.push_back(from + (trace.t_s[i] - from) * factor);
    part.power_w.push_back(trace.power_w[i]);
  }
  return part;
}

// Mean time of the iterations that end in [from, to].
inline std::optional<double> mean_iteration_s(const std::vector<double>& end_s, double from,
                                              double to) {
  std::vector<double> inside;
  for (const double end : end_s) {
    if (end >= from && end <= to) inside.push_back(end);
  }
  if (inside.size() < 3) return std::nullopt;
  return (inside.back() - inside.front()) / static_cast<double>(inside.size() - 1);
}

}  // namespace gpoeo::bench
