// SPDX-License-Identifier: Apache-2.0
// A contest as text, JSON (DESIGN section 10) and a page. Pure: the same contest, the same bytes.
#pragma once

#include <string>

#include "bench/contest.h"

namespace gpoeo::bench {

struct Shown {
  const Suite& suite;
  const ContestOptions& options;
  const Contest& contest;
  std::string command;  // as it can be run again
};

std::string as_text(const Shown& shown);
std::string as_json(const Shown& shown);
// Self-contained: inline SVG, no script, nothing fetched. Every text from outside is escaped.
std::string as_html(const Shown& shown);

std::string escape_html(std::string_view text);

}  // namespace gpoeo::bench
