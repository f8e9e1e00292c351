// SPDX-License-Identifier: Apache-2.0
// A session as text for people and as JSON for programs.
#pragma once

#include <string>

#include "report/session.h"

namespace gpoeo::report {

// Lines, the last one ended. Every block that holds simulated figures says so.
std::string to_text(const Session& session);
// One object; units are in the names, unknown is null.
std::string to_json(const Session& session);

// "12.3 kJ", "450 J", "1.20 MJ".
std::string format_energy(double joules);
// "75 s", "12 min 5 s", "2 h 3 min".
std::string format_duration(double seconds);
// "19.8 % +- 0.4 %" with the 90 % interval.
std::string format_percent(const Figure& fraction);

}  // namespace gpoeo::report
