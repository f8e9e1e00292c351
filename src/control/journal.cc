// SPDX-License-Identifier: Apache-2.0
#include "control/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace gpoeo::control {
namespace {

using nlohmann::json;

constexpr int kJournalVersion = 1;
constexpr std::string_view kJournalSuffix = ".json";

json lock_to_json(const SavedLock& lock) {
  json j{{"known", lock.known}, {"range_mhz", nullptr}};
  if (lock.range) {
    j["range_mhz"] = {std::llround(to_mhz(lock.range->min)), std::llround(to_mhz(lock.range->max))};
  }
  return j;
}

constexpr long long kMostMhz = 100'000;
constexpr double kMostMilliwatts = 1e7;

// Numbers that no card has are damage, and must not be written to one.
struct BadNumber {
  std::string text;
};

SavedLock lock_from_json(const json& j) {
  SavedLock lock{.known = j.at("known").get<bool>(), .range = std::nullopt};
  if (const json& range = j.at("range_mhz"); !range.is_null()) {
    const auto low = range.at(0).get<long long>(), high = range.at(1).get<long long>();
    if (low < 0 || high < low || high > kMostMhz) {
      throw BadNumber{fmt::format("clocks {}..{} MHz", low, high)};
    }
    lock.range =
        gpu::ClockRange{megahertz(static_cast<double>(low)), megahertz(static_cast<double>(high))};
  }
  return lock;
}

JournalEntry entry_from_json(const json& j) {
  JournalEntry entry;
  entry.uuid = j.at("uuid").get<std::string>();
  entry.gpu_name = j.at("gpu_name").get<std::string>();
  entry.driver.library = j.at("driver").at("library").get<std::string>();
  entry.driver.twin = j.at("driver").at("twin").get<std::string>();
  entry.owner_pid = j.at("owner_pid").get<std::int64_t>();
  const json& controls = j.at("controls");
  if (controls.contains("sm_clocks")) entry.sm_clocks = lock_from_json(controls["sm_clocks"]);
  if (controls.contains("memory_clocks")) {
    entry.memory_clocks = lock_from_json(controls["memory_clocks"]);
  }
  if (controls.contains("power_limit_mw")) {
    const auto limit_mw = controls["power_limit_mw"].get<double>();
    if (!(limit_mw > 0 && limit_mw <= kMostMilliwatts)) {
      throw BadNumber{fmt::format("power limit {} mW", limit_mw)};
    }
    entry.power_limit = Watts(limit_mw / 1000.0);
  }
  return entry;
}

// A UUID comes from a driver or a command line and must not walk out of the folder.
Result<std::filesystem::path> path_in(const std::filesystem::path& folder, const std::string& uuid,
                                      std::string_view suffix) {
  const bool safe = !uuid.empty() && uuid.size() < 128 && uuid.front() != '.' &&
                    std::ranges::all_of(uuid, [](unsigned char c) {
                      return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
                    });
  if (!safe) {
    return make_error(ErrorKind::kInvalid, fmt::format("'{}' is not a GPU UUID", uuid));
  }
  return folder / (uuid + std::string(suffix));
}

std::unexpected<Error> damaged(const std::filesystem::path& path, std::string_view why) {
  return make_error(
      ErrorKind::kInvalid,
      fmt::format("{}: damaged journal ({}); reset the GPU's clocks by hand (nvidia-smi -rgc "
                  "-rmc), then remove the file",
                  path.string(), why));
}

}  // namespace

std::string describe(const SavedLock& lock, std::string_view when_unknown) {
  if (!lock.known) return std::string(when_unknown);
  if (!lock.range) return "not locked";
  return fmt::format("{:.0f}..{:.0f} MHz", to_mhz(lock.range->min), to_mhz(lock.range->max));
}

std::filesystem::path default_state_dir() {
  if (const char* named = std::getenv("GPOEO_STATE_DIR"); named != nullptr && *named != '\0') {
    return named;
  }
  if (::geteuid() == 0) return "/run/gpoeo";
  if (const char* runtime = std::getenv("XDG_RUNTIME_DIR");
      runtime != nullptr && *runtime != '\0') {
    return std::filesystem::path(runtime) / "gpoeo";
  }
  return fmt::format("/tmp/gpoeo-{}", ::geteuid());
}

