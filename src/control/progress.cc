// SPDX-License-Identifier: Apache-2.0
#include "control/progress.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

namespace gpoeo::control {
namespace {

constexpr unsigned kLooksUntilDropped = 600;
constexpr Duration kLookForRings = std::chrono::milliseconds(500);
// A process takes over only when it has launched clearly more than the one followed now.
constexpr double kTakeOver = 1.5;
// Ranks of one job differ by less than this in what they launched, once that is not few; a process
// with a smaller share than kNoticeableShare (an evaluation now and then) does not matter.
constexpr std::uint64_t kFewRecords = 5000;
constexpr double kRankSpread = 0.15;
constexpr double kNoticeableShare = 0.1;
// A job that makes more processes than this is followed through the first ones.
constexpr std::size_t kMostProcesses = 64;
// A stamp may be so far ahead of our clock: another process read another clock.
constexpr Duration kClockTolerance = std::chrono::seconds(1);
constexpr std::size_t kMostPendingEnds = 1U << 16;

std::string_view to_string(wire::QuietReason reason) {
  switch (reason) {
    case wire::QuietReason::kNone:
      return "no reason given";
    case wire::QuietReason::kNoCupti:
      return "no libcupti was found; install it (pip install nvidia-cuda-cupti) or put it on "
             "LD_LIBRARY_PATH";
    case wire::QuietReason::kCuptiUnknown:
      return "the job's CUPTI is none of the versions 11 to 13, or lacks functions of theirs";
    case wire::QuietReason::kOtherSubscriber:
      return "another CUPTI user (a profiler) was there first";
    case wire::QuietReason::kSteppedAside:
      return "another CUPTI user (a profiler) came, and got CUPTI for itself";
    case wire::QuietReason::kSubscribeFailed:
      return "CUPTI refused; GPOEO_INJECT_LOG=1 shows its error";
    case wire::QuietReason::kNoLaunchCallbacks:
      return "CUPTI would not tell of launches";
  }
  return "unknown";
}

// CUPTI numbers its versions its own way up to CUDA 12.
std::string cupti_name(std::uint32_t version) {
  if (version == 0) return "";
  if (version < 1000) return fmt::format(", CUPTI version {}", version);
  return fmt::format(", CUPTI {}.{}", version / 10000, version / 100 % 100);
}

// What the log itself costs a job that the host holds up; empty where that is next to nothing.
std::string cost_of_log(std::uint64_t launches, std::int64_t over_ns) {
  // CUPTI's callbacks cost that much a launch in a PyTorch loop on an H200's host, empty ones too
  // (docs/hardware.md, "The launch log").
  constexpr double kPerLaunch_s = 0.5e-6;
  constexpr double kWorthTelling = 0.003;
  constexpr double kLeast_s = 5;
  const double seconds = static_cast<double>(over_ns) * 1e-9;
  if (seconds < kLeast_s) return "";
  const double rate = static_cast<double>(launches) / seconds;
  if (rate * kPerLaunch_s < kWorthTelling) return "";
  return fmt::format(
      "; {:.0f} launches a second: where they are the limit, the log costs about {:.1f} % "
      "(estimate)",
      rate, 100 * rate * kPerLaunch_s);
}

}  // namespace

std::string_view to_string(ProgressSource source) {
  switch (source) {
    case ProgressSource::kNone:
      return "none";
    case ProgressSource::kLaunchLog:
      return "launch log";
    case ProgressSource::kStepMarks:
      return "step marks";
  }
  return "unknown";
}

void RingProgress::poll(Instant now) {
  look_for_rings(now);
  for (auto& [name, process] : processes_) {
    if (!process.broken) drain(name, process);
  }
  follow_the_busiest();
  if (followed_ != nullptr) collect_ends(*followed_);
  drop_impossible_ends(now);
}

// End times are another process's word: one that goes back, or lies in the future, would stand in
// the way of all that follow.
void RingProgress::drop_impossible_ends(Instant now) {
  Instant last = last_taken_;
  // Two at one launch: the end of the first was lost. One of them has no length to be measured.
  const auto twin = [&](Instant end) { return end == std::exchange(last, end); };
  std::erase_if(ends_, twin);
  last = last_taken_;
  const auto impossible = [&](Instant end) {
    if (end <= last || end > now + kClockTolerance) return true;
    last = end;
    return false;
  };
  if (std::erase_if(ends_, impossible) > 0 && !std::exchange(told_impossible_, true)) {
    notes_.emplace_back("iteration ends with impossible times were left out");
  }
}

void RingProgress::look_for_rings(Instant now) {
  if (now < next_look_) return;
  next_look_ = now + kLookForRings;
  look_for_the_gone();
  drop_the_gone();
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(folder_, error)) {
    if (file.path().extension() != wire::kRingSuffix) continue;
    const std::string name = file.path().filename().string();
    set_aside_if_replaced(name, file.path());
    if (processes_.contains(name) || processes_.size() >= kMostProcesses) continue;
    if (std::ranges::find(refused_, name) != refused_.end()) continue;
    auto reader = wire::RingReader::open(file.path());
    if (!reader) {
      refused_.push_back(name);
      notes_.push_back(reader.error().text);
      continue;
    }
    processes_.try_emplace(name, std::move(*reader));
  }
}

