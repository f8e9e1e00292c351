// SPDX-License-Identifier: Apache-2.0
// Simulated cards in a file that several processes map (default /dev/shm/gpoeo-twin-NAME), so that
// a job, our tools, the twin's libnvidia-ml.so.1 and other NVML clients share them. Nobody runs in
// the background: whoever asks first brings a card to the present.
//
// Time: the segment's own, wall time times a speed factor from its creation on, or manual (only
// step() moves it). A robust mutex a card; its state is kept twice and switched by one atomic
// index, so a holder killed at any instruction leaves the last whole state.
//
// Trust: the file has mode 0600 and one owner; an attacher checks magic, version, sizes and owner
// and refuses politely. Thread rule: any number of threads.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "twin/card_store.h"

namespace gpoeo::twin {

inline constexpr unsigned kMaxCards = 16;
inline constexpr const char* kSegmentEnvironment = "GPOEO_TWIN";  // name, or path with a '/'

struct SegmentOptions {
  std::vector<DeviceModel> cards;  // 1..kMaxCards
  double speed = 1.0;              // twin seconds per wall second, 0.001..10000
  bool manual_time = false;
  std::uint64_t seed = 1;
  std::optional<Instant> start;  // twin time at creation; default the present Unix time
};

struct SegmentInfo {
  std::string name;
  std::filesystem::path path;
  std::vector<std::string> devices;  // names, one a card
  double speed = 1.0;
  bool manual_time = false;
  std::int64_t creator_pid = 0;
  bool in_use = false;  // some process has it mapped
};

class Segment final : public CardStore {
 public:
  // "a100" -> /dev/shm/gpoeo-twin-a100; anything with a '/' is a path already.
  static std::filesystem::path path_of(std::string_view name_or_path);

  // kBusy when the file is there (with the cure); nothing existing is ever replaced.
  static Result<std::unique_ptr<Segment>> create(std::string_view name_or_path,
                                                 const SegmentOptions& options);
  // kNotFound, kNoPermission or kInvalid (not a twin, other version, wrong size) otherwise.
  static Result<std::unique_ptr<Segment>> attach(std::string_view name_or_path);
  // The segment that GPOEO_TWIN names; kNotFound when the variable is not set.
  static Result<std::unique_ptr<Segment>> attach_from_environment();
  // Unlinks; processes that have it mapped keep it. kBusy while any process, this one too, has it
  // mapped, unless forced; kNotFound.
  static Status remove(std::string_view name_or_path, bool force = false);
  // All segments in the default folder that this user may read.
  static Result<std::vector<SegmentInfo>> list();

  ~Segment() override;

  const std::string& segment_name() const;
  const std::filesystem::path& path() const;
  double speed() const;
  bool manual_time() const;
  // Manual time only (kInvalid otherwise).
  Status step(Duration d);
  // Follows the segment's time; sleep_until() scales, or with manual time polls until others have
  // stepped there. Lives as long as the segment.
  Clock& twin_clock();

  unsigned card_count() const override;
  const DeviceModel& device(unsigned card) const override;
  const CardName& name(unsigned card) const override;
  Instant now() const override;
  const Clock& clock() const override;
  Status visit(unsigned card, const std::function<Status(Card&)>& f) override;

  // Fills pid and process start of this process unless `options.pid` is set; a job whose process
  // has died is dropped by whoever advances next.
  Result<JobHandle> attach_job(unsigned card, const Work& work, JobOptions options);
  Status detach_job(unsigned card, JobHandle job);
  struct JobNews {
    JobProgress progress;
    std::vector<IterationEnd> ends;  // of iterations `first` and later
  };
  // How a job stands, in one visit. kNotFound when it is no longer attached; kInvalid when the end
  // of iteration `first` is no longer kept (the newest 16384 are).
  Result<JobNews> job_news(unsigned card, JobHandle job, std::int64_t first);

 private:
  struct Mapping;
  explicit Segment(std::unique_ptr<Mapping> mapping);
  std::unique_ptr<Mapping> mapping_;
};

}  // namespace gpoeo::twin
