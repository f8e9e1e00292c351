// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "report/render.h"

namespace gpoeo::report {
namespace {

using nlohmann::json;

template <typename T>
json or_null(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}

json to_json(const Figure& f) { return {{"value", f.value}, {"standard_error", f.error}}; }

json or_null(const std::optional<Figure>& f) { return f ? to_json(*f) : json(nullptr); }

json to_json(const GpuSection& g) {
  return {{"index", g.index},
          {"uuid", g.uuid},
          {"name", g.name},
          {"energy_j", or_null(g.energy_j)},
          {"mean_power_w", or_null(g.mean_power_w)},
          {"energy_source", g.energy_source},
          {"energy_source_reason", g.energy_source_reason},
          {"unavailable", g.unavailable},
          {"clocks_found", g.clocks_found},
          {"clocks_restored", g.clocks_restored.empty() ? json(nullptr) : json(g.clocks_restored)},
          {"restore_failed", g.restore_failed},
          {"power_gaps", g.power_gaps},
          {"power_gap_s", g.power_gap_s}};
}

json to_json(const BaselineSection& b) {
  return {{"time_s", to_json(b.time_s)},
          {"energy_j", to_json(b.energy_j)},
          {"windows", b.windows},
          {"seconds", b.seconds}};
}

json to_json(const SavingSection& s) {
  return {{"net_saving", to_json(s.net_saving)},
          {"net_slowdown", to_json(s.net_slowdown)},
          {"held_saving", or_null(s.held_saving)},
          {"held_slowdown", or_null(s.held_slowdown)}};
}

json to_json(const TruthSection& t) {
  return {{"net_saving", t.net_saving},
          {"net_slowdown", t.net_slowdown},
          {"held_saving", or_null(t.held_saving)},
          {"held_slowdown", or_null(t.held_slowdown)},
          {"energy_j", t.energy_j},
          {"iterations", t.iterations}};
}

}  // namespace

std::string to_json(const Session& s) {
  json j{{"gpoeo_version", s.gpoeo_version},
         {"driver_version", s.driver_version},
         {"command", s.command},
         {"simulated", s.simulated},
         {"policy", s.policy},
         {"max_slowdown", s.max_slowdown},
         {"measure_only_reason",
          s.measure_only_reason.empty() ? json(nullptr) : json(s.measure_only_reason)},
         {"exit_code", s.exit_code},
         {"duration_s", s.duration_s},
         {"progress_source", s.progress_source},
         {"iterations", s.iterations},
         {"launch_log", s.launch_log},
         {"baseline", s.baseline ? to_json(*s.baseline) : json(nullptr)},
         {"saving", s.saving ? to_json(*s.saving) : json(nullptr)},
         {"no_saving_reason", s.saving ? json(nullptr) : json(s.no_saving_reason)},
         {"held_sm_mhz", or_null(s.held_sm_mhz)},
         {"time_to_hold_s", or_null(s.time_to_hold_s)},
         {"exploring_s", s.exploring_s},
         {"clock_writes", s.clock_writes},
         {"notes", s.notes},
         {"twin_truth", s.truth ? to_json(*s.truth) : json(nullptr)}};
  j["gpus"] = json::array();
  j["decisions"] = json::array();
  for (const auto& gpu : s.gpus) j["gpus"].push_back(to_json(gpu));
  for (const auto& d : s.decisions) {
    j["decisions"].push_back(
        {{"at_s", d.at_s}, {"purpose", d.purpose}, {"setting", d.setting}, {"why", d.why}});
  }
  return j.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace gpoeo::report
