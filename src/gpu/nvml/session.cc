// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml/session.h"

#include <chrono>
#include <utility>

namespace gpoeo::nvml {

Result<std::shared_ptr<Session>> Session::start(Library library, const Clock& clock) {
  const std::string path = library.path();
  GPOEO_TRY_STATUS(library.check(library.get().init(), path, "nvmlInit"));
  std::shared_ptr<Session> session(new Session(std::move(library), clock));
  session->offset_ = session->measure_offset().value;
  return session;
}

Session::~Session() { get().shutdown(); }

Session::Offset Session::measure_offset() const {
  const Instant before = clock_.now();
  long long library_ns = 0;
  if (get().twin_now == nullptr || get().twin_now(&library_ns) != abi::kSuccess) {
    library_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                     std::chrono::system_clock::now().time_since_epoch())
                     .count();
  }
  const Instant after = clock_.now();
  const Instant theirs = instant_from_ns(library_ns);
  const Duration uncertainty = after - before;
  // Between our two looks: one and the same scale, as a twin's always is with the twin's clock.
  if (before <= theirs && theirs <= after) return {Duration::zero(), uncertainty};
  return {before + uncertainty / 2 - theirs, uncertainty};
}

void Session::refresh_offset() {
  constexpr Duration kStep = std::chrono::milliseconds(20);
  const Offset measured = measure_offset();
  const Duration change = measured.value - offset_;
  const Duration allowed = kStep + measured.uncertainty;
  if (change > allowed || -change > allowed) offset_ = measured.value;
}

Instant Session::to_instant(unsigned long long stamp_us) const {
  return instant_from_ns(static_cast<std::int64_t>(stamp_us) * 1000) + offset_;
}

unsigned long long Session::to_stamp_us(Instant instant) const {
  const std::int64_t ns = to_unix_ns(instant - offset_);
  return ns <= 0 ? 0 : static_cast<unsigned long long>(ns / 1000);
}

}  // namespace gpoeo::nvml
