// SPDX-License-Identifier: Apache-2.0
// Giving back what a journal says, without the process that wrote it: for `reset` and the guardian.
#pragma once

#include <string>
#include <vector>

#include "control/guard.h"
#include "control/journal.h"

namespace gpoeo::app {

struct RestoreResult {
  Status status;  // of the whole: kBusy while its gpoeo is alive
  std::vector<control::RestoreOutcome> outcomes;
};

// Opens the driver that the journal names, restores each control, and removes the journal when all
// of it worked.
RestoreResult restore_from_journal(const control::Journal& journal, const std::string& uuid);

}  // namespace gpoeo::app
