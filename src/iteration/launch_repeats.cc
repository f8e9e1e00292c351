// SPDX-License-Identifier: Apache-2.0
#include "iteration/launch_repeats.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "iteration/launch_marks.h"
#include "iteration/launch_tracker.h"

namespace gpoeo::iteration {
namespace {

// Learning is tried when the buffer holds this many launches, then each time it has doubled (or,
// when a repeat is known and only a longer one could be found, quadrupled).
constexpr std::size_t kFirstLearn = 64;
constexpr std::size_t kGrowthUnlocked = 2;
constexpr std::size_t kGrowthLocked = 4;
// A stream in which nothing repeats is looked at again after as many launches as the buffer holds,
// then after twice as many, up to this factor.
constexpr std::uint64_t kMostBackoff = 64;
// The counted repeat is lost when none of its marks came for this many spacings, and at least for
// kLeastSilence launches.
constexpr double kSilentSpacings = 64;
constexpr double kLeastSilence = 4096;
constexpr double kTrustedCoverage = 0.7;
constexpr std::uint64_t kWellKnown = 64;
// A loop this much faster than the next one was no training.
constexpr double kStartUpPeriod = 0.1;
// A loop with less than this share of the launches and the time of the one before is its
// validation.
constexpr double kValidationShare = 0.5;
// The loop before comes back when the one that took over has been silent for so many repeats.
constexpr double kReturnAfter = 2;
// Launches kept since the last counted mark: 1 MiB.
constexpr std::size_t kMostRemembered = std::size_t{1} << 16;
// Spacings that differ by less are the same repeat, learned again.
constexpr double kSameSpacing = 0.1;

// What was learned in one place of the stream, and its counters.
struct Epoch {
  std::vector<LaunchTracker> trackers;
  std::optional<std::size_t> counted;
  std::uint64_t before = 0;  // iterations of other loops; modulo 2^64, so it may be "negative"
  bool aside = false;        // a validation of the loop before: its iterations are not counted
  bool doubtful = false;     // a later look at more launches did not find it again
  bool uses_run[kRunLengths.size()] = {};
  std::uint64_t next_deadline = LaunchTracker::kNoDeadline;

  struct Slot {
    std::uint64_t key = 0;
    std::uint16_t level = 0;
    std::uint16_t mark = 0;
    bool used = false;
  };
  std::vector<Slot> slots;  // open addressing, at most a quarter full

  Epoch() = default;
  Epoch(const LaunchStructure& structure, std::uint64_t first_launch, std::size_t recent_ends);

  void on_launch(const RunHasher& hasher, std::uint64_t position, std::int64_t t_ns);
  void on_key(std::uint64_t key, std::uint64_t position, std::int64_t t_ns);
  const LaunchTracker* counted_tracker() const { return counted ? &trackers[*counted] : nullptr; }
  std::uint64_t completed() const { return counted ? trackers[*counted].completed() : 0; }
  std::uint64_t in_all() const { return before + (aside ? 0 : completed()); }
  std::size_t memory_bytes() const;
};

Epoch::Epoch(const LaunchStructure& structure, std::uint64_t first_launch, std::size_t recent_ends)
    : counted(structure.counted) {
  std::size_t marks = 0;
  for (const LevelPlan& plan : structure.levels) marks += plan.marks.size();
  std::size_t size = 16;
  while (size < 4 * marks) size *= 2;
  slots.resize(size);
  for (std::size_t level = 0; level < structure.levels.size(); ++level) {
    const LevelPlan& plan = structure.levels[level];
    trackers.emplace_back(plan, first_launch, recent_ends);
    for (std::size_t mark = 0; mark < plan.marks.size(); ++mark) {
      uses_run[plan.marks[mark].run] = true;
      std::size_t slot = plan.marks[mark].key & (size - 1);
      while (slots[slot].used) slot = (slot + 1) & (size - 1);
      slots[slot] = {plan.marks[mark].key, static_cast<std::uint16_t>(level),
                     static_cast<std::uint16_t>(mark), true};
    }
  }
}

void Epoch::on_key(std::uint64_t key, std::uint64_t position, std::int64_t t_ns) {
  const std::size_t mask = slots.size() - 1;
  for (std::size_t slot = key & mask; slots[slot].used; slot = (slot + 1) & mask) {
    if (slots[slot].key != key) continue;
    trackers[slots[slot].level].on_mark(slots[slot].mark, position, t_ns);
    next_deadline = std::min(next_deadline, trackers[slots[slot].level].deadline());
    return;
  }
}

void Epoch::on_launch(const RunHasher& hasher, std::uint64_t position, std::int64_t t_ns) {
  if (trackers.empty()) return;
  for (std::size_t run = 0; run < kRunLengths.size(); ++run) {
    if (!uses_run[run]) continue;
    if (const auto key = hasher.key(run)) on_key(*key, position, t_ns);
  }
  if (position < next_deadline) return;
  next_deadline = LaunchTracker::kNoDeadline;
  for (LaunchTracker& tracker : trackers) {
    if (position >= tracker.deadline()) tracker.on_deadline(t_ns);
    next_deadline = std::min(next_deadline, tracker.deadline());
  }
}

std::size_t Epoch::memory_bytes() const {
  std::size_t bytes = slots.capacity() * sizeof(Slot);
  for (const LaunchTracker& tracker : trackers) bytes += tracker.memory_bytes();
  return bytes;
}

// Launches in the counted repeats.
double work_of(const Epoch& epoch) {
  const LaunchTracker* tracker = epoch.counted_tracker();
  return tracker == nullptr ? 0 : static_cast<double>(tracker->completed()) * tracker->spacing();
}

// A forward pass has about a third of the launches of a training step, and of its time.
bool is_validation(const LaunchTracker& loop, const LaunchTracker& training) {
  const auto loop_s = loop.period_s(), training_s = training.period_s();
  return loop.spacing() < kValidationShare * training.spacing() && loop_s && training_s &&
         *loop_s < kValidationShare * *training_s;
}

}  // namespace

class LaunchRepeats::Impl {
 public:
  explicit Impl(LaunchRepeatsOptions options)
      : options_(options), capacity_(std::max(options.max_buffered_launches, kFirstLearn)) {}

