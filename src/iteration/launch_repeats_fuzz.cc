// SPDX-License-Identifier: Apache-2.0
// Programs made of the input: each byte appends a launch, repeats what was launched last, or
// pauses. Random text hardly ever repeats; this does, and breaks its repeats in every way.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/result.h"
#include "iteration/launch_repeats.h"

namespace {

// Launches with times that may do anything, through a small buffer so that it fills.
class Player {
 public:
  void launch(std::uint64_t id) {
    t_ns_ += (id % 7 == 3) ? -500 : 1000;
    repeats_.push(t_ns_, id, static_cast<std::uint32_t>(id % 3));
    if (repeats_.generation() != generation_) {
      generation_ = repeats_.generation();
      counted_ = 0;
    }
    GPOEO_CHECK(repeats_.iterations() >= counted_);  // never falls within a generation
    counted_ = repeats_.iterations();
    history_.push_back(id);
  }
  void again(std::size_t length, std::size_t times) {
    if (history_.empty()) return;
    length = std::min(length + 1, history_.size());
    const std::vector<std::uint64_t> body(history_.end() - static_cast<std::ptrdiff_t>(length),
                                          history_.end());
    for (std::size_t i = 0; i < times; ++i) {
      for (const std::uint64_t id : body) launch(id);
    }
  }
  void jump(std::int64_t to_ns) { t_ns_ = to_ns; }
  void finish() {
    repeats_.finish();
    GPOEO_CHECK(repeats_.iterations() <= repeats_.launches());
    GPOEO_CHECK(repeats_.recent_end_ns().empty() == (repeats_.iterations() == 0));
  }
  std::size_t size() const { return history_.size(); }

 private:
  gpoeo::iteration::LaunchRepeats repeats_{{.max_buffered_launches = 4096, .recent_ends = 64}};
  std::vector<std::uint64_t> history_;
  std::int64_t t_ns_ = 0;
  std::uint64_t counted_ = 0, generation_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kMostLaunches = 60'000;
  Player player;
  for (std::size_t i = 0; i + 1 < size && player.size() < kMostLaunches; i += 2) {
    const std::uint8_t what = data[i], value = data[i + 1];
    if (what < 160) {
      player.launch(value);
    } else if (what < 240) {
      player.again(value, what - 159);
    } else if (what < 248) {
      player.jump(value < 128 ? std::numeric_limits<std::int64_t>::max() / 2 : -value);
    } else {
      player.finish();
    }
  }
  player.finish();
  return 0;
}
