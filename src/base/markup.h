// SPDX-License-Identifier: Apache-2.0
// Text that others wrote, made safe for HTML and SVG.
#pragma once

#include <string>
#include <string_view>

namespace gpoeo {

// For element content and quoted attributes.
std::string escape_markup(std::string_view text);

}  // namespace gpoeo
