// SPDX-License-Identifier: Apache-2.0
// How far the job has come: iterations and when each ended, from the progress rings that the job's
// processes write (wire/progress_ring.h).
//
// Step marks count as they are. Without marks, the launches go through iteration::LaunchRepeats,
// which finds what repeats. A job of several processes (one per GPU) is followed through the
// process that has launched most: in a synchronised job all step together. A ring with step marks
// (a process that uses gpoeo.h has one for them alone) comes before any without.
#pragma once

#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "iteration/launch_repeats.h"
#include "wire/ring_reader.h"

namespace gpoeo::control {

enum class ProgressSource { kNone, kLaunchLog, kStepMarks };
std::string_view to_string(ProgressSource source);

class ProgressReader {
 public:
  virtual ~ProgressReader() = default;

  // Takes in what is new; cheap when nothing is.
  virtual void poll(Instant now) = 0;

  virtual ProgressSource source() const = 0;
  // End times of completed iterations that were not taken yet, oldest first. The first one of a
  // generation only opens the count.
  virtual std::vector<Instant> take_ends() = 0;
  // Grows when what is counted becomes another thing (a longer repeat was found, another process is
  // followed): iterations before and after do not compare.
  virtual unsigned generation() const = 0;
  // Iterations completed since the job began, where that is known better than by counting what
  // take_ends() gave: what was counted before the right unit was known is restated in it. May fall.
  virtual std::optional<std::uint64_t> iterations() const { return std::nullopt; }
  // The job is over: takes in what is left, the last iteration included.
  virtual void finish(Instant now) { poll(now); }
  // One line on whether launches were seen, from when until when and why not; empty: says nothing.
  virtual std::string launch_log() const { return {}; }
  // Whether processes work independently of one another, so that the one that is followed does not
  // speak for the others. The ranks of one synchronised job launch about equally much.
  virtual bool several_jobs() const { return false; }
  // Share of the launches that were lost before they could be read.
  virtual double launches_lost() const { return 0; }
  // What went wrong or was lost, one line each, each told once.
  virtual std::vector<std::string> take_notes() = 0;
};

// Thread rule: the control thread.
class RingProgress final : public ProgressReader {
 public:
  // `folder` is watched for rings; it need not exist yet.
  explicit RingProgress(std::filesystem::path folder) : folder_(std::move(folder)) {}

  void poll(Instant now) override;
  ProgressSource source() const override;
  std::vector<Instant> take_ends() override;
  unsigned generation() const override { return generation_; }
  std::optional<std::uint64_t> iterations() const override;
  void finish(Instant now) override;
  std::string launch_log() const override;
  bool several_jobs() const override;
  double launches_lost() const override;
  std::vector<std::string> take_notes() override { return std::exchange(notes_, {}); }
  // Of the process that is followed, to ask it for counters; nullptr: none. Good until the next
  // poll().
  const wire::RingReader* followed_ring() const {
    return followed_ == nullptr || followed_->broken ? nullptr : &followed_->reader;
  }

 private:
  // What one process has told.
  struct Process {
    explicit Process(wire::RingReader ring) : reader(std::move(ring)) {}
    wire::RingReader reader;
    // Ends of a few seconds even at thousands a second: one slow driver call must not lose any.
    iteration::LaunchRepeats repeats{{.recent_ends = std::size_t{1} << 14}};
    std::deque<Instant> step_ends;  // not taken yet; the newest ones
    std::uint64_t records = 0;
    std::uint64_t records_then = 0;  // at the last look at the process
    std::uint64_t steps = 0;
    std::uint64_t launches = 0;
    std::int64_t first_launch_ns = 0, last_launch_ns = 0;
    bool replaced = false;            // another program runs in the process now
    unsigned gone_looks = 0;          // in a row
    bool gone = false;                // no such process any more, and nothing new in its ring
    std::uint64_t repeats_taken = 0;  // iterations of `repeats` already handed out
    std::uint64_t repeats_generation = 0;
    bool has_steps = false;
    bool counts_steps = false;  // they are what was handed out last
    bool broken = false;
    bool told_dropped = false;
    bool told_quiet = false;
  };

  void look_for_rings(Instant now);
  void set_aside_if_replaced(const std::string& name, const std::filesystem::path& path);
  void drop_the_gone();
  void drain(const std::string& name, Process& process);
  static bool tells(const Process& process);  // more may come of it
  static std::uint64_t iterations_of(const Process& process);
  void look_for_the_gone();
  void follow_the_busiest();
  void collect_ends(Process& process);
  void drop_impossible_ends(Instant now);

  std::filesystem::path folder_;
  unsigned replaced_ = 0;  // rings whose process began anew
  Instant next_look_{};
  std::map<std::string, Process> processes_;
  std::vector<std::string> refused_;  // files that are no rings
  Process* followed_ = nullptr;
  std::uint64_t iterations_before_ = 0;  // of processes that ended before the followed one
  unsigned generation_ = 0;
  bool told_impossible_ = false;
  std::vector<Instant> ends_;
  Instant last_taken_{};
  std::vector<std::string> notes_;
  std::vector<wire::RingRecord> records_;  // reused between drains
};

}  // namespace gpoeo::control
