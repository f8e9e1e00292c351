// SPDX-License-Identifier: Apache-2.0
// Simulated cards on the heap, on any Clock: for unit tests and `bench`. Reading a card brings it
// to the clock's time first; nothing else moves it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "twin/card_store.h"

namespace gpoeo::twin {

class Twin final : public CardStore {
 public:
  // Borrows the clock. `name` and the card's index make the UUIDs.
  explicit Twin(const Clock& clock, std::string name = "virtual");
  ~Twin() override;

  // Returns the new card's index.
  unsigned add_card(const DeviceModel& device, std::uint64_t seed = 1);
  Result<JobHandle> attach(unsigned card, const Work& work, const JobOptions& options = {});
  Status detach(unsigned card, JobHandle job);
  Result<JobProgress> progress(unsigned card, JobHandle job);
  // End times of iterations `first` and later (the newest 16384 at most).
  Result<std::vector<IterationEnd>> iteration_ends(unsigned card, JobHandle job,
                                                   std::int64_t first);

  unsigned card_count() const override;
  const DeviceModel& device(unsigned card) const override;
  const CardName& name(unsigned card) const override;
  Instant now() const override;
  const Clock& clock() const override;
  Status visit(unsigned card, const std::function<Status(Card&)>& f) override;

 private:
  struct Slot;
  const Clock& clock_;
  std::string name_;
  std::vector<std::unique_ptr<Slot>> slots_;
};

}  // namespace gpoeo::twin