Result<WriterLock> WriterLock::acquire(const std::filesystem::path& folder,
                                       const std::string& uuid) {
  GPOEO_TRY(const auto path, path_in(folder, uuid, ".lock"));
  Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return errno_error(path.string(), errno);
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return errno_error(path.string(), errno);
    const auto holder = read_file(path, 64);
    return make_error(
        ErrorKind::kBusy,
        fmt::format("GPU {} is controlled by another gpoeo (pid {}); wait for it, or run with "
                    "--dry-run to measure only",
                    uuid, holder ? std::string(trim(*holder)) : "unknown"));
  }
  const std::string pid = std::to_string(::getpid()) + "\n";
  if (::ftruncate(file.get(), 0) != 0 ||
      ::pwrite(file.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    return errno_error(path.string(), errno);
  }
  return WriterLock(std::move(file));
}

Result<Journal> Journal::open(std::filesystem::path folder) {
  GPOEO_TRY_STATUS(ensure_private_directory(folder));
  return Journal(std::move(folder));
}

Result<std::filesystem::path> Journal::path_of(const std::string& uuid) const {
  return path_in(folder_, uuid, kJournalSuffix);
}

Status Journal::write(const JournalEntry& entry) const {
  GPOEO_TRY(const auto path, path_of(entry.uuid));
  json controls = json::object();
  if (entry.sm_clocks) controls["sm_clocks"] = lock_to_json(*entry.sm_clocks);
  if (entry.memory_clocks) controls["memory_clocks"] = lock_to_json(*entry.memory_clocks);
  if (entry.power_limit) {
    controls["power_limit_mw"] = std::llround(entry.power_limit->value() * 1000.0);
  }
  const json j{{"version", kJournalVersion},
               {"uuid", entry.uuid},
               {"gpu_name", entry.gpu_name},
               {"driver", {{"library", entry.driver.library}, {"twin", entry.driver.twin}}},
               {"owner_pid", entry.owner_pid},
               {"controls", controls}};
  return write_file_durably(path, j.dump(1, ' ', false, json::error_handler_t::replace) + "\n");
}

Result<std::optional<JournalEntry>> Journal::read(const std::string& uuid) const {
  GPOEO_TRY(const auto path, path_of(uuid));
  if (Status trusted = check_trusted_file(path); !trusted) {
    if (trusted.error().kind == ErrorKind::kNotFound) return std::optional<JournalEntry>{};
    return std::unexpected(trusted.error());
  }
  GPOEO_TRY(const std::string text, read_file(path, std::size_t{1} << 20));
  try {
    const json j = json::parse(text);
    if (const int version = j.at("version").get<int>(); version != kJournalVersion) {
      return make_error(ErrorKind::kInvalid,
                        fmt::format("{}: journal version {}, this gpoeo reads {}; use the gpoeo "
                                    "that wrote it",
                                    path.string(), version, kJournalVersion));
    }
    JournalEntry entry = entry_from_json(j);
    if (entry.uuid != uuid) {
      return make_error(ErrorKind::kInvalid,
                        fmt::format("{}: speaks of GPU {}", path.string(), entry.uuid));
    }
    return std::optional<JournalEntry>(std::move(entry));
  } catch (const json::exception& error) {
    return damaged(path, error.what());
  } catch (const BadNumber& error) {
    return damaged(path, error.text);
  }
}

std::vector<std::string> Journal::list() const {
  std::vector<std::string> uuids;
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(folder_, error)) {
    if (file.path().extension() == kJournalSuffix) uuids.push_back(file.path().stem().string());
  }
  std::ranges::sort(uuids);
  return uuids;
}

Status Journal::remove(const std::string& uuid) const {
  GPOEO_TRY(const auto path, path_of(uuid));
  return remove_file_durably(path);
}

}  // namespace gpoeo::control
