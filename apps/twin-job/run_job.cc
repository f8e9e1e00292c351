// SPDX-License-Identifier: Apache-2.0
#include "run_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "base/log.h"
#include "base/text.h"
#include "counter_answer.h"
#include "twin/card_front.h"
#include "twin/job_catalog.h"
#include "twin/launch_schedule.h"
#include "twin/segment.h"
#include "wire/ring_writer.h"

namespace gpoeo::twin_job {
namespace {

// The first entry of CUDA_VISIBLE_DEVICES as CUDA reads it: an index or the begin of a UUID.
Result<unsigned> visible_card(const twin::Segment& segment) {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (!visible || !*visible) return 0U;
  const std::string_view first = trim(split(visible, ',').front());
  if (const auto index = parse_int(first);
      index && *index >= 0 && *index < static_cast<long long>(segment.card_count()))
    return static_cast<unsigned>(*index);
  for (unsigned i = 0; i < segment.card_count(); ++i)
    if (segment.name(i).uuid.starts_with(first)) return i;
  return make_error(ErrorKind::kNotFound,
                    fmt::format("CUDA_VISIBLE_DEVICES={} names no GPU of twin '{}', which has {}",
                                visible, segment.segment_name(), segment.card_count()));
}

Result<unsigned> choose_card(const twin::Segment& segment, int asked) {
  if (asked < 0) return visible_card(segment);
  if (static_cast<unsigned>(asked) < segment.card_count()) return static_cast<unsigned>(asked);
  return make_error(ErrorKind::kInvalid,
                    fmt::format("--card {}: twin '{}' has cards 0 to {}", asked,
                                segment.segment_name(), segment.card_count() - 1));
}

Result<std::unique_ptr<twin::Work>> make_work(const JobOptions& options,
                                              const twin::DeviceModel& device) {
  Result<twin::JobSpec> spec = options.file.empty() ? twin::find_job(device.key.data(), options.job)
                                                    : twin::load_job(options.file);
  if (!spec) return std::unexpected(spec.error());
  if (options.steady) twin::make_steady(*spec);
  if (options.iteration_s > 0) spec->iteration_s = options.iteration_s;
  return twin::compile(*spec, device);
}

// The ring of this process, when somebody asked for one. A job goes on without.
std::optional<wire::RingWriter> open_ring() {
  const char* folder = std::getenv(wire::kRingDirEnv);
  if (!folder || !*folder) return std::nullopt;
  // The twin's time is nanoseconds since the epoch already.
  auto ring = wire::RingWriter::create(folder, wire::RingProducer::kTwinJob, 0);
  if (!ring) {
    log::warning("twin job: no progress ring: {}", ring.error().text);
    return std::nullopt;
  }
  return std::optional<wire::RingWriter>(std::move(*ring));
}

class Reporter {
 public:
  Reporter(const twin::Work& work, Instant start, const std::string& progress)
      : work_(work),
        last_(start),
        launches_logged_(progress == "launches" || progress == "both"),
        steps_marked_(progress == "steps" || progress == "both"),
        ring_(launches_logged_ || steps_marked_ ? open_ring() : std::nullopt) {}

  std::int64_t reported() const { return reported_; }
  void report(const std::vector<twin::IterationEnd>& ends) {
    for (const twin::IterationEnd& end : ends) {
      if (ring_ && launches_logged_) log_launches(end);
      if (ring_ && steps_marked_) ring_->push(wire::RecordKind::kStep, to_unix_ns(end.time), 0, 0);
      last_ = end.time;
      ++reported_;
    }
  }
  Instant last() const { return last_; }
  wire::RingWriter* ring() { return ring_ ? &*ring_ : nullptr; }

 private:
  void log_launches(const twin::IterationEnd& end) {
    launches_.clear();
    twin::launches_of_iteration(work_, end.variant, reported_, last_, end.time, launches_);
    for (const twin::Launch& launch : launches_) {
      ring_->push(wire::RecordKind::kKernelLaunch, to_unix_ns(launch.time), launch.function_id, 0);
    }
  }

  const twin::Work& work_;
  Instant last_;
  std::int64_t reported_ = 0;
  bool launches_logged_, steps_marked_;
  std::optional<wire::RingWriter> ring_;
  std::vector<twin::Launch> launches_;
};

}  // namespace

Status list_jobs(const JobOptions& options) {
  GPOEO_TRY(const auto segment, twin::Segment::attach_from_environment());
  GPOEO_TRY(const unsigned card, choose_card(*segment, options.card));
  GPOEO_TRY(const auto jobs, twin::jobs_for(segment->device(card).key.data()));
  for (const twin::JobEntry& job : jobs)
    std::printf("%s\t%s\n", job.name.c_str(), job.measured ? "measured" : "analytic");
  return {};
}

Status run_job(const JobOptions& options) {
  GPOEO_TRY(const auto segment, twin::Segment::attach_from_environment());
  GPOEO_TRY(const unsigned card, choose_card(*segment, options.card));
  GPOEO_TRY(const auto work, make_work(options, segment->device(card)));
  twin::JobOptions job;
  job.seed = options.seed;
  job.iterations = options.iterations > 0 ? options.iterations
                                          : twin::iterations_in(*work, Seconds(options.seconds));
  const Instant start = segment->now();
  Reporter reporter(*work, start, options.progress);
  GPOEO_TRY(const twin::JobHandle handle, segment->attach_job(card, *work, job));
  std::optional<CounterAnswer> counters;
  if (wire::RingWriter* ring = reporter.ring()) {
    counters.emplace(twin::CardFront(*segment, card), ring->mapping(), options.seed);
  }
  const StopFlag never;
  for (;;) {
    // 10 ms of wall time: soon enough for a reader of the ring, and cheap.
    const auto wait = std::max<std::int64_t>(1'000'000, std::llround(1e7 * segment->speed()));
    segment->twin_clock().sleep_until(segment->now() + Duration(wait), never);
    // A job on a card that fell off the bus gets errors and ends, as a CUDA program does.
    GPOEO_TRY_STATUS(twin::CardFront(*segment, card).read_locks());
    GPOEO_TRY(const auto news, segment->job_news(card, handle, reporter.reported()));
    reporter.report(news.ends);
    if (counters) GPOEO_TRY_STATUS(counters->poll());
    if (options.crash_after_s > 0 &&
        to_seconds(segment->now() - start).value() >= options.crash_after_s)
      std::abort();
    if (news.progress.state == twin::JobEnd::kDone) break;
  }
  GPOEO_TRY_STATUS(segment->detach_job(card, handle));
  std::printf("gpoeo-twin-job: %s on simulated %s: %lld iterations in %.2f s\n", work->name.data(),
              segment->device(card).name.data(), static_cast<long long>(reporter.reported()),
              to_seconds(reporter.last() - start).value());
  return {};
}

}  // namespace gpoeo::twin_job
