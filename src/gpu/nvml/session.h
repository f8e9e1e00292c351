// SPDX-License-Identifier: Apache-2.0
// One initialised NVML: the library, its life from nvmlInit to nvmlShutdown, and the way between
// its time stamps and ours. Shared by the driver and the devices it opened, so that the last of
// them shuts NVML down whatever order they go in. Internal to this module.
#pragma once

#include <memory>
#include <optional>

#include "base/clock.h"
#include "gpu/nvml/library.h"

namespace gpoeo::nvml {

class Session {
 public:
  static Result<std::shared_ptr<Session>> start(Library library, const Clock& clock);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const Library& library() const { return library_; }
  const Getters& get() const { return library_.get(); }
  const Clock& clock() const { return clock_; }
  bool simulated() const { return get().twin_version != nullptr; }

  // NVML stamps samples with microseconds of the system's real-time clock (a twin: of its own
  // time). The distance to our clock is taken once, so that an Instant made from a stamp turns
  // back into exactly that stamp; refresh() takes it again when the system's clock was stepped.
  Instant to_instant(unsigned long long stamp_us) const;
  unsigned long long to_stamp_us(Instant instant) const;
  void refresh_offset();

 private:
  Session(Library library, const Clock& clock) : library_(std::move(library)), clock_(clock) {}
  struct Offset {
    Duration value;
    Duration uncertainty;
  };
  Offset measure_offset() const;
  Library library_;
  const Clock& clock_;
  Duration offset_{};
};

}  // namespace gpoeo::nvml
