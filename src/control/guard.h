// SPDX-License-Identifier: Apache-2.0
// The only way the program writes a control. A Guard remembers what it found, journals it before
// the first write of each control, and gives everything back.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "control/journal.h"
#include "gpu/device.h"

namespace gpoeo::control {

// What became of one control when it was given back.
struct RestoreOutcome {
  gpu::Control control;
  std::string restored_to;  // "not locked", "210..1200 MHz", "driver default", "250 W"
  Status status;
};

// Puts every control that `entry` names back, each on its own: one that fails stops no other.
std::vector<RestoreOutcome> restore_controls(gpu::Controls& controls, const JournalEntry& entry);

// Thread rule: the thread that owns the device. The device must outlive the guard.
class Guard {
 public:
  // Takes the GPU's writer lock (kBusy when another gpoeo has it). A journal left by a process that
  // died is settled first: its controls are restored, and what was done is told in `healed`.
  // kNoPermission / kNotSupported when the device was opened read-only.
  static Result<Guard> acquire(gpu::Device& device, const Journal& journal, DriverRef driver);

  Guard(Guard&& other) noexcept;  // what was moved from restores nothing
  Guard& operator=(Guard&&) = delete;
  Guard(const Guard&) = delete;
  ~Guard();  // restores what is still touched, and logs what fails

  Status lock_sm_clocks(gpu::ClockRange range);
  Status lock_memory_clocks(gpu::ClockRange range);
  Status set_power_limit(Watts limit);
  // One control back to what was found; nothing to do when it was never touched.
  Status restore_only(gpu::Control control);
  // Back to what was found, keeping the lock on the GPU. Removes the journal when all of it worked;
  // calling it again tries again what failed.
  std::vector<RestoreOutcome> restore();

  bool touched() const { return saved_.touched(); }
  const JournalEntry& saved() const { return saved_; }
  // Controls restored on behalf of a gpoeo that died earlier.
  const std::vector<RestoreOutcome>& healed() const { return healed_; }
  unsigned writes() const { return writes_; }

 private:
  Guard(gpu::Device& device, const Journal& journal, WriterLock lock, JournalEntry saved);
  template <typename Saved, typename Find>
  Status remember(std::optional<Saved> JournalEntry::*slot, Find find);
  template <typename Saved>
  Status written(std::optional<Saved> JournalEntry::*slot, bool first, Status status);
  Status update_journal() const;
  std::vector<RestoreOutcome> restore(const JournalEntry& what);

  gpu::Device* device_;
  const Journal* journal_;
  std::optional<WriterLock> lock_;
  JournalEntry saved_;
  std::vector<RestoreOutcome> healed_;
  unsigned writes_ = 0;
};

}  // namespace gpoeo::control
