// SPDX-License-Identifier: Apache-2.0
// Learns the repeats of a finite piece of a launch log: which launches (or short runs of launches)
// mark a repeat, how far apart, and which repeats nest in which. The online part, which counts
// with what was learned here, is launch_tracker.h.
//
// Thread rule: pure functions and plain values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace gpoeo::iteration {

struct Launch {
  std::int64_t t_ns = 0;
  std::uint32_t id = 0;  // fold_function_id()
  std::uint32_t stream = 0;
};

// Function ids of any size to 32 bits, well mixed.
std::uint32_t fold_function_id(std::uint64_t function_id);

// Lengths of the runs of launches that can serve as a mark. Long runs tell apart places that look
// alike, but a lost or foreign record spoils every run that spans it, so short ones are preferred.
inline constexpr std::array<std::size_t, 6> kRunLengths = {1, 2, 4, 8, 16, 32};

// Rolling hashes of the newest launches of each stream.
class RunHasher {
 public:
  // Streams are told apart up to this many; more share a history, which only costs marks.
  static constexpr std::size_t kStreams = 32;

  void push(std::uint32_t stream, std::uint32_t id);
  // Key of the run of kRunLengths[which] launches that ends with the last push; nothing while the
  // stream is too young. Keys of different lengths never meet.
  std::optional<std::uint64_t> key(std::size_t which) const;

 private:
  struct History {
    std::array<std::uint32_t, 32> ids{};
    std::array<std::uint64_t, kRunLengths.size()> hash{};
    std::uint64_t pushed = 0;
  };
  std::vector<History> streams_ = std::vector<History>(kStreams);
  std::size_t current_ = 0;
};

// A run that occurs once per repeat. `offset`: launches from the start of the repeat to its end.
struct Mark {
  std::uint64_t key = 0;
  std::size_t run = 0;  // index in kRunLengths
  double offset = 0;
  std::size_t group = 0;  // which kind of repeat it marks, where there are several
};

// A level is counted by the distance of its marks, or, where that varies, by their order.
struct LevelPlan {
  double spacing = 0;       // launches per repeat, median
  double shortest = 0;      // 10th percentile of the spacings that count as one repeat
  std::size_t origin = 0;   // index of the launch with which the first repeat starts
  std::vector<Mark> marks;  // by offset; the last one is nearest the end of the repeat
  double coverage = 0;      // share of all launches that lie in the repeats
  std::size_t repeats = 0;  // occurrences of the reference mark
  bool ordered = false;     // the marks take turns, in their order here
  std::size_t groups = 1;   // kinds of repeats, each with marks of its own; of ordered levels
};

struct LaunchStructure {
  std::vector<LevelPlan> levels;  // shortest spacing first
  std::optional<std::size_t> counted;
};

// Cost: O(n) for each run length tried; 24 bytes a launch while it runs.
LaunchStructure learn_structure(std::span<const Launch> launches);

}  // namespace gpoeo::iteration
