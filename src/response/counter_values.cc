// SPDX-License-Identifier: Apache-2.0
#include "response/counter_values.h"

namespace gpoeo::response {

CounterValues counter_values(const Activity& activity) {
  CounterValues values;
  for (std::size_t i = 0; i < kCounterCount; ++i) {
    const auto counter = static_cast<Counter>(i);
    if (const ActivityWord* word = find_activity(to_string(counter))) {
      values[counter] = activity.*word->field;
    }
  }
  return values;
}

}  // namespace gpoeo::response
