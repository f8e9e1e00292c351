// SPDX-License-Identifier: Apache-2.0
#include "control/guard.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace gpoeo::control {
namespace {

// What is given back where it cannot be told what there was.
constexpr std::string_view kDriverDefault = "driver default";

Result<SavedLock> found_lock(const Result<std::optional<gpu::ClockRange>>& lock) {
  if (lock) return SavedLock{.known = true, .range = *lock};
  if (lock.error().kind == ErrorKind::kNotSupported) return SavedLock{};
  return with_context("cannot tell the clock lock in force, so it is left alone", lock.error());
}

bool all_restored(const std::vector<RestoreOutcome>& outcomes) {
  return std::ranges::all_of(outcomes, [](const auto& o) { return o.status.has_value(); });
}

// After `outcomes`, only what could not be given back is still touched.
void forget_restored(JournalEntry& entry, const std::vector<RestoreOutcome>& outcomes) {
  for (const auto& outcome : outcomes) {
    if (!outcome.status) continue;
    switch (outcome.control) {
      case gpu::Control::kSmClocks:
        entry.sm_clocks.reset();
        break;
      case gpu::Control::kMemoryClocks:
        entry.memory_clocks.reset();
        break;
      case gpu::Control::kPowerLimit:
        entry.power_limit.reset();
        break;
      case gpu::Control::kCount:
        break;
    }
  }
}

}  // namespace

std::vector<RestoreOutcome> restore_controls(gpu::Controls& controls, const JournalEntry& entry) {
  std::vector<RestoreOutcome> outcomes;
  // The limit first: a raised power limit lets the clocks that follow take effect at once.
  if (entry.power_limit) {
    outcomes.push_back({gpu::Control::kPowerLimit,
                        fmt::format("{:.0f} W", entry.power_limit->value()),
                        controls.set_power_limit(*entry.power_limit)});
  }
  if (entry.memory_clocks) {
    const auto& range = entry.memory_clocks->range;
    outcomes.push_back(
        {gpu::Control::kMemoryClocks, describe(*entry.memory_clocks, kDriverDefault),
         range ? controls.lock_memory_clocks(*range) : controls.reset_memory_clocks()});
  }
  if (entry.sm_clocks) {
    const auto& range = entry.sm_clocks->range;
    outcomes.push_back({gpu::Control::kSmClocks, describe(*entry.sm_clocks, kDriverDefault),
                        range ? controls.lock_sm_clocks(*range) : controls.reset_sm_clocks()});
  }
  return outcomes;
}

Guard::Guard(gpu::Device& device, const Journal& journal, WriterLock lock, JournalEntry saved)
    : device_(&device), journal_(&journal), lock_(std::move(lock)), saved_(std::move(saved)) {}

// An optional that was moved from is still engaged: without this, the end of the old guard would
// restore the clocks under the new one.
Guard::Guard(Guard&& other) noexcept
    : device_(other.device_),
      journal_(other.journal_),
      lock_(std::exchange(other.lock_, std::nullopt)),
      saved_(std::exchange(other.saved_, {})),
      healed_(std::move(other.healed_)),
      writes_(other.writes_) {}

Result<Guard> Guard::acquire(gpu::Device& device, const Journal& journal, DriverRef driver) {
  const auto& identity = device.identity();
  if (device.controls() == nullptr) {
    return make_error(ErrorKind::kNotSupported,
                      fmt::format("GPU {} was opened read-only", identity.uuid));
  }
  GPOEO_TRY(WriterLock lock, WriterLock::acquire(journal.folder(), identity.uuid));
  JournalEntry fresh{.uuid = identity.uuid,
                     .gpu_name = identity.name,
                     .driver = std::move(driver),
                     .owner_pid = ::getpid(),
                     .sm_clocks = {},
                     .memory_clocks = {},
                     .power_limit = {}};
  Guard guard(device, journal, std::move(lock), std::move(fresh));

  // We hold the lock, so whoever wrote a journal that is still here is gone.
  GPOEO_TRY(const auto left, journal.read(identity.uuid));
  if (left) {
    guard.healed_ = restore_controls(*device.controls(), *left);
    if (!all_restored(guard.healed_)) {
      return make_error(
          ErrorKind::kIo,
          fmt::format("GPU {}: clocks left by gpoeo pid {} cannot be restored; run 'gpoeo reset'",
                      identity.uuid, left->owner_pid));
    }
    GPOEO_TRY_STATUS(journal.remove(identity.uuid));
  }
  return guard;
}

