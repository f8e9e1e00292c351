// SPDX-License-Identifier: Apache-2.0
// Which work the job is doing: what was measured of it, whether a new window is still of it, and
// whether other work that begins was done before. Work is what an iteration consists of: a shift
// of the training, a validation pass, a second model are other work. Pure.
//
// A window is of other work when it is no answer that the present work could give (same_work.h).
// Between whole windows the newest iterations of an open one are looked at now and then: two looks
// in a row that do not fit are other work, which began with the first of them.
//
// Thread rule: the control thread.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "control/known_work.h"
#include "policy/policy.h"

namespace gpoeo::control {

class WorkWatch {
 public:
  // `sm_clocks`: what the card can run at, ascending.
  explicit WorkWatch(std::vector<Hertz> sm_clocks) : sm_clocks_(std::move(sm_clocks)) {}

  // Of the present work, oldest first; bounded for jobs of many days (observation_log.h).
  std::span<const policy::Observation> observations() const { return present_.observations; }
  // What the model expects of the present work; empty: nothing yet.
  const std::vector<policy::Prediction>& prior() const { return present_.prior; }
  // Where the iterations of the present work are booked.
  std::size_t ledger_phase() const { return present_.ledger_phase; }

  void add(const policy::Observation& window);
  void expect(std::vector<policy::Prediction> prior) { present_.prior = std::move(prior); }
  // Nothing is known of what comes from here on; its iterations are booked in `ledger_phase`.
  void begin(std::size_t ledger_phase);
  // Off: what is measured from here on has no measure in common with other work (power traces are
  // over a reference of each work's own), so that nothing is known again. On at first.
  void recognise(bool on) { recognise_ = on; }

  enum class Seen {
    kPresent,   // it fits what is known of the present work
    kReturned,  // other work, known from before: present() is that now, with all it had
    kNew,       // other work; the present one is put aside and begin() is to be called
  };
  // A whole window at one setting. Not added: that is the caller's.
  Seen judge(const policy::Observation& window, Instant now);

  // A new window opens: what was odd about the last one is void.
  void window_opens() { odd_from_.reset(); }
  // The newest of an open window's `ends`, when they are to be looked at now; else empty.
  std::span<const Instant> look_due(std::span<const Instant> ends, Instant now) const;
  struct Look {
    Seen seen = Seen::kPresent;
    Instant began;  // of the other work
  };
  // What a look that was due found in the iterations behind `first`.
  Look judge_look(const policy::Observation& look, Instant first, Instant now);

  // The newest of the `ends` of work that nothing is known of yet, when they are enough to know it
  // by; else empty.
  std::span<const Instant> enough_to_recognise(std::span<const Instant> ends) const;
  // Whether `look` is of work that is known; then the present work is that, as kReturned.
  bool recall(const policy::Observation& look);

  // How often other, new work began, and whether it did so too often lately for anything measured
  // to be used.
  unsigned changes() const { return changes_; }
  bool unsteady(Instant now) const;

 private:
  bool fits(const policy::Observation& window) const;
  Seen leave(const policy::Observation& window, Instant now);

  std::vector<Hertz> sm_clocks_;
  Work present_;
  KnownWork known_;
  bool recognise_ = true;
  std::optional<Instant> looked_;    // newest look at an open window
  std::optional<Instant> odd_from_;  // the look before did not fit; it began here
  unsigned changes_ = 0;
  std::vector<Instant> lately_;  // when new work began
};

}  // namespace gpoeo::control
