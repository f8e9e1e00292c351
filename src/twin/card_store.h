// SPDX-License-Identifier: Apache-2.0
// Where simulated cards live. Two kinds: `Twin` (twin.h) on the heap and any Clock, `Segment`
// (segment.h) in a file that several processes map. CardFront and TwinDevice work on either.
#pragma once

#include <functional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "twin/card.h"

namespace gpoeo::twin {

// What a card is called; unlike DeviceModel it differs between two cards of one model.
struct CardName {
  std::string uuid;        // "GPU-7714e500-...": stable for a store's name and the card's index
  std::string pci_bus_id;  // "00000000:01:00.0"
  std::string serial;
};

// Thread rule: a Segment may be used from any number of threads and processes; a Twin from one.
class CardStore {
 public:
  virtual ~CardStore() = default;

  virtual unsigned card_count() const = 0;
  virtual const DeviceModel& device(unsigned card) const = 0;
  virtual const CardName& name(unsigned card) const = 0;
  // The time of these cards; sensors' time stamps are on it.
  virtual Instant now() const = 0;
  virtual const Clock& clock() const = 0;

  // Brings the card to now() and runs `f` on it. What `f` does to the state takes effect as one
  // step: all of it, or (the process is killed on the way) none of it. Keep `f` short and do not
  // call the store from it. kInvalid for a card that is not there.
  virtual Status visit(unsigned card, const std::function<Status(Card&)>& f) = 0;
};

}  // namespace gpoeo::twin
