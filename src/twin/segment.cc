// SPDX-License-Identifier: Apache-2.0
#include "twin/segment.h"

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

#include "twin/card_name.h"
#include "twin/segment_file.h"

namespace gpoeo::twin {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDefaultFolder = "/dev/shm";
constexpr std::string_view kFilePrefix = "gpoeo-twin-";
// A dead job is noticed at the latest this much wall time after it died, when anybody asks.
constexpr std::int64_t kLivenessPeriodNs = 5'000'000;

std::int64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

std::int64_t unix_ns() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

std::int64_t twin_ns(const SegmentHeader& header) {
  if (header.manual_time) return header.start_ns + header.manual_ns.load(std::memory_order_acquire);
  const auto passed = static_cast<double>(monotonic_ns() - header.anchor_ns);
  return header.start_ns + std::llround(passed * header.speed);
}

class TwinClock final : public Clock {
 public:
  explicit TwinClock(const SegmentHeader& header) : header_(header) {}

  Instant now() const override { return instant_from_ns(twin_ns(header_)); }

  // Sleeps in wall pieces of at most 10 ms: `stop` is seen in time, and with manual time somebody
  // else's step is.
  void sleep_until(Instant t, const StopFlag& stop) override {
    // Manual time moves by another process's hand: nothing but a look now and then tells.
    constexpr Duration kLookAgain = std::chrono::milliseconds(1);
    while (!stop.requested()) {
      const std::int64_t left = to_unix_ns(t) - twin_ns(header_);
      if (left <= 0) return;
      const double wall_ns = std::ceil(static_cast<double>(left) / header_.speed);
      stop.wait_for(header_.manual_time ? kLookAgain : Duration(std::llround(wall_ns)));
    }
  }

 private:
  const SegmentHeader& header_;
};

// A view of the state that does not hold yet, a copy of the one that does; commit() makes it hold.
Card begin_change(SegmentCard& shared) {
  const std::uint32_t current = shared.current.load(std::memory_order_acquire) & 1U;
  CardState& next = shared.states[current ^ 1U];
  std::memcpy(&next, &shared.states[current], sizeof next);
  Card card{next, shared.device, {}, {}};
  for (std::size_t i = 0; i < card.works.size(); ++i) {
    card.works[i] = &shared.works[i];
    card.logs[i] = &shared.logs[i];
  }
  return card;
}

void commit(SegmentCard& shared) {
  const std::uint32_t current = shared.current.load(std::memory_order_relaxed) & 1U;
  shared.current.store(current ^ 1U, std::memory_order_release);
}

bool liveness_is_due(SegmentCard& shared) {
  const std::int64_t now = monotonic_ns();
  if (now - shared.liveness_checked_ns < kLivenessPeriodNs) return false;
  shared.liveness_checked_ns = now;
  return true;
}

// Drops jobs whose process is gone, as of the time to which the card was last brought: when exactly
// they died nobody saw. True when there was one.
bool drop_dead_jobs(Card& card) {
  bool dropped = false;
  for (int i = 0; i < kMaxJobs; ++i) {
    const JobSlot& job = card.state.jobs[static_cast<std::size_t>(i)];
    if (job.state == JobPhaseState::kFree || job.process_start == 0) continue;
    if (process_start(job.truth.pid) == job.process_start) continue;
    // It is there (checked above), so the answer can only be success.
    static_cast<void>(detach_job(card, {i, job.truth.generation}, JobEnd::kDied));
    dropped = true;
  }
  return dropped;
}

std::string default_name(const fs::path& path) {
  const std::string file = path.filename().string();
  return file.starts_with(kFilePrefix) ? file.substr(kFilePrefix.size()) : file;
}

}  // namespace

struct Segment::Mapping {
  explicit Mapping(SegmentFile mapped) : file(std::move(mapped)), clock(file.header()) {
    for (unsigned i = 0; i < file.header().card_count; ++i)
      names.push_back(make_card_name(file.header().name.data(), i));
  }
  SegmentFile file;
  TwinClock clock;
  std::vector<CardName> names;
  std::string name = file.header().name.data();
};

Segment::Segment(std::unique_ptr<Mapping> mapping) : mapping_(std::move(mapping)) {}
Segment::~Segment() = default;

