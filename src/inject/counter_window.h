// SPDX-License-Identifier: Apache-2.0
// Takes up requests for counters that gpoeo writes into the ring (wire/progress_ring.h): a thread
// of our own samples for the window, answers, and is gone.
//
// Thread rule: any thread; nothing here blocks, but the waits for a window's end: at the process's
// own end (2 s at most) and in end_counter_windows() (0.2 s at most), never in a launch.
#pragma once

#include <cstdint>

#include "inject/cupti_library.h"
#include "wire/ring_mapping.h"

namespace gpoeo::inject {

// Once, before the first request. `folder` is the ring's; the list of metrics lies in it.
void prepare_counter_windows(const char* folder);

// Window `window` of `ring` was asked for: in the callback of a launch in `context`, which is not
// kept. One window at a time: false while another runs (ask again at the next launch).
bool take_up_counter_window(const wire::RingMapping& ring, const CuptiLibrary& cupti, void* context,
                            std::uint64_t window);

// In a forked child: there is no thread here, whatever the parent had.
void forget_counter_window();

// Another CUPTI user arrives, on this thread: there are no more windows, and one that runs is
// closed when this returns. Bounded: if CUPTI does not come back in time, it goes on closing.
void end_counter_windows();

}  // namespace gpoeo::inject
