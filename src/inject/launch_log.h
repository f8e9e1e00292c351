// SPDX-License-Identifier: Apache-2.0
// Writes one record for each kernel or graph launch of this process into its progress ring.
//
// What it costs a launch: two calls of a function that looks at two words, one read of the clock,
// one 32-byte store. It never blocks, allocates or calls the system (docs/inject.md has figures).
#pragma once

#include "inject/cupti_library.h"
#include "wire/ring_mapping.h"

namespace gpoeo::inject {

// CUPTI's callback. Any thread.
void on_driver_call(void* user, int domain, std::uint32_t id, const void* data);

// Thread rule: start() once, from InitializeInjection(). The state it makes is never destroyed:
// callbacks may come until the process is gone.
//
// Makes the ring in `folder` and starts the log, or leaves in the ring why it could not.
void start_launch_log(const char* folder);

}  // namespace gpoeo::inject
