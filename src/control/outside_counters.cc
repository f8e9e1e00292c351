// SPDX-License-Identifier: Apache-2.0
#include "control/outside_counters.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "control/mean_activity.h"
#include "control/window_iterations.h"

namespace gpoeo::control {
namespace {

constexpr Seconds kLongestAnswer{600.0};

struct ToolAnswer {
  CounterReading reading;
  Instant begin, end;
  std::size_t passes = 0;
};

// Its own words, but a file's bytes all the same: what is no known word or no plausible value is
// left out.
Result<ToolAnswer> parse_answer(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) {
    return make_error(ErrorKind::kIo, "gpoeo-counters ended without an answer");
  }
  if (json.contains("error")) {
    return make_error(ErrorKind::kNotSupported, json["error"].is_string()
                                                    ? json["error"].get<std::string>()
                                                    : "it failed without a reason");
  }
  const auto number = [&](const char* name) {
    const auto at = json.find(name);
    return at != json.end() && at->is_number() ? at->get<double>() : 0.0;
  };
  const auto instant = [&](const char* name) {
    const auto at = json.find(name);
    return instant_from_ns(at != json.end() && at->is_number_integer() ? at->get<std::int64_t>()
                                                                       : 0);
  };
  ToolAnswer answer;
  answer.begin = instant("begin_unix_ns");
  answer.end = instant("end_unix_ns");
  answer.passes = static_cast<std::size_t>(std::clamp(number("passes"), 0.0, 64.0));
  answer.reading.counted = Seconds(number("covered_s"));
  answer.reading.origin = CounterOrigin::kPmSampling;
  const auto values = json.find("values");
  if (values != json.end() && values->is_object()) {
    for (const auto& [name, value] : values->items()) {
      const ActivityWord* word = find_activity(name);
      if (word == nullptr || !value.is_number()) continue;
      set_if_plausible(answer.reading.activity, *word, value.get<double>());
    }
  }
  const Seconds window = to_seconds(answer.end - answer.begin);
  if (answer.reading.activity == Activity{} || window.value() <= 0 || window > kLongestAnswer ||
      answer.reading.counted.value() < 0 || answer.reading.counted > window) {
    return make_error(ErrorKind::kInvalid, "gpoeo-counters told nothing plausible");
  }
  return answer;
}

}  // namespace

Status OutsideCounters::begin(Instant, Seconds iteration) {
  ending_.clear();  // whatever has not ended by now hangs, and is killed
  const Seconds length = passes_length(iteration);
  const wire::RingReader* ring = progress_.followed_ring();
  done_.clear();
  passes_ = 0;
  iteration_ = iteration;
  for (const std::string& gpu : options_.gpus) {
    std::vector<std::string> command{options_.program.string(),
                                     "--until-input-closes",
                                     "--gpu",
                                     gpu,
                                     "--metrics",
                                     options_.metrics_file.string(),
                                     "--seconds",
                                     fmt::format("{:.3f}", length.value()),
                                     "--iteration",
                                     fmt::format("{:.6f}", std::min(iteration.value(), 3600.0))};
    if (ring != nullptr) {
      command.insert(command.end(), {"--job", std::to_string(ring->header().pid)});
    }
    auto tool = ToolProcess::start(command);
    if (!tool) {
      cancel();
      return std::unexpected(tool.error());
    }
    running_.push_back(std::move(*tool));
  }
  if (running_.empty()) return make_error(ErrorKind::kNotFound, "no GPU to read counters of");
  return {};
}

std::optional<Result<CounterReading>> OutsideCounters::poll(Instant, std::span<const Instant> ends,
                                                            bool) {
  for (auto tool = running_.begin(); tool != running_.end();) {
    const auto text = tool->poll();
    if (!text) {
      ++tool;
      continue;
    }
    tool = running_.erase(tool);
    const auto answer =
        *text ? parse_answer(**text) : Result<ToolAnswer>(std::unexpected(text->error()));
    if (!answer) {
      cancel();
      return Result<CounterReading>(std::unexpected(answer.error()));
    }
    begin_ = done_.empty() ? answer->begin : std::min(begin_, answer->begin);
    end_ = done_.empty() ? answer->end : std::max(end_, answer->end);
    passes_ = std::max(passes_, answer->passes);
    done_.push_back(answer->reading);
  }
  if (!running_.empty()) return std::nullopt;
  if (done_.empty()) return make_error(ErrorKind::kInvalid, "no reading was begun");
  CounterReading mean = done_.front();
  std::vector<Activity> activities;
  for (const CounterReading& one : done_) activities.push_back(one.activity);
  mean.activity = mean_activity(activities);
  count_iterations(ends, {.begin = begin_, .end = end_, .passes = passes_, .before = iteration_},
                   mean);
  return Result<CounterReading>(mean);
}

void OutsideCounters::cancel() {
  for (ToolProcess& tool : running_) {
    tool.stop();
    ending_.push_back(std::move(tool));
  }
  running_.clear();
}

}  // namespace gpoeo::control