fs::path Segment::path_of(std::string_view name_or_path) {
  if (name_or_path.find('/') != std::string_view::npos) return fs::path(name_or_path);
  return fs::path(kDefaultFolder) / (std::string(kFilePrefix) + std::string(name_or_path));
}

Result<std::unique_ptr<Segment>> Segment::create(std::string_view name_or_path,
                                                 const SegmentOptions& options) {
  if (options.cards.empty() || options.cards.size() > kMaxCards)
    return make_error(ErrorKind::kInvalid, fmt::format("a simulated machine has 1 to {} GPUs, not "
                                                       "{}",
                                                       kMaxCards, options.cards.size()));
  if (!(options.speed >= 0.001 && options.speed <= 10000))
    return make_error(
        ErrorKind::kInvalid,
        fmt::format("a twin's speed must be from 0.001 to 10000, not {}", options.speed));
  const fs::path path = path_of(name_or_path);
  const std::string name = default_name(path);
  const auto cards = static_cast<unsigned>(options.cards.size());
  SegmentHeader empty{};
  if (name.empty() || name.size() >= empty.name.size())
    return make_error(ErrorKind::kInvalid,
                      fmt::format("a twin's name has 1 to {} characters", empty.name.size() - 1));
  GPOEO_TRY(SegmentFile file, SegmentFile::create(path, cards));
  SegmentHeader& header = file.header();
  header.magic = kSegmentMagic;
  header.version = kSegmentVersion;
  header.card_count = cards;
  header.header_bytes = segment_header_bytes();
  header.card_bytes = segment_card_bytes();
  header.file_bytes = header.header_bytes + cards * header.card_bytes;
  header.creator_pid = getpid();
  std::memcpy(header.name.data(), name.data(), name.size());
  header.speed = options.speed;
  header.manual_time = options.manual_time ? 1 : 0;
  header.start_ns = options.start ? to_unix_ns(*options.start) : unix_ns();
  header.anchor_ns = monotonic_ns();
  for (unsigned i = 0; i < cards; ++i) {
    SegmentCard& card = file.card(i);
    GPOEO_TRY_STATUS(initialize_mutex(card));
    card.device = options.cards[i];
    initialize(card.states[0], card.device, options.seed + i, instant_from_ns(header.start_ns));
  }
  GPOEO_TRY_STATUS(file.publish());
  return std::unique_ptr<Segment>(new Segment(std::make_unique<Mapping>(std::move(file))));
}

Result<std::unique_ptr<Segment>> Segment::attach(std::string_view name_or_path) {
  GPOEO_TRY(SegmentFile file, SegmentFile::open(path_of(name_or_path)));
  return std::unique_ptr<Segment>(new Segment(std::make_unique<Mapping>(std::move(file))));
}

Result<std::unique_ptr<Segment>> Segment::attach_from_environment() {
  const char* name = std::getenv(kSegmentEnvironment);
  if (!name || !*name)
    return make_error(ErrorKind::kNotFound,
                      fmt::format("{} is not set: there is no simulated GPU to use; start under "
                                  "'gpoeo run --twin' or set it to a twin's name",
                                  kSegmentEnvironment));
  return attach(name);
}

Status Segment::remove(std::string_view name_or_path, bool force) {
  const fs::path path = path_of(name_or_path);
  {
    // Forced or not, only a twin is removed: run as root this could delete anything. Closed again
    // before it is asked who uses it.
    GPOEO_TRY(const SegmentFile file, SegmentFile::open(path));
  }
  GPOEO_TRY(const bool in_use, segment_in_use(path));
  if (in_use && !force)
    return make_error(ErrorKind::kBusy, fmt::format("{} is in use; end the programs that use it, "
                                                    "or force the removal",
                                                    path.string()));
  std::error_code failed;
  if (!fs::remove(path, failed) || failed)
    return make_error(ErrorKind::kIo,
                      fmt::format("cannot remove {}: {}", path.string(), failed.message()));
  return {};
}

