// SPDX-License-Identifier: Apache-2.0
#include "twin/nvml/front.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "base/text.h"

namespace gpoeo::nvml_abi {
// A handle is the address of its record, so that a wrong one can be told without following it.
struct DeviceRecord {
  char unused;
};
}  // namespace gpoeo::nvml_abi

namespace gpoeo::twin::front {
namespace {

nvml_abi::DeviceRecord records[kMaxCards];

// The library's only process-wide state, as NVML's interface wants it. Never destroyed: other
// threads may still call while the process exits.
struct State {
  std::mutex mutex;
  std::shared_ptr<Segment> segment;
  int users = 0;
};

State& state() {
  static State* const the_state = [] {
    auto* made = new State;
    // No other thread holds the lock at the moment of a fork, so the child can take it.
    pthread_atfork([] { state().mutex.lock(); }, [] { state().mutex.unlock(); },
                   [] { state().mutex.unlock(); });
    return made;
  }();
  return *the_state;
}

// Whoever sets GPOEO_TWIN asked for a twin, and NVML has no way to say what is wrong with it.
void explain(const Error& error) {
  const std::string line = "gpoeo twin: " + error.text + "\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace

Return start(bool needs_gpus) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (s.users == 0) {
    auto segment = Segment::attach_from_environment();
    if (!segment) {
      if (std::getenv(kSegmentEnvironment) != nullptr) explain(segment.error());
      if (segment.error().kind == ErrorKind::kNoPermission) return nvml_abi::kNoPermission;
      return nvml_abi::kDriverNotLoaded;
    }
    if (needs_gpus && (*segment)->card_count() == 0) return nvml_abi::kGpuNotFound;
    s.segment = std::move(*segment);
  }
  ++s.users;
  return nvml_abi::kSuccess;
}

Return stop() {
  State& s = state();
  std::shared_ptr<Segment> last;  // unmapped after the lock is let go
  const std::lock_guard lock(s.mutex);
  if (s.users == 0) return nvml_abi::kUninitialized;
  if (--s.users == 0) last = std::move(s.segment);
  return nvml_abi::kSuccess;
}

std::shared_ptr<Segment> attached() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  return s.segment;
}

DeviceHandle handle_of(unsigned card) { return &records[card]; }

unsigned card_of(DeviceHandle handle) {
  for (unsigned card = 0; card < kMaxCards; ++card) {
    if (handle == &records[card]) return card;
  }
  return kMaxCards;
}

Return to_return(const Error& error) {
  switch (error.kind) {
    case ErrorKind::kInvalid:
      return nvml_abi::kInvalidArgument;
    case ErrorKind::kNotFound:
      return nvml_abi::kNotFound;
    case ErrorKind::kNotSupported:
      return nvml_abi::kNotSupported;
    case ErrorKind::kNoPermission:
      return nvml_abi::kNoPermission;
    case ErrorKind::kBusy:
      return nvml_abi::kInUse;
    case ErrorKind::kDeviceLost:
      return nvml_abi::kGpuIsLost;
    case ErrorKind::kTimeout:
      return nvml_abi::kTimeout;
    case ErrorKind::kIo:
      break;
  }
  return nvml_abi::kUnknown;
}

Return copy_text(std::string_view text, char* out, unsigned length) {
  if (text.size() + 1 > length) return nvml_abi::kInsufficientSize;
  std::memcpy(out, text.data(), text.size());
  out[text.size()] = '\0';
  return nvml_abi::kSuccess;
}

unsigned to_mhz_number(Hertz clock) { return static_cast<unsigned>(std::lround(to_mhz(clock))); }
unsigned to_milliwatts(Watts power) {
  return static_cast<unsigned>(std::lround(std::max(0.0, power.value()) * 1e3));
}
unsigned to_percent(double share) {
  return static_cast<unsigned>(std::lround(std::clamp(share, 0.0, 1.0) * 100));
}

unsigned long long to_stamp_us(Instant time) {
  return static_cast<unsigned long long>(to_unix_ns(time) / 1000);
}

// The end of the stamp's microsecond: a sample inside it has been seen already.
Instant from_stamp_us(unsigned long long stamp_us) {
  constexpr unsigned long long kLatest = 9'000'000'000'000'000ULL;  // fits in nanoseconds
  return instant_from_ns(static_cast<std::int64_t>(std::min(stamp_us, kLatest)) * 1000 + 999);
}

std::optional<PciAddress> parse_pci(std::string_view text) {
  const std::string copy(text);
  PciAddress address;
  unsigned function = 0;
  int used = 0;
  if (std::sscanf(copy.c_str(), "%x:%x:%x.%x%n", &address.domain, &address.bus, &address.device,
                  &function, &used) == 4 &&
      static_cast<std::size_t>(used) == copy.size()) {
    return address;
  }
  address = {};
  if (std::sscanf(copy.c_str(), "%x:%x.%x%n", &address.bus, &address.device, &function, &used) ==
          3 &&
      static_cast<std::size_t>(used) == copy.size()) {
    return address;
  }
  return std::nullopt;
}

}  // namespace gpoeo::twin::front
