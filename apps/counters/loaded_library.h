// SPDX-License-Identifier: Apache-2.0
// The library that another process has loaded, as one that we may load too.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gpoeo::counters {

// The file of which `pid` has mapped a library whose name begins with `name`. Empty when there is
// none, and whenever its path or its code cannot be trusted: the process must be of our own user
// and see the files and the processes that we see (a number from a container is another process's
// here), and the file must be ours or root's and writable by nobody else.
std::string loaded_library(std::int64_t pid, std::string_view name);

}  // namespace gpoeo::counters
