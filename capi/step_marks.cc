// SPDX-License-Identifier: Apache-2.0
// libgpoeo.so: step marks of a user's own program (include/gpoeo.h) in a ring of their own, beside
// the injected library's, so that neither needs the other.
#include <gpoeo.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "wire/ring_mapping.h"

namespace {

using gpoeo::wire::RecordKind;
using gpoeo::wire::RingMapping;

// Not ".ring" alone: that one is the injected library's.
constexpr char kSuffix[] = ".steps.ring";
constexpr std::uint32_t kCapacity = 1U << 14;

struct Marks {
  pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
  std::atomic<long> pid{0};  // the process that `ring` belongs to, whether there is one or not
  RingMapping ring;
};
constinit Marks g_marks;

std::int64_t read_clock(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

void open_ring(long pid) {
  pthread_mutex_lock(&g_marks.opening);
  if (g_marks.pid.load(std::memory_order_relaxed) != pid) {
    g_marks.ring = RingMapping();  // a parent's pages stay mapped and are left alone
    const char* folder = getenv(gpoeo::wire::kRingDirEnv);
    if (folder != nullptr && *folder != '\0') {
      const std::int64_t offset_ns = read_clock(CLOCK_REALTIME) - read_clock(CLOCK_MONOTONIC);
      g_marks.ring.create(folder, kSuffix, gpoeo::wire::RingProducer::kStepMarks, offset_ns,
                          kCapacity);
    }
    g_marks.pid.store(pid, std::memory_order_release);
  }
  pthread_mutex_unlock(&g_marks.opening);
}

int mark(RecordKind kind) {
  const long pid = getpid();
  if (g_marks.pid.load(std::memory_order_acquire) != pid) open_ring(pid);
  if (!g_marks.ring) return 0;
  g_marks.ring.push(kind, read_clock(CLOCK_MONOTONIC), 0, 0);
  return 1;
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) int gpoeo_begin() { return mark(RecordKind::kBeginSteps); }
__attribute__((visibility("default"))) void gpoeo_step() { mark(RecordKind::kStep); }
__attribute__((visibility("default"))) void gpoeo_end() { mark(RecordKind::kEndSteps); }
}
