// SPDX-License-Identifier: Apache-2.0
#include "twin/twin.h"

#include <fmt/format.h>

#include "twin/card_name.h"

namespace gpoeo::twin {

struct Twin::Slot {
  DeviceModel device;
  CardName name;
  CardState state;
  // Made when first needed: a Work is most of a megabyte.
  std::array<std::unique_ptr<Work>, kMaxJobs> works;
  std::array<std::unique_ptr<IterationLog>, kMaxJobs> logs;

  Card card() {
    Card view{state, device, {}, {}};
    for (std::size_t i = 0; i < works.size(); ++i) {
      view.works[i] = works[i].get();
      view.logs[i] = logs[i].get();
    }
    return view;
  }
};

Twin::Twin(const Clock& clock, std::string name) : clock_(clock), name_(std::move(name)) {}
Twin::~Twin() = default;

unsigned Twin::add_card(const DeviceModel& device, std::uint64_t seed) {
  auto slot = std::make_unique<Slot>();
  slot->device = device;
  slot->name = make_card_name(name_, card_count());
  initialize(slot->state, slot->device, seed, clock_.now());
  slots_.push_back(std::move(slot));
  return card_count() - 1;
}

Status Twin::visit(unsigned card, const std::function<Status(Card&)>& f) {
  if (card >= slots_.size())
    return make_error(ErrorKind::kInvalid,
                      fmt::format("no simulated card {}; there are {}", card, slots_.size()));
  Card view = slots_[card]->card();
  advance(view, clock_.now());
  return f(view);
}

Result<JobHandle> Twin::attach(unsigned card, const Work& work, const JobOptions& options) {
  if (card < slots_.size())
    for (std::size_t i = 0; i < kMaxJobs; ++i)
      if (Slot& slot = *slots_[card]; !slot.works[i]) {
        slot.works[i] = std::make_unique<Work>();
        slot.logs[i] = std::make_unique<IterationLog>();
      }
  JobHandle handle;
  GPOEO_TRY_STATUS(visit(card, [&](Card& view) -> Status {
    GPOEO_TRY(handle, attach_job(view, work, options));
    return {};
  }));
  return handle;
}

Status Twin::detach(unsigned card, JobHandle job) {
  return visit(card, [&](Card& view) { return detach_job(view, job); });
}

Result<JobProgress> Twin::progress(unsigned card, JobHandle job) {
  JobProgress progress{};
  GPOEO_TRY_STATUS(visit(card, [&](Card& view) -> Status {
    GPOEO_TRY(progress, job_progress(view, job));
    return {};
  }));
  return progress;
}

Result<std::vector<IterationEnd>> Twin::iteration_ends(unsigned card, JobHandle job,
                                                       std::int64_t first) {
  std::vector<IterationEnd> ends;
  GPOEO_TRY_STATUS(visit(card, [&](Card& view) -> Status {
    GPOEO_TRY(ends, twin::iteration_ends(view, job, first));
    return {};
  }));
  return ends;
}

unsigned Twin::card_count() const { return static_cast<unsigned>(slots_.size()); }
const DeviceModel& Twin::device(unsigned card) const { return slots_.at(card)->device; }
const CardName& Twin::name(unsigned card) const { return slots_.at(card)->name; }
Instant Twin::now() const { return clock_.now(); }
const Clock& Twin::clock() const { return clock_; }

}  // namespace gpoeo::twin
