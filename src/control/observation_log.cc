// SPDX-License-Identifier: Apache-2.0
#include "control/observation_log.h"

#include <algorithm>

namespace gpoeo::control {

void add_bounded(std::vector<policy::Observation>& observations, const policy::Observation& newest,
                 std::size_t most) {
  observations.push_back(newest);
  if (observations.size() <= most) return;
  policy::ClockSetting setting;
  std::ptrdiff_t looks = 0;
  for (const policy::Observation& o : observations) {
    const auto n = std::ranges::count(observations, o.setting, &policy::Observation::setting);
    if (n > looks) {
      looks = n;
      setting = o.setting;
    }
  }
  constexpr int kFirstLooks = 2;
  int seen = 0;
  for (auto o = observations.begin(); o + 1 != observations.end(); ++o) {
    if (o->setting == setting && ++seen > kFirstLooks) {
      observations.erase(o);
      return;
    }
  }
  observations.erase(observations.begin());  // `most` settings and more: the oldest look
}

}  // namespace gpoeo::control