// Another program runs in the process now (exec), or another process has its number: what it
// launched before was another's, and stays with what was counted.
void RingProgress::set_aside_if_replaced(const std::string& name,
                                         const std::filesystem::path& path) {
  const auto old = processes_.find(name);
  if (old == processes_.end() || old->second.reader.is_file(path)) return;
  auto node = processes_.extract(old);
  node.key() = fmt::format("{} ({} before it)", name, ++replaced_);
  node.mapped().replaced = node.mapped().gone = true;
  processes_.insert(std::move(node));
}

// Rings of processes that said goodbye, or are gone for long, are drained and of no use any more;
// each pins 2 MiB of memory. For long: in a container a silent one may only look gone.
void RingProgress::drop_the_gone() {
  std::erase_if(processes_, [&](const auto& entry) {
    const auto& [name, process] = entry;
    const bool over = process.reader.state() == wire::RingState::kEnded ||
                      process.gone_looks > kLooksUntilDropped;
    if (!process.gone || !over || &process == followed_) return false;
    std::error_code ignored;
    const auto path = folder_ / name;
    if (process.reader.is_file(path)) std::filesystem::remove(path, ignored);
    return true;
  });
}

void RingProgress::drain(const std::string& name, Process& process) {
  records_.clear();
  const Status status = process.reader.drain(records_);
  if (!status) {
    process.broken = true;
    notes_.push_back(status.error().text + "; its launches are no longer followed");
  }
  process.records += records_.size();
  for (const auto& record : records_) {
    switch (record.kind) {
      case wire::RecordKind::kKernelLaunch:
      case wire::RecordKind::kGraphLaunch:
        process.repeats.push(record.t_ns, record.function_id, record.stream);
        if (process.launches++ == 0) process.first_launch_ns = record.t_ns;
        process.last_launch_ns = record.t_ns;
        break;
      case wire::RecordKind::kStep:
      case wire::RecordKind::kBeginSteps:
        process.has_steps = true;
        if (record.kind == wire::RecordKind::kStep) ++process.steps;
        process.step_ends.push_back(instant_from_ns(record.t_ns));
        if (process.step_ends.size() > kMostPendingEnds) process.step_ends.pop_front();
        break;
      case wire::RecordKind::kEndSteps:
        break;
    }
  }
  if (process.reader.dropped() > 0 && !std::exchange(process.told_dropped, true)) {
    notes_.push_back(fmt::format("{}: launches were dropped because the ring was full", name));
  }
  if (process.reader.state() == wire::RingState::kQuiet &&
      !std::exchange(process.told_quiet, true)) {
    notes_.push_back(fmt::format(
        "{}: {} the launch log {}: {}", name,
        process.has_steps ? "step marks go on, but" : "iterations are not counted, since",
        process.records == 0 ? "did not start" : "stopped",
        process.reader.reason() == wire::QuietReason::kNone ? "another CUPTI user came"
                                                            : to_string(process.reader.reason())));
  }
}

bool RingProgress::several_jobs() const {
  if (followed_ == nullptr || followed_->records < kFewRecords) return false;
  const auto mine = static_cast<double>(followed_->records);
  return std::ranges::any_of(processes_, [&](const auto& entry) {
    const Process& other = entry.second;
    if (&other == followed_ || !tells(other) || !tells(*followed_)) return false;
    if (other.has_steps != followed_->has_steps) return false;  // marks and launches of one job
    const double share = static_cast<double>(other.records) / mine;
    return share > kNoticeableShare && (share < 1 - kRankSpread || share > 1 + kRankSpread);
  });
}

bool RingProgress::tells(const Process& process) {
  return !process.broken && !process.gone && process.reader.state() == wire::RingState::kRunning;
}

// A process that was killed says no goodbye. In a container the job's numbers for its processes may
// be others than ours: one that still writes is there, whatever its number.
void RingProgress::look_for_the_gone() {
  for (auto& [name, process] : processes_) {
    const std::int64_t pid = process.reader.header().pid;
    const bool silent = process.records == std::exchange(process.records_then, process.records);
    const bool dead = silent && pid > 1 && pid <= std::numeric_limits<pid_t>::max() &&
                      ::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH;
    process.gone = process.replaced || dead;
    process.gone_looks = process.gone ? process.gone_looks + 1 : 0;
  }
}