  void push(std::int64_t t_ns, std::uint64_t function_id, std::uint32_t stream);
  void finish();

  const Epoch& epoch() const { return active_; }
  std::uint64_t generation() const { return generation_; }
  std::uint64_t launches() const { return launches_; }
  std::size_t memory_bytes() const;

 private:
  void buffer(const Launch& launch);
  void remember(const Launch& launch, std::uint64_t position);
  void learn();
  void doubt();
  void replay(Epoch& epoch) const;
  void adopt(Epoch epoch);
  std::uint64_t counted_until_now(const LaunchTracker& next) const;
  void resume_dormant();
  void watch_for_change();
  void start_learning();
  void stop_learning();

  LaunchRepeatsOptions options_;
  std::size_t capacity_;
  std::uint64_t launches_ = 0;
  std::int64_t last_ns_ = 0;
  RunHasher hasher_;

  Epoch active_;
  // The one before: a program that returns from validation goes on with its old counters.
  Epoch dormant_;
  std::uint64_t dormant_completed_ = 0;
  std::uint64_t active_then_ = 0;  // completed by the active one when dormant_completed_ was noted
  std::uint64_t generation_ = 0;

  bool learning_ = true;
  std::vector<Launch> buffer_;
  std::uint64_t buffer_first_ = 0;  // stream position of buffer_[0]
  std::vector<Launch> since_mark_;  // empty again at each counted mark
  bool since_mark_whole_ = true;    // nothing of them was given up
  std::size_t next_learn_ = kFirstLearn;
  std::uint64_t backoff_ = 1;
  std::uint64_t resume_at_ = 0;  // stream position at which a failed learning is tried again
  bool lost_ = false;            // the counted level fell silent
};

void LaunchRepeats::Impl::push(std::int64_t t_ns, std::uint64_t function_id, std::uint32_t stream) {
  const Launch launch{t_ns, fold_function_id(function_id), stream};
  const std::uint64_t position = launches_++;
  last_ns_ = t_ns;
  hasher_.push(launch.stream, launch.id);
  active_.on_launch(hasher_, position, t_ns);
  dormant_.on_launch(hasher_, position, t_ns);
  remember(launch, position);
  if (learning_) {
    buffer(launch);
  } else if (resume_at_ != 0 && launches_ >= resume_at_) {
    start_learning();
  }
  watch_for_change();
}

// The launches since the last counted mark: if no more marks come, they are the beginning of what
// comes after that loop.
void LaunchRepeats::Impl::remember(const Launch& launch, std::uint64_t position) {
  const LaunchTracker* tracker = active_.counted_tracker();
  if (tracker == nullptr) return;
  if (tracker->last_mark_position() == position) {
    since_mark_.clear();
    since_mark_whole_ = true;
  } else if (since_mark_.size() >= std::min(kMostRemembered, capacity_ / 2)) {
    std::vector<Launch>().swap(since_mark_);
    since_mark_whole_ = false;
  } else if (since_mark_whole_) {
    since_mark_.push_back(launch);
  }
}

void LaunchRepeats::Impl::buffer(const Launch& launch) {
  if (buffer_.empty()) buffer_first_ = launches_ - 1;
  buffer_.push_back(launch);
  const bool full = buffer_.size() >= capacity_;
  if (buffer_.size() < next_learn_ && !full) return;
  learn();
  const bool known = active_.counted && !lost_;
  next_learn_ = buffer_.size() * (known ? kGrowthLocked : kGrowthUnlocked);
  if (!full) return;
  stop_learning();
  if (known) return;
  resume_at_ = launches_ + backoff_ * capacity_;
  backoff_ = std::min(backoff_ * 2, kMostBackoff);
}

void LaunchRepeats::Impl::learn() {
  const LaunchStructure structure = learn_structure(buffer_);
  if (!structure.counted) {
    doubt();
    return;
  }
  Epoch found(structure, buffer_first_, options_.recent_ends);
  replay(found);
  adopt(std::move(found));
}

// A later look at more launches did not find what is counted. Where it did not even account for the
// stream it was chance, and it is better to know nothing.
void LaunchRepeats::Impl::doubt() {
  const LaunchTracker* tracker = active_.counted_tracker();
  if (tracker == nullptr || lost_) return;
  active_.doubtful = true;
  const double accounted_for = static_cast<double>(tracker->completed()) * tracker->spacing();
  if (buffer_first_ > 0 || accounted_for >= kTrustedCoverage * static_cast<double>(launches_))
    return;
  // Nor is it known then what came before it: the buffer, in which nothing was found, has both.
  active_ = Epoch{};
  dormant_ = Epoch{};
  dormant_completed_ = active_then_ = 0;
  ++generation_;
}

void LaunchRepeats::Impl::replay(Epoch& epoch) const {
  RunHasher hasher;
  for (std::size_t i = 0; i < buffer_.size(); ++i) {
    hasher.push(buffer_[i].stream, buffer_[i].id);
    epoch.on_launch(hasher, buffer_first_ + i, buffer_[i].t_ns);
  }
}

// Iterations of the loops before one that takes over. Loops of a start-up (a compiler that tries
// kernels) repeat much faster than what they prepare, or do not last.
std::uint64_t LaunchRepeats::Impl::counted_until_now(const LaunchTracker& next) const {
  const auto then_s = active_.counted_tracker()->period_s();
  const auto now_s = next.period_s();
  const bool much_faster = then_s && now_s && *then_s < kStartUpPeriod * *now_s;
  return much_faster || active_.doubtful ? active_.before : active_.in_all();
}

void LaunchRepeats::Impl::adopt(Epoch epoch) {
  const LaunchTracker* before = active_.counted_tracker();
  const LaunchTracker* now = epoch.counted_tracker();
  // A part of a repeat that has been counted often is no news, unless it accounts for more by now.
  const auto buffered = static_cast<double>(buffer_.size());
  if (before != nullptr && !lost_ && before->coverage() >= kTrustedCoverage &&
      before->coverage() >= now->coverage() && before->completed() >= kWellKnown &&
      static_cast<double>(before->completed()) * before->spacing() >= now->coverage() * buffered &&
      now->spacing() < (1 - kSameSpacing) * before->spacing()) {
    return;
  }
  const bool same = before != nullptr && !lost_ &&
                    std::abs(now->spacing() / before->spacing() - 1) <= kSameSpacing &&
                    now->completed() >= before->completed();
  if (before != nullptr && !same) ++generation_;
  // Learned from the start of the loop: what was counted in it until now is counted again.
  epoch.before = buffer_first_ == 0 ? 0 : lost_ ? counted_until_now(*now) : active_.before;
  if (lost_ && before->coverage() >= kTrustedCoverage) {
    dormant_ = std::move(active_);
    dormant_completed_ = dormant_.completed();
    epoch.aside =
        !dormant_.aside && is_validation(*epoch.counted_tracker(), *dormant_.counted_tracker());
  }
  lost_ = false;
  active_ = std::move(epoch);
  active_then_ = active_.completed();
}

void LaunchRepeats::Impl::resume_dormant() {
  const std::uint64_t since = dormant_.aside ? 0 : dormant_.completed() - dormant_completed_;
  const std::uint64_t in_all = active_.in_all() + since;
  std::swap(active_, dormant_);
  active_.before = in_all - (active_.aside ? 0 : active_.completed());
  dormant_completed_ = dormant_.completed();
  active_then_ = active_.completed();
  ++generation_;
  lost_ = false;
  stop_learning();
}

// Goes back to the epoch before when only that one counts, and looks for a new one when the
// counted repeat has fallen silent.
void LaunchRepeats::Impl::watch_for_change() {
  if (dormant_.completed() >= dormant_completed_ + 2) {
    const LaunchTracker* then = dormant_.counted_tracker();
    const LaunchTracker* now = active_.counted_tracker();
    const auto silent = static_cast<double>(launches_ - now->last_mark_position());
    // They may share marks: a validation has those of the forward pass.
    if (then->spacing() > now->spacing() || silent > kReturnAfter * now->spacing()) {
      resume_dormant();
    } else if (active_.completed() > active_then_ + 1) {
      dormant_completed_ = dormant_.completed();
    }
  }
  if (dormant_.completed() == dormant_completed_) active_then_ = active_.completed();
  // A loop that has become longer than what came before it is no validation of that.
  if (active_.aside && dormant_.counted && work_of(active_) > work_of(dormant_)) {
    active_.aside = false;
  }
  const LaunchTracker* tracker = active_.counted_tracker();
  if (tracker == nullptr) return;
  const double silence = static_cast<double>(launches_ - tracker->last_mark_position());
  const double patience = std::max(kLeastSilence, kSilentSpacings * tracker->spacing());
  if (!lost_ && silence > patience) {
    lost_ = true;
    // A repeat that never covered the stream, or was seen a few times only, was a part of something
    // longer: keep what we have.
    const bool trusted =
        tracker->coverage() >= kTrustedCoverage && tracker->completed() >= kWellKnown;
    if (!learning_ || trusted) start_learning();
  } else if (lost_ && silence <= 1) {  // it was a long pause
    lost_ = false;
    if (tracker->coverage() >= kTrustedCoverage) stop_learning();
  }
}

void LaunchRepeats::Impl::start_learning() {
  learning_ = true;
  resume_at_ = 0;
  buffer_ = std::exchange(since_mark_, {});
  buffer_first_ = launches_ - buffer_.size();
  next_learn_ = kFirstLearn;
}

void LaunchRepeats::Impl::stop_learning() {
  learning_ = false;
  resume_at_ = 0;
  std::vector<Launch>().swap(buffer_);  // clear() would keep the memory
}

void LaunchRepeats::Impl::finish() {
  if (learning_ && !buffer_.empty()) learn();
  for (LaunchTracker& tracker : active_.trackers) {
    if (launches_ > 0) tracker.on_stream_end(launches_ - 1, last_ns_);
  }
}

std::size_t LaunchRepeats::Impl::memory_bytes() const {
  return sizeof(*this) + RunHasher::kStreams * 256 +
         (buffer_.capacity() + since_mark_.capacity()) * sizeof(Launch) + active_.memory_bytes() +
         dormant_.memory_bytes();
}

LaunchRepeats::LaunchRepeats(LaunchRepeatsOptions options)
    : impl_(std::make_unique<Impl>(options)) {}
LaunchRepeats::~LaunchRepeats() = default;
LaunchRepeats::LaunchRepeats(LaunchRepeats&&) noexcept = default;
LaunchRepeats& LaunchRepeats::operator=(LaunchRepeats&&) noexcept = default;

void LaunchRepeats::push(std::int64_t t_ns, std::uint64_t function_id, std::uint32_t stream) {
  impl_->push(t_ns, function_id, stream);
}
void LaunchRepeats::finish() { impl_->finish(); }

bool LaunchRepeats::locked() const { return impl_->epoch().counted.has_value(); }
std::uint64_t LaunchRepeats::iterations() const { return impl_->epoch().completed(); }
std::uint64_t LaunchRepeats::iterations_in_all() const { return impl_->epoch().in_all(); }
std::optional<std::size_t> LaunchRepeats::counted() const { return impl_->epoch().counted; }
std::uint64_t LaunchRepeats::generation() const { return impl_->generation(); }
std::uint64_t LaunchRepeats::launches() const { return impl_->launches(); }
std::size_t LaunchRepeats::memory_bytes() const { return impl_->memory_bytes(); }

std::optional<std::int64_t> LaunchRepeats::last_end_ns() const {
  const LaunchTracker* tracker = impl_->epoch().counted_tracker();
  return tracker == nullptr ? std::nullopt : tracker->last_end_ns();
}

std::vector<std::int64_t> LaunchRepeats::recent_end_ns() const {
  const LaunchTracker* tracker = impl_->epoch().counted_tracker();
  if (tracker == nullptr) return {};
  return {tracker->ends().begin(), tracker->ends().end()};
}

std::optional<double> LaunchRepeats::period_s() const {
  const LaunchTracker* tracker = impl_->epoch().counted_tracker();
  return tracker == nullptr ? std::nullopt : tracker->period_s();
}

std::vector<RepeatLevel> LaunchRepeats::levels() const {
  std::vector<RepeatLevel> levels;
  for (const LaunchTracker& tracker : impl_->epoch().trackers) {
    levels.push_back({tracker.completed(), tracker.spacing(), tracker.period_s(),
                      tracker.last_end_ns(), tracker.coverage()});
  }
  return levels;
}

}  // namespace gpoeo::iteration
