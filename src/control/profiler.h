// SPDX-License-Identifier: Apache-2.0
// State `profile` (DESIGN section 6): reads the counters once for each kind of work, from the best
// source that answers, and remembers them for work that comes back.
//
// Whatever fails here costs the model its counters and nothing else: the profile then says which
// source was tried and why it did not answer.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "control/counter_source.h"
#include "control/iteration_window.h"
#include "control/profile.h"

namespace gpoeo::control {

struct NamedSource {
  std::string name;  // "GPM"
  std::unique_ptr<CounterSource> source;
};

// Thread rule: the control thread.
class Profiler {
 public:
  // Best source first. `why_not` says why better ones are not among them; may be empty.
  Profiler(std::vector<NamedSource> sources, std::string why_not)
      : sources_(std::move(sources)), never_there_(std::move(why_not)) {}

  // What one kind of work looks like at default clocks, to know it again by.
  struct Signature {
    Seconds time;
    Watts power;
  };

  // A baseline window opens; its iterations took about `iteration`. Counters that cost nothing are
  // read beside it; others would disturb it and come after it. Nothing happens when this work has
  // its profile.
  void baseline_begins(Instant now, Seconds iteration);
  // The baseline is measured. True: profile() is there. False: counters are being read; call again
  // at the next step.
  bool baseline_ready(Instant now, const Signature& signature);
  // Ends of iterations, while counters are read.
  void add_ends(std::span<const Instant> ends);
  // At each step.
  void poll(Instant now);
  // The measurement was given up; what was being read is of no use.
  void cancel();
  // Other work begins. It is profiled anew, unless it turns out to be work that is known.
  void new_work();

  // Of the present work. What is no counter in it is the caller's to fill.
  std::optional<Profile>& profile() { return profile_; }
  // How it was read and why from no better source; one line.
  std::string source_note() const;

 private:
  struct Known {
    Signature signature;
    Profile profile;
  };
  bool reading() const { return window_.has_value(); }
  bool exhausted() const { return current_ >= sources_.size(); }
  CounterSource& source() const { return *sources_[current_].source; }
  void begin(Instant now);
  void give_up_source(const std::string& why, Instant now);
  const Known* recall(const Signature& signature) const;

  std::vector<NamedSource> sources_;
  std::string never_there_;  // why better sources are not among them
  std::string failed_;       // what those answered that failed for the present work
  std::size_t current_ = 0;  // of sources_; its size when none is left
  Seconds iteration_{};
  Instant began_{};
  std::optional<IterationWindow> window_;  // while counters are read
  std::optional<Profile> profile_;
  bool complete_ = false;  // profile_ was handed out with its signature
  std::vector<Known> known_;
};

}  // namespace gpoeo::control
