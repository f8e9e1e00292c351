// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "bench/render.h"

namespace gpoeo::bench {
namespace {

using Json = nlohmann::ordered_json;

template <typename T, typename Number>
Json optional(const std::optional<T>& value, Number number) {
  return value ? Json(number(*value)) : Json(nullptr);
}

Json mhz(const std::optional<Hertz>& f) {
  return optional(f, [](Hertz x) { return to_mhz(x); });
}

void put_setting(Json& out, const std::string& prefix, const policy::ClockSetting& setting) {
  out[prefix + "_sm_mhz"] = mhz(setting.sm);
  out[prefix + "_mem_mhz"] = mhz(setting.memory);
  out[prefix + "_power_limit_w"] = optional(setting.power_limit, [](Watts w) { return w.value(); });
}

Json run_json(const Shown& shown, const Row& row) {
  Json out;
  out["workload"] = shown.suite.subjects[row.subject].name;
  out["policy"] = shown.contest.contestants[row.contestant].name;
  out["max_slowdown"] = shown.options.limits[row.limit];
  out["seed"] = row.seed;
  if (!row.error.empty()) {
    out["error"] = row.error;
    return out;
  }
  out["net_saving"] = row.run.net_saving;
  out["net_slowdown"] = row.run.net_slowdown;
  out["steady_saving"] = row.run.steady_saving;
  out["steady_slowdown"] = row.run.steady_slowdown;
  out["violation"] = is_violation(row.run.steady_slowdown, shown.options.limits[row.limit]);
  out["oracle_saving"] = row.oracle.saving();
  out["oracle_slowdown"] = row.oracle.response.time - 1;
  put_setting(out, "oracle", row.oracle.setting);
  put_setting(out, "held", row.run.held);
  out["time_to_hold_s"] = optional(row.run.time_to_hold_s, [](double s) { return s; });
  out["clock_writes"] = row.run.clock_writes;
  out["iteration_s"] = row.run.iteration_s;
  out["iterations"] = row.run.iterations;
  return out;
}

Json summary_json(const Shown& shown, const Summary& s) {
  const auto seconds = [](double x) { return x; };
  return {{"policy", shown.contest.contestants[s.contestant].name},
          {"max_slowdown", shown.options.limits[s.limit]},
          {"runs", s.runs},
          {"failed", s.failed},
          {"oracle_saving", s.oracle_saving},
          {"net_saving", s.net_saving},
          {"net_slowdown", s.net_slowdown},
          {"net_ratio", s.net_ratio},
          {"net_ratio_spread", s.net_ratio_spread},
          {"net_ratio_each", s.net_ratio_each},
          {"steady_saving", s.steady_saving},
          {"steady_slowdown", s.steady_slowdown},
          {"steady_ratio", s.steady_ratio},
          {"steady_ratio_each", s.steady_ratio_each},
          {"violations", s.violations},
          {"worst_steady_slowdown", s.worst_steady_slowdown},
          {"worst_net_saving", s.worst_net_saving},
          {"time_to_hold_median_s", optional(s.hold_median_s, seconds)},
          {"time_to_hold_p90_s", optional(s.hold_p90_s, seconds)},
          {"clock_writes_median", s.writes_median}};
}

}  // namespace

std::string as_json(const Shown& shown) {
  const ContestOptions& o = shown.options;
  Json out;
  out["command"] = shown.command;
  out["suite"] = shown.suite.name;
  out["origin"] = shown.suite.origin;
  out["job_seconds"] = o.run.job_s;
  out["seeds"] = o.seeds;
  out["first_seed"] = o.first_seed;
  out["noise"] = {{"scale", o.run.noise_scale},
                  {"jitter_cv", o.run.jitter_cv},
                  {"drift_sigma", o.run.drift_sigma}};
  out["runs"] = Json::array();
  for (const Row& row : shown.contest.rows) out["runs"].push_back(run_json(shown, row));
  out["summary"] = Json::array();
  for (const Summary& s : shown.contest.summaries) out["summary"].push_back(summary_json(shown, s));
  return out.dump(1, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace gpoeo::bench