Result<std::vector<SegmentInfo>> Segment::list() {
  std::vector<SegmentInfo> infos;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(kDefaultFolder, failed)) {
    if (!entry.path().filename().string().starts_with(kFilePrefix)) continue;
    const auto in_use = segment_in_use(entry.path());
    const auto file = SegmentFile::open(entry.path());
    if (!in_use || !file) continue;  // not ours, or not a twin of this version
    const SegmentHeader& header = file->header();
    SegmentInfo info;
    info.name = header.name.data();
    info.path = entry.path();
    for (unsigned i = 0; i < header.card_count; ++i)
      info.devices.emplace_back(file->card(i).device.name.data());
    info.speed = header.speed;
    info.manual_time = header.manual_time != 0;
    info.creator_pid = header.creator_pid;
    info.in_use = *in_use;
    infos.push_back(std::move(info));
  }
  if (failed)
    return make_error(ErrorKind::kIo,
                      fmt::format("cannot list {}: {}", kDefaultFolder, failed.message()));
  std::sort(infos.begin(), infos.end(),
            [](const SegmentInfo& a, const SegmentInfo& b) { return a.name < b.name; });
  return infos;
}

const std::string& Segment::segment_name() const { return mapping_->name; }
const fs::path& Segment::path() const { return mapping_->file.path(); }
double Segment::speed() const { return mapping_->file.header().speed; }
bool Segment::manual_time() const { return mapping_->file.header().manual_time != 0; }

Status Segment::step(Duration d) {
  if (!manual_time())
    return make_error(ErrorKind::kInvalid,
                      fmt::format("twin '{}' follows the wall clock; create it with manual time to "
                                  "step it",
                                  segment_name()));
  if (d.count() < 0) return make_error(ErrorKind::kInvalid, "a twin's time cannot go back");
  mapping_->file.header().manual_ns.fetch_add(d.count(), std::memory_order_acq_rel);
  return {};
}

Clock& Segment::twin_clock() { return mapping_->clock; }
unsigned Segment::card_count() const { return mapping_->file.header().card_count; }
const DeviceModel& Segment::device(unsigned card) const { return mapping_->file.card(card).device; }
const CardName& Segment::name(unsigned card) const { return mapping_->names.at(card); }
Instant Segment::now() const { return mapping_->clock.now(); }
const Clock& Segment::clock() const { return mapping_->clock; }

namespace {

// A card's mutex, given back however the visit ends.
class CardLock {
 public:
  static Result<CardLock> take(SegmentCard& card) {
    GPOEO_TRY_STATUS(lock_card(card));
    return CardLock(card);
  }
  CardLock(CardLock&& other) noexcept : card_(std::exchange(other.card_, nullptr)) {}
  CardLock& operator=(CardLock&&) = delete;
  ~CardLock() {
    if (card_) unlock_card(*card_);
  }

 private:
  explicit CardLock(SegmentCard& card) : card_(&card) {}
  SegmentCard* card_;
};

}  // namespace

Status Segment::visit(unsigned index, const std::function<Status(Card&)>& f) {
  if (index >= card_count())
    return make_error(ErrorKind::kInvalid,
                      fmt::format("no simulated card {}; there are {}", index, card_count()));
  SegmentCard& shared = mapping_->file.card(index);
  GPOEO_TRY(const CardLock held, CardLock::take(shared));
  // On its own, so that attach_job() never writes to a slot that is free in the new state only.
  if (liveness_is_due(shared)) {
    Card card = begin_change(shared);
    if (drop_dead_jobs(card)) commit(shared);
  }
  Card card = begin_change(shared);
  advance(card, now());
  const Status status = f(card);
  commit(shared);
  return status;
}

Result<JobHandle> Segment::attach_job(unsigned card, const Work& work, JobOptions options) {
  if (options.pid == 0) {
    options.pid = getpid();
    options.process_start = process_start(options.pid);
  }
  JobHandle handle;
  const auto attach = [&](Card& view) -> Status {
    GPOEO_TRY(handle, twin::attach_job(view, work, options));
    return {};
  };
  GPOEO_TRY_STATUS(visit(card, attach));
  return handle;
}

Status Segment::detach_job(unsigned card, JobHandle job) {
  return visit(card, [&](Card& view) { return twin::detach_job(view, job); });
}

Result<Segment::JobNews> Segment::job_news(unsigned card, JobHandle job, std::int64_t first) {
  JobNews news{};
  const auto take = [&](Card& view) -> Status {
    GPOEO_TRY(news.progress, job_progress(view, job));
    GPOEO_TRY(news.ends, iteration_ends(view, job, first));
    return {};
  };
  GPOEO_TRY_STATUS(visit(card, take));
  return news;
}

}  // namespace gpoeo::twin
