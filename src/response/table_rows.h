// SPDX-License-Identifier: Apache-2.0
// The rows of a response table, checked field by field; the inner half of response_table.h, which
// says what is accepted. Not for use outside this module.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "response/response_table.h"

namespace gpoeo::response {

// Workloads in order of first appearance, repeats averaged, points in no order, defaults not yet
// found. Comment lines are added to `comments`.
Result<std::vector<Workload>> collect_rows(std::string_view text, std::string_view source,
                                           std::vector<std::string>& comments);

// At most 60 characters of `s` with what a terminal might act on replaced by '?'.
std::string printable(std::string_view s);

}  // namespace gpoeo::response
