// SPDX-License-Identifier: Apache-2.0
// What a GPU's controls were before we touched them, on disk, so that anybody can give them back
// when we no longer can: `gpoeo reset`, the guardian, the next run on that GPU.
//
// One folder (default_state_dir()), per GPU a journal `<uuid>.json` and a lock file `<uuid>.lock`.
// The journal is written and fsynced before the first write to a control and removed after the last
// restore that worked. The lock (flock) makes one writer per GPU and goes with its process. Files
// of the wrong owner or mode are refused: whoever can write the journal could make root write
// clocks.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "gpu/device.h"

namespace gpoeo::control {

// How to reach the GPU again from another process.
struct DriverRef {
  std::string library;  // path for dlopen
  std::string twin;     // path of the twin's segment; empty for a real card
};

// A clock lock as it was found. `known` is false on real cards: NVML cannot be asked, and the
// driver's default is what we give back.
struct SavedLock {
  bool known = false;
  std::optional<gpu::ClockRange> range;  // nullopt: was not locked
};

// "not locked", "210..1200 MHz", or `when_unknown`.
std::string describe(const SavedLock& lock, std::string_view when_unknown);

struct JournalEntry {
  std::string uuid;
  std::string gpu_name;
  DriverRef driver;
  std::int64_t owner_pid = 0;
  // What was touched; a control that is not here was never written.
  std::optional<SavedLock> sm_clocks;
  std::optional<SavedLock> memory_clocks;
  std::optional<Watts> power_limit;

  bool touched() const { return sm_clocks || memory_clocks || power_limit; }
};

// $GPOEO_STATE_DIR, else /run/gpoeo for root, else $XDG_RUNTIME_DIR/gpoeo, else /tmp/gpoeo-<uid>.
std::filesystem::path default_state_dir();

// Holding it means being the GPU's one writer.
class WriterLock {
 public:
  // kBusy, naming the holder's pid, when another process has it.
  static Result<WriterLock> acquire(const std::filesystem::path& folder, const std::string& uuid);

 private:
  explicit WriterLock(Fd file) : file_(std::move(file)) {}
  Fd file_;
};

class Journal {
 public:
  // Creates the folder if needed and checks its owner and mode.
  static Result<Journal> open(std::filesystem::path folder);

  Status write(const JournalEntry& entry) const;
  // nullopt: this GPU has no journal.
  Result<std::optional<JournalEntry>> read(const std::string& uuid) const;
  // UUIDs that have a journal.
  std::vector<std::string> list() const;
  Status remove(const std::string& uuid) const;
  const std::filesystem::path& folder() const { return folder_; }

 private:
  explicit Journal(std::filesystem::path folder) : folder_(std::move(folder)) {}
  Result<std::filesystem::path> path_of(const std::string& uuid) const;
  std::filesystem::path folder_;
};

}  // namespace gpoeo::control
