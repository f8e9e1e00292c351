// SPDX-License-Identifier: Apache-2.0
#include "twin/job_spec.h"

#include <fmt/format.h>

#include <cmath>

#include "response/response_table.h"
#include "twin/data_files.h"
#include "twin/toml_file.h"

namespace gpoeo::twin {
namespace {

PhaseSpec shape_phase(const char* name, PhaseKind kind, double share, double level, int launches) {
  PhaseSpec phase;
  phase.name = name;
  phase.kind = kind;
  phase.share = share;
  phase.level = level;
  phase.launches = launches;
  return phase;
}

PhaseKind read_kind(TomlFile& file, const std::string& key) {
  const std::string kind = file.text_or(key, "kernel");
  if (kind == "kernel") return PhaseKind::kKernel;
  if (kind == "host") return PhaseKind::kHost;
  if (kind == "copy") return PhaseKind::kCopy;
  if (kind == "idle") return PhaseKind::kIdle;
  file.fault(key, R"(must be "kernel", "host", "copy" or "idle")");
  return PhaseKind::kKernel;
}

int whole(TomlFile& file, const std::string& key, int otherwise, int least, int most) {
  const double value = file.number_or(key, otherwise, least, most);
  if (value != std::floor(value)) file.fault(key, "must be a whole number");
  return static_cast<int>(value);
}

PhaseSpec read_phase(TomlFile& file, const std::string& at) {
  PhaseSpec phase;
  phase.name = file.text(at + "name");
  phase.kind = read_kind(file, at + "kind");
  phase.share = file.number(at + "share", 0, 1e6);
  phase.every = whole(file, at + "every", 1, 1, 1'000'000);
  const bool kernel = phase.kind == PhaseKind::kKernel;
  phase.launches = whole(file, at + "launches", kernel ? 20 : 0, 0, 100'000);
  phase.level = file.number_or(at + "level", kernel ? 1.0 : 0.6, 0, 100);
  AnalyticResponse& r = phase.response;
  r.compute = file.number_or(at + "compute", r.compute, 0, 1);
  r.memory = file.number_or(at + "memory", r.memory, 0, 1);
  r.fixed = file.number_or(at + "fixed", r.fixed, 0, 1);
  r.overlap = file.number_or(at + "overlap", r.overlap, 0, 1);
  r.sm_activity = file.number_or(at + "sm_activity", r.sm_activity, 0, 1);
  r.memory_activity = file.number_or(at + "memory_activity", r.memory_activity, 0, 1);
  if (file.has(at + "sm_active")) r.sm_active = file.number(at + "sm_active", 0, 1);
  r.tensor = file.number_or(at + "tensor", r.tensor, 0, 1);
  r.fp64 = file.number_or(at + "fp64", r.fp64, 0, 1);
  r.fp32 = file.number_or(at + "fp32", r.fp32, 0, 1);
  r.fp16 = file.number_or(at + "fp16", r.fp16, 0, 1);
  r.occupancy = file.number_or(at + "occupancy", r.occupancy, 0, 1);
  r.pcie_tx_bytes_per_s = file.number_or(at + "pcie_tx_bytes_per_s", 0, 0, 1e12);
  r.pcie_rx_bytes_per_s = file.number_or(at + "pcie_rx_bytes_per_s", 0, 0, 1e12);
  if (kernel && r.compute + r.memory + r.fixed <= 0)
    file.fault(at + "compute", "and memory and fixed are all 0; give one of them");
  return phase;
}

VariantSpec read_variant(TomlFile& file, const std::string& at) {
  VariantSpec variant;
  variant.name = file.text_or(at + "name", "");
  variant.weight = file.number_or(at + "weight", 1.0, 1e-6, 1e6);
  variant.length = file.number_or(at + "length", 1.0, 1e-3, 1e3);
  for (int i = 0; i < file.size(at + "phases"); ++i)
    variant.phases.push_back(read_phase(file, fmt::format("{}phases[{}].", at, i)));
  if (file.has(at + "repeat")) {
    variant.repeat_first = whole(file, at + "repeat.first", 0, 0, kMaxPhases);
    variant.repeat_count = whole(file, at + "repeat.count", 1, 1, kMaxPhases);
    variant.repeats = whole(file, at + "repeat.times", 1, 1, 10'000);
  }
  if (variant.phases.empty()) file.fault(at + "phases", "is missing; add at least one");
  return variant;
}

Result<response::WorkloadCurves> fit_workload(const std::filesystem::path& table_path,
                                              const std::string& workload) {
  GPOEO_TRY(const response::ResponseTable table, response::read_response_table(table_path));
  GPOEO_TRY(const response::Workload* found, table.find(workload));
  return response::WorkloadCurves::fit(*found);
}

// `table`: a path, or the name of a shipped table ("a100").
std::shared_ptr<const response::WorkloadCurves> read_measured(TomlFile& file,
                                                              const std::string& at) {
  const std::string workload = file.text(at + "measured");
  std::filesystem::path table = file.text(at + "table");
  if (!file.ok()) return nullptr;
  if (!table.has_parent_path() && !table.has_extension())
    if (const auto data = data_directory(); data)
      table = *data / "tables" / (table.string() + ".csv");
  auto curves = fit_workload(table, workload);
  if (!curves) {
    file.fault(at + "measured", "cannot be used: " + curves.error().text);
    return nullptr;
  }
  return std::make_shared<const response::WorkloadCurves>(std::move(*curves));
}

StageSpec read_stage(TomlFile& file, const std::string& at) {
  StageSpec stage;
  stage.iterations = static_cast<std::int64_t>(file.number_or(at + "iterations", 0, 0, 1e12));
  stage.length = file.number_or(at + "length", 1.0, 1e-3, 1e3);
  if (file.has(at + "measured")) stage.measured = read_measured(file, at);
  const int variants = file.size(at + "variants");
  for (int i = 0; i < variants; ++i)
    stage.variants.push_back(read_variant(file, fmt::format("{}variants[{}].", at, i)));
  if (variants == 0) stage.variants.push_back(read_variant(file, at));
  return stage;
}

}  // namespace

void make_steady(JobSpec& spec) {
  spec.jitter_cv = 0.0;
  spec.drift_sigma = 0.0;
  spec.power_drift_sigma = 0.0;
}

JobSpec measured_job(std::string name, std::shared_ptr<const response::WorkloadCurves> measured,
                     double iteration_s) {
  VariantSpec variant;
  variant.phases = {shape_phase("input", PhaseKind::kHost, 0.06, 0.6, 0),
                    shape_phase("forward", PhaseKind::kKernel, 0.30, 1.0, 40),
                    shape_phase("backward", PhaseKind::kKernel, 0.54, 1.1, 80),
                    shape_phase("update", PhaseKind::kKernel, 0.10, 0.8, 10)};
  StageSpec stage;
  stage.variants.push_back(std::move(variant));
  stage.measured = std::move(measured);
  JobSpec job;
  job.name = std::move(name);
  job.iteration_s = iteration_s;
  job.stages.push_back(std::move(stage));
  return job;
}

JobSpec read_job(TomlFile& file, const std::string& at, std::string_view otherwise_named) {
  JobSpec job;
  job.name = file.text_or(at + "name", otherwise_named);
  job.iteration_s = file.number(at + "iteration_s", 1e-4, 1e4);
  job.loop_stages = file.flag_or(at + "loop", false);
  job.memory_bytes = static_cast<std::uint64_t>(file.number_or(at + "memory_mib", 8192, 1, 1e7))
                     << 20;
  job.jitter_cv = file.number_or(at + "noise.jitter_cv", job.jitter_cv, 0, 1);
  job.drift_sigma = file.number_or(at + "noise.drift_sigma", job.drift_sigma, 0, 0.5);
  job.drift_tau_s = file.number_or(at + "noise.drift_tau_s", job.drift_tau_s, 0.1, 1e6);
  job.power_drift_sigma =
      file.number_or(at + "noise.power_drift_sigma", job.power_drift_sigma, 0, 0.2);
  if (file.has(at + "lengths")) {
    const auto scales = file.numbers(at + "lengths.scale", 1e-3, 1e3);
    const auto weights = file.numbers(at + "lengths.weight", 1e-6, 1e6);
    if (scales.size() != weights.size())
      file.fault(at + "lengths.weight", "must have one number for each of lengths.scale");
    for (std::size_t i = 0; i < std::min(scales.size(), weights.size()); ++i)
      job.lengths.emplace_back(scales[i], weights[i]);
  }
  const int stages = file.size(at + "stages");
  for (int i = 0; i < stages; ++i)
    job.stages.push_back(read_stage(file, fmt::format("{}stages[{}].", at, i)));
  if (stages == 0) job.stages.push_back(read_stage(file, at));
  return job;
}

Result<JobSpec> load_job(const std::filesystem::path& path) {
  GPOEO_TRY(TomlFile file, TomlFile::read(path));
  JobSpec job = read_job(file, "", path.stem().string());
  GPOEO_TRY_STATUS(file.finish());
  return job;
}

}  // namespace gpoeo::twin
