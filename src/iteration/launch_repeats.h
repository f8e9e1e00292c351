// SPDX-License-Identifier: Apache-2.0
// Iterations from a launch log: finds what repeats in an endless stream of kernel or graph
// launches and counts the repeats exactly.
//
// A program's loop leaves marks: launches, or short runs of launches, that occur once per repeat.
// Marks with the same spacing, one of each between two of any other, form a level: a layer, a
// micro-step, a step, a validation cycle. Spacing is measured in launches, not in seconds, so a
// clock change, a slow data loader or a pause does not disturb it. One level is counted
// (`counted`), all are reported. docs/iterations.md tells how levels are found, and their limits.
//
// Robust to: ids that change with the shape of the data, extra launches, lost records, launches of
// several streams interleaved in any order, pauses and validation between steps, CUDA graphs (a
// step of one launch).
//
// Thread rule: one thread at a time. Errors: none; a stream in which nothing repeats is simply
// never `locked`. Time may stand still or step back between launches; only order is used to count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace gpoeo::iteration {

struct LaunchRepeatsOptions {
  // Launches kept while structure is being learned, 16 bytes each, and for a moment while learning
  // 30 to 55 bytes each; all of it is given back when the structure is known. A repeat longer than
  // a third of this is not found.
  std::size_t max_buffered_launches = std::size_t{1} << 20;
  // End times kept for each level, newest last.
  std::size_t recent_ends = 1024;
};

// One kind of repeat.
struct RepeatLevel {
  std::uint64_t iterations = 0;             // completed since the stream began
  double launches = 0;                      // per repeat, median
  std::optional<double> period_s;           // mean time per repeat, pauses left out
  std::optional<std::int64_t> last_end_ns;  // time of the launch that completed the last one
  double coverage = 0;                      // share of the learned launches that lie in it, 0..1
};

class LaunchRepeats {
 public:
  explicit LaunchRepeats(LaunchRepeatsOptions options = {});
  ~LaunchRepeats();
  LaunchRepeats(LaunchRepeats&&) noexcept;
  LaunchRepeats& operator=(LaunchRepeats&&) noexcept;

  // Next launch. `function_id`: equal for launches of the same kernel with the same grid. `stream`:
  // 0 when unknown; when known it keeps the order inside a stream apart from the interleaving.
  // Amortised O(1).
  void push(std::int64_t t_ns, std::uint64_t function_id, std::uint32_t stream = 0);
  // The stream has ended: learns from what is there, and completes an iteration of which only
  // lost records can be missing. push() may go on afterwards.
  void finish();

  // Whether a repeat is known. Everything below is empty or 0 until then; then it covers the
  // stream from its first launch on, or, when the program went on to another loop, from there on.
  bool locked() const;
  // Completed iterations of the counted level. Never falls within one generation().
  std::uint64_t iterations() const;
  // Completed iterations since the stream began: of the counted level, and of the loops before it
  // when the program went on to another. Restated, up or down, when a longer repeat turns out to be
  // the one to count: then it is as if that had been known from the start.
  std::uint64_t iterations_in_all() const;
  std::optional<std::int64_t> last_end_ns() const;
  // The newest end times of the counted level, oldest first.
  std::vector<std::int64_t> recent_end_ns() const;
  // Mean seconds per iteration of the counted level, pauses left out.
  std::optional<double> period_s() const;

  // All levels, shortest first, and which of them is counted: the shortest that covers the stream,
  // then up through the levels that hold a fixed small number of it (layer, micro-step -> step).
  std::vector<RepeatLevel> levels() const;
  std::optional<std::size_t> counted() const;
  // Grows when the counted level becomes another one (a longer one was found, or the program went
  // on to another loop): counts and end times before and after do not compare.
  std::uint64_t generation() const;

  std::uint64_t launches() const;    // pushed in all
  std::size_t memory_bytes() const;  // held now, heap included

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpoeo::iteration
