// SPDX-License-Identifier: Apache-2.0
#include "control/mean_activity.h"

namespace gpoeo::control {

Activity mean_activity(std::span<const Activity> all) {
  Activity mean;
  for (const ActivityWord& word : kActivityWords) {
    double sum = 0;
    int number = 0;
    for (const Activity& one : all) {
      if (!(one.*word.field)) continue;
      sum += *(one.*word.field);
      ++number;
    }
    if (number > 0) mean.*word.field = sum / number;
  }
  return mean;
}

}  // namespace gpoeo::control