void RingProgress::follow_the_busiest() {
  Process* busiest = followed_;
  for (auto& [name, process] : processes_) {
    if (process.records == 0 || &process == busiest) continue;
    const auto ahead = [&](const Process& other) {
      // One that still tells something comes before one that does not, however busy that was, and
      // one with marks before one with launches only.
      if (tells(process) != tells(other)) return tells(process);
      if (process.has_steps != other.has_steps) return process.has_steps;
      return static_cast<double>(process.records) > kTakeOver * static_cast<double>(other.records);
    };
    const bool takes_over = busiest == nullptr || ahead(*busiest);
    if (takes_over) busiest = &process;
  }
  if (busiest == followed_) return;
  // One after the other they add up; side by side they are ranks of one job.
  if (followed_ != nullptr && !tells(*followed_)) iterations_before_ += iterations_of(*followed_);
  followed_ = busiest;
  ++generation_;
  ends_.clear();
  // What it did before the last end that was handed out is counted already, as another's.
  std::erase_if(followed_->step_ends, [this](Instant end) { return end <= last_taken_; });
  followed_->counts_steps = followed_->has_steps;
  // What it has done before it was followed counts, except where another's ends were counted then.
  followed_->repeats_taken = 0;
  followed_->repeats_generation = followed_->repeats.generation();
}

void RingProgress::collect_ends(Process& process) {
  if (process.has_steps) {
    if (!std::exchange(process.counts_steps, true) && process.repeats.locked()) {
      // Until now launches were counted.
      ++generation_;
      ends_.clear();
    }
    ends_.insert(ends_.end(), process.step_ends.begin(), process.step_ends.end());
    process.step_ends.clear();
    return;
  }
  if (process.repeats.generation() != process.repeats_generation) {
    process.repeats_generation = process.repeats.generation();
    process.repeats_taken = 0;
    ++generation_;
    ends_.clear();
  }
  const std::uint64_t now = process.repeats.iterations();
  if (now <= process.repeats_taken) return;
  const auto recent = process.repeats.recent_end_ns();
  const std::size_t fresh = now - process.repeats_taken;
  if (fresh > recent.size() && process.repeats_taken > 0) {
    // More iterations ended than are remembered: a hole in the end times, so a new start.
    ++generation_;
    ends_.clear();
  }
  for (std::size_t i = recent.size() - std::min(fresh, recent.size()); i < recent.size(); ++i) {
    const Instant end = instant_from_ns(recent[i]);
    if (end > last_taken_) ends_.push_back(end);
  }
  process.repeats_taken = now;
}

std::uint64_t RingProgress::iterations_of(const Process& process) {
  return process.has_steps ? process.steps : process.repeats.iterations_in_all();
}

std::optional<std::uint64_t> RingProgress::iterations() const {
  return iterations_before_ + (followed_ == nullptr ? 0 : iterations_of(*followed_));
}

void RingProgress::finish(Instant now) {
  next_look_ = now;
  poll(now);
  // The launches of the last iteration are complete only now.
  for (auto& [name, process] : processes_) process.repeats.finish();
  if (followed_ != nullptr) collect_ends(*followed_);
  drop_impossible_ends(now);
}

double RingProgress::launches_lost() const {
  if (followed_ == nullptr || followed_->has_steps) return 0;  // steps do not hang on launches
  const auto lost = static_cast<double>(followed_->reader.dropped());
  return lost > 0 ? lost / (lost + static_cast<double>(followed_->records)) : 0;
}

std::string RingProgress::launch_log() const {
  const Process* best = nullptr;
  for (const auto& [name, process] : processes_) {
    if (process.reader.header().producer == wire::RingProducer::kStepMarks) continue;
    if (best == nullptr || process.records > best->records) best = &process;
  }
  if (best == nullptr) return {};
  const std::string cupti = cupti_name(best->reader.cupti_version());
  if (best->broken) return "stopped: its ring was scribbled over";
  if (best->reader.state() == wire::RingState::kQuiet) {
    return fmt::format("{}: {}{}", best->records == 0 ? "never started" : "stopped",
                       to_string(best->reader.reason()), cupti);
  }
  if (best->records == 0) return fmt::format("running, but it saw no launch{}", cupti);
  const std::uint64_t dropped = best->reader.dropped();
  return fmt::format(
      "running to the end{}{}{}", cupti,
      dropped == 0 ? "" : fmt::format("; {} launches found no room and were dropped", dropped),
      cupti.empty() ? ""
                    : cost_of_log(best->launches, best->last_launch_ns - best->first_launch_ns));
}

ProgressSource RingProgress::source() const {
  if (followed_ == nullptr) return ProgressSource::kNone;
  if (followed_->has_steps) return ProgressSource::kStepMarks;
  return followed_->repeats.locked() ? ProgressSource::kLaunchLog : ProgressSource::kNone;
}

std::vector<Instant> RingProgress::take_ends() {
  if (!ends_.empty()) last_taken_ = ends_.back();
  return std::exchange(ends_, {});
}

}  // namespace gpoeo::control
