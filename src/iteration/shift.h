// SPDX-License-Identifier: Apache-2.0
// Notices when a job goes on to other work, on several signals at once (power, utilisation, memory
// activity, iteration rate: any numbers sampled together).
//
// Samples are gathered into blocks of half a second; each block has a level, a swing and a
// roughness for each signal. What is usual for the phase is the middle and the spread of the blocks
// of the last minute (older ones are forgotten, so slow drift is followed). Blocks that are far
// from usual start an excursion. It is a shift once it has lasted for a share of the phase's own
// age; a validation, a checkpoint or a stall that ends sooner is a pause. Phases keep a signature,
// and one that returns is recognised. docs/iterations.md has the limits.
//
// Thread rule: one thread at a time. Errors: samples that are not finite, do not come after the one
// before, or have another number of signals are dropped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

namespace gpoeo::iteration {

struct ShiftOptions {
  double block_s = 0.5;
  double memory_s = 60;     // what is usual is learned from so long
  double learn_s = 4;       // nothing is reported before a phase has been known for so long
  double least_s = 2;       // an excursion is a shift after the largest of this
  double age_share = 0.15;  // and this share of the phase's age,
  double most_s = 60;       // but at most this
};

struct Shift {
  double began_s = 0;     // first unusual block
  double noticed_s = 0;   // when it was sure
  std::size_t phase = 0;  // the phase it has gone to
  bool known = false;     // that phase was seen before, at this clock setting
};

class ShiftDetector {
 public:
  explicit ShiftDetector(std::size_t signals, ShiftOptions options = {});

  // A sample of all signals; the shift, in the one call in which it becomes sure. Amortised
  // O(memory_s / block_s) a block.
  std::optional<Shift> push(double t_s, std::span<const double> values);
  // Our own clock change: what is usual is learned anew, the phase stays, signatures are kept apart
  // for each `setting` (any number that names the clocks).
  void on_clock_change(std::uint64_t setting);

  std::size_t phase() const { return phase_; }  // from 0
  // In an excursion that is not (yet) a shift.
  bool away() const { return !excursion_.empty(); }
  std::size_t known_phases() const { return signatures_.size(); }

 private:
  struct Block {
    double begin_s = 0, end_s = 0;
    std::vector<double> features;  // three for each signal
  };
  struct Usual {
    std::vector<double> middle, below, above;  // and its spread to both sides, never 0
  };
  struct Signature {
    std::size_t phase = 0;
    std::uint64_t setting = 0;
    Usual usual;
  };

  std::optional<Block> gather(double t_s, std::span<const double> values);
  Block close_block();
  std::optional<Shift> on_block(Block block);
  Usual usual_of(const std::deque<Block>& blocks) const;
  bool is_unusual(const Usual& usual, const std::vector<double>& features) const;
  void remember();
  Shift shift_to(double now_s);
  void end_excursion();
  void clear_excursion();

  std::size_t signals_;
  ShiftOptions options_;
  double block_length_s_;  // of the block under way
  double golden_ = 0;
  double last_s_;
  double block_begin_s_ = 0;
  std::size_t block_samples_ = 0;
  std::vector<double> sum_, squares_, steps_, last_;

  std::deque<Block> blocks_;                      // usual ones, the newest memory_s
  std::deque<Block> excursion_;                   // since the first unusual block
  std::size_t usual_in_a_row_ = 0, unusual_ = 0;  // blocks of the excursion
  double phase_begin_s_ = 0;
  bool phase_begun_ = false;
  std::size_t phase_ = 0;
  std::size_t next_phase_ = 1;
  std::uint64_t setting_ = 0;
  std::deque<Signature> signatures_;
};

}  // namespace gpoeo::iteration
