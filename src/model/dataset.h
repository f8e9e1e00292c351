// SPDX-License-Identifier: Apache-2.0
// What a model learns from: response tables, as profiles at default clocks and smoothed curves.
// Thread rule: values. Errors: kInvalid, naming the table.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/features.h"
#include "response/response_curve.h"

namespace gpoeo::model {

// Curves over the SM clock at one memory clock; logarithms of ratios over the default setting's.
struct Line {
  double memory_slowdown = 1;       // default memory clock / this one
  bool is_default = true;           // the default setting lies on it
  std::vector<double> sm_slowdown;  // default SM clock / clock, descending clock: ascending
  std::vector<double> log_time;
  std::vector<double> log_power;
};

struct Example {
  std::string workload;
  std::string family;  // never on both sides of a split
  Device device;
  Profile profile;
  Features features;
  std::vector<Line> lines;
};

struct Dataset {
  std::vector<Example> examples;
  std::vector<std::string> sources;  // what it was made of, for the header
  std::string hash() const;          // 16 hex digits over all numbers and names
};

// Workload -> family; a workload that is not named is its own.
using Families = std::map<std::string, std::string, std::less<>>;
// CSV `workload,family`; comments with '#'.
Result<Families> read_families(const std::filesystem::path& path);

// Adds each workload of the table that was swept over SM clocks; lines over power limits have no
// clocks to learn from and are left out. `device.sm_mhz` 0: the table's highest.
Status add_table(Dataset& dataset, const response::ResponseTable& table, Device device,
                 const Families& families);
// Without those families; for judging a model on what it never saw.
Dataset without_families(const Dataset& dataset, std::span<const std::string> families);

}  // namespace gpoeo::model