Guard::~Guard() {
  if (!lock_ || !touched()) return;  // moved from, or nothing to give back
  for (const auto& outcome : restore()) {
    if (outcome.status) continue;
    log::error("GPU {}: {} not restored: {}; run 'gpoeo reset'", saved_.uuid,
               gpu::to_string(outcome.control), outcome.status.error().text);
  }
}

// The journal must be on the disk before the control is written; a control that could not be
// journalled is not written.
template <typename Saved, typename Find>
Status Guard::remember(std::optional<Saved> JournalEntry::*slot, Find find) {
  if (saved_.*slot) return {};
  GPOEO_TRY(saved_.*slot, find());
  if (Status written = journal_->write(saved_); !written) {
    (saved_.*slot).reset();
    return with_context("clocks are left alone, since the journal cannot be written",
                        written.error());
  }
  return {};
}

// A first write that was refused outright changed nothing, so there is nothing to give back; after
// any other failure the control may have moved, and it stays in the journal.
template <typename Saved>
Status Guard::written(std::optional<Saved> JournalEntry::*slot, bool first, Status status) {
  if (status) {
    ++writes_;
    return status;
  }
  const ErrorKind kind = status.error().kind;
  const bool refused = kind == ErrorKind::kNoPermission || kind == ErrorKind::kNotSupported ||
                       kind == ErrorKind::kInvalid;
  if (first && refused) {
    (saved_.*slot).reset();
    if (Status journalled = update_journal(); !journalled) {
      log::warning("{}", journalled.error().text);
    }
  }
  return status;
}

Status Guard::update_journal() const {
  return touched() ? journal_->write(saved_) : journal_->remove(saved_.uuid);
}

Status Guard::lock_sm_clocks(gpu::ClockRange range) {
  const bool first = !saved_.sm_clocks;
  auto& controls = *device_->controls();
  GPOEO_TRY_STATUS(
      remember(&JournalEntry::sm_clocks, [&] { return found_lock(controls.sm_clock_lock()); }));
  return written(&JournalEntry::sm_clocks, first, controls.lock_sm_clocks(range));
}

Status Guard::lock_memory_clocks(gpu::ClockRange range) {
  const bool first = !saved_.memory_clocks;
  auto& controls = *device_->controls();
  GPOEO_TRY_STATUS(remember(&JournalEntry::memory_clocks,
                            [&] { return found_lock(controls.memory_clock_lock()); }));
  return written(&JournalEntry::memory_clocks, first, controls.lock_memory_clocks(range));
}

Status Guard::set_power_limit(Watts limit) {
  const bool first = !saved_.power_limit;
  auto& controls = *device_->controls();
  GPOEO_TRY_STATUS(
      remember(&JournalEntry::power_limit, [&] { return controls.power_limit_setting(); }));
  return written(&JournalEntry::power_limit, first, controls.set_power_limit(limit));
}

std::vector<RestoreOutcome> Guard::restore() { return restore(saved_); }

Status Guard::restore_only(gpu::Control control) {
  JournalEntry one;
  if (control == gpu::Control::kSmClocks) one.sm_clocks = saved_.sm_clocks;
  if (control == gpu::Control::kMemoryClocks) one.memory_clocks = saved_.memory_clocks;
  if (control == gpu::Control::kPowerLimit) one.power_limit = saved_.power_limit;
  for (const auto& outcome : restore(one)) GPOEO_TRY_STATUS(outcome.status);
  return {};
}

std::vector<RestoreOutcome> Guard::restore(const JournalEntry& what) {
  if (!what.touched()) return {};
  auto outcomes = restore_controls(*device_->controls(), what);
  writes_ += static_cast<unsigned>(outcomes.size());
  forget_restored(saved_, outcomes);
  if (Status journalled = update_journal(); !journalled) {
    log::warning("{}", journalled.error().text);
  }
  return outcomes;
}

}  // namespace gpoeo::control
