// SPDX-License-Identifier: Apache-2.0
#include "control/setting_spans.h"

#include <algorithm>

namespace gpoeo::control {

void SettingSpans::begin(Instant at) { spans_ = {SettingSpan{.from = at, .to = at}}; }

// A span like the last one that begins at `at`.
SettingSpan& SettingSpans::next(Instant at) {
  SettingSpan span = spans_.back();
  spans_.back().to = at;
  span.from = span.to = at;
  if (spans_.back().from >= at) {
    spans_.back() = span;
  } else {
    spans_.push_back(span);
  }
  return spans_.back();
}

void SettingSpans::set(const policy::ClockSetting& setting, Instant at) {
  if (begun() && spans_.back().setting != setting) next(at).setting = setting;
}

void SettingSpans::idle(bool idle, Instant at) {
  if (begun() && spans_.back().idle != idle) next(at).idle = idle;
}

void SettingSpans::enter_phase(std::size_t phase, Instant began) {
  if (!begun()) return;
  // The span that was going on then is divided, and all that came since is the phase's.
  auto first = std::ranges::find_if(spans_, [&](const auto& s) { return s.from >= began; });
  if (first != spans_.begin() && (first == spans_.end() || first->from > began)) {
    SettingSpan rest = *(first - 1);
    (first - 1)->to = began;
    rest.from = began;
    first = spans_.insert(first, rest);
  }
  std::for_each(first, spans_.end(), [&](SettingSpan& s) { s.phase = phase; });
}

std::vector<SettingSpan> SettingSpans::until(Instant end) const {
  std::vector<SettingSpan> all = spans_;
  if (!all.empty()) all.back().to = std::max(all.back().from, end);
  return all;
}

}  // namespace gpoeo::control
