// SPDX-License-Identifier: Apache-2.0
// From the one vocabulary of counters (base/activity.h) to the counter columns of a response table.
#pragma once

#include "base/activity.h"
#include "response/response_table.h"

namespace gpoeo::response {

// By name: each column of a table is a word of the vocabulary.
CounterValues counter_values(const Activity& activity);

}  // namespace gpoeo::response
