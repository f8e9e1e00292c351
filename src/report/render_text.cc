// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <iterator>

#include "base/chance.h"
#include "report/render.h"

namespace gpoeo::report {
namespace {

std::string held_setting(const Session& s) {
  std::vector<std::string> parts;
  if (s.held_sm_mhz) parts.push_back(fmt::format("SM {:.0f} MHz", *s.held_sm_mhz));
  if (s.held_memory_mhz) parts.push_back(fmt::format("memory {:.0f} MHz", *s.held_memory_mhz));
  if (s.held_power_limit_w) {
    parts.push_back(fmt::format("power limit {:.0f} W", *s.held_power_limit_w));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

class Lines {
 public:
  template <typename... Args>
  void add(std::string_view label, fmt::format_string<Args...> f, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), "  {:<17}{}\n", label,
                   fmt::format(f, std::forward<Args>(args)...));
  }
  template <typename... Args>
  void title(fmt::format_string<Args...> f, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), "{}\n", fmt::format(f, std::forward<Args>(args)...));
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

void add_gpu(Lines& lines, const GpuSection& gpu) {
  lines.add("GPU", "{}: {} ({})", gpu.index, gpu.name, gpu.uuid);
  if (gpu.energy_j) {
    lines.add("  energy", "{}{}, from the {}", format_energy(*gpu.energy_j),
              gpu.mean_power_w ? fmt::format(", mean {:.0f} W", *gpu.mean_power_w) : "",
              gpu.energy_source);
  } else {
    lines.add("  energy", "unknown: {}", gpu.energy_source_reason);
  }
  if (gpu.power_gaps > 0) {
    lines.add("  gaps", "{} in the power samples, {:.1f} s in all", gpu.power_gaps,
              gpu.power_gap_s);
  }
  if (gpu.restore_failed) {
    lines.add("  clocks", "found {}; NOT RESTORED: run 'gpoeo reset'", gpu.clocks_found);
  } else if (!gpu.clocks_restored.empty()) {
    lines.add("  clocks", "found {}, restored to {}", gpu.clocks_found, gpu.clocks_restored);
  } else {
    lines.add("  clocks", "never touched");
  }
  if (!gpu.unavailable.empty()) {
    lines.add("  not available", "{}", fmt::join(gpu.unavailable, ", "));
  }
}

void add_profile(Lines& lines, const ProfileSection& p) {
  std::string activity;
  constexpr std::string_view kShown[] = {"sm_active",   "sm_occupancy", "tensor_active",
                                         "dram_active", "fp64_active",  "fp32_active",
                                         "fp16_active"};
  for (const std::string_view name : kShown) {
    const auto& value = p.activity.*find_activity(name)->field;
    if (!value) continue;
    activity += fmt::format("{}{} {:.0f} %", activity.empty() ? "" : ", ",
                            name.substr(0, name.find("_active")), 100 * *value);
  }
  if (activity.empty()) {
    lines.add("counters", "none: {}", p.why);
    return;
  }
  lines.add("counters", "{} over {:.1f} iterations, from {}{}", activity, p.iterations, p.source,
            p.recalled ? " (read earlier, for the same work)" : "");
  if (!p.why.empty()) lines.add("", "{}", p.why);
}

void add_saving(Lines& lines, const Session& s) {
  if (s.baseline) {
    const auto& b = *s.baseline;
    lines.add("baseline",
              "{:.4g} s and {:.4g} J an iteration at default clocks, measured in {} over {}",
              b.time_s.value, b.energy_j.value,
              b.windows == 1 ? "one window" : fmt::format("{} windows", b.windows),
              format_duration(b.seconds));
  }
  if (!s.saving) {
    lines.add("saving", "unknown: {}", s.no_saving_reason);
    return;
  }
  lines.add("energy saved", "{} net, searching included", format_percent(s.saving->net_saving));
  lines.add("time", "{} net (limit {:+.1f} %)", format_percent(s.saving->net_slowdown),
            100 * s.max_slowdown);
  if (s.saving->held_saving && s.saving->held_slowdown) {
    lines.add("at the clock", "{}: {} saved, {} time", held_setting(s),
              format_percent(*s.saving->held_saving), format_percent(*s.saving->held_slowdown));
  }
}

}  // namespace

std::string format_energy(double joules) {
  if (std::abs(joules) >= 1e6) return fmt::format("{:.2f} MJ", joules / 1e6);
  if (std::abs(joules) >= 1e4) return fmt::format("{:.1f} kJ", joules / 1e3);
  return fmt::format("{:.0f} J", joules);
}

std::string format_duration(double seconds) {
  const auto whole = static_cast<long long>(std::llround(seconds));
  if (whole < 120) return fmt::format("{:.1f} s", seconds);
  if (whole < 7200) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

std::string format_percent(const Figure& fraction) {
  return fmt::format("{:+.1f} % ± {:.1f}", 100 * fraction.value, 100 * kNinety * fraction.error);
}

std::string to_text(const Session& s) {
  Lines lines;
  lines.title("gpoeo report{}",
              s.simulated ? " (SIMULATED GPU: every figure below comes from the twin)" : "");
  lines.add("job", "{}: exit {}, {}", s.command, s.exit_code, format_duration(s.duration_s));
  lines.add("policy", "{}, slow-down limit {:.3g} %{}", s.policy, 100 * s.max_slowdown,
            s.measure_only_reason.empty() ? "" : "; measured only: " + s.measure_only_reason);
  for (const auto& gpu : s.gpus) add_gpu(lines, gpu);
  if (s.by_traces) {
    lines.add("iterations",
              "not counted, since no launch was seen: their power traces were compared");
  } else if (s.iterations == 0) {
    lines.add("iterations", "none seen: the job wrote neither a launch log nor step marks");
  } else {
    lines.add("iterations", "{} (from the {})", s.iterations, s.progress_source);
  }
  for (const auto& profile : s.profiles) add_profile(lines, profile);
  if (!s.launch_log.empty()) lines.add("launch log", "{}", s.launch_log);
  add_saving(lines, s);
  if (s.time_to_hold_s) {
    lines.add("search",
              "{} until a clock was held, {} at other than the held clock, {} clock writes",
              format_duration(*s.time_to_hold_s), format_duration(s.exploring_s), s.clock_writes);
  }
  if (s.truth) {
    const auto& t = *s.truth;
    lines.add("twin's truth", "{:+.1f} % energy saved, {:+.1f} % time, {} iterations, {}",
              100 * t.net_saving, 100 * t.net_slowdown, t.iterations, format_energy(t.energy_j));
    if (t.held_saving) {
      lines.add("", "at the held clock {:+.1f} % saved{}", 100 * *t.held_saving,
                t.held_slowdown ? fmt::format(", {:+.1f} % time", 100 * *t.held_slowdown) : "");
    }
  }
  for (const auto& note : s.notes) lines.add("note", "{}", note);
  if (s.saving)
    lines.title("  Intervals (±) are 90 %; a saving is energy per iteration against the baseline.");
  return lines.take();
}

}  // namespace gpoeo::report
