// SPDX-License-Identifier: Apache-2.0
#include "restore.h"

#include <fmt/format.h>

#include "backend.h"

namespace gpoeo::app {
namespace {

Result<std::unique_ptr<gpu::Device>> open_by_uuid(gpu::Driver& driver, const std::string& uuid) {
  for (unsigned i = 0; i < driver.device_count(); ++i) {
    auto device = driver.open(i, gpu::Access::kControl);
    if (device && (*device)->identity().uuid == uuid) return device;
  }
  return make_error(ErrorKind::kDeviceLost,
                    fmt::format("GPU {} is not there; is it lost, or in another machine?", uuid));
}

Status restore(const control::Journal& journal, const std::string& uuid,
               std::vector<control::RestoreOutcome>& outcomes) {
  // The lock first: a journal read before it may have been settled meanwhile.
  GPOEO_TRY(const auto lock, control::WriterLock::acquire(journal.folder(), uuid));
  GPOEO_TRY(const auto entry, journal.read(uuid));
  if (!entry) return make_error(ErrorKind::kNotFound, fmt::format("no journal for GPU {}", uuid));
  auto backend = open_backend(entry->driver);
  if (!backend) {
    const bool twin_is_gone =
        !entry->driver.twin.empty() && backend.error().kind == ErrorKind::kNotFound;
    if (!twin_is_gone) return std::unexpected(backend.error());
    return journal.remove(uuid);  // a simulated card that is no more holds no clocks
  }
  GPOEO_TRY(const auto device, open_by_uuid(*backend->driver, uuid));
  outcomes = control::restore_controls(*device->controls(), *entry);
  for (const auto& outcome : outcomes) GPOEO_TRY_STATUS(outcome.status);
  return journal.remove(uuid);
}

}  // namespace

RestoreResult restore_from_journal(const control::Journal& journal, const std::string& uuid) {
  RestoreResult result;
  result.status = restore(journal, uuid, result.outcomes);
  return result;
}

}  // namespace gpoeo::app
