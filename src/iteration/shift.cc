// SPDX-License-Identifier: Apache-2.0
#include "iteration/shift.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "iteration/series.h"

namespace gpoeo::iteration {
namespace {

constexpr std::size_t kFeatures = 3;  // level, swing, roughness
// Fewer samples make no block.
constexpr std::size_t kLeastSamplesOfBlock = 4;
// A block is unusual when a feature is so many standard deviations from the middle.
constexpr double kFar = 4.5;
// 10 % and 90 % quantiles of a normal distribution lie so many deviations from its middle. The
// spread is taken there, so that a tenth of the blocks may be anything (start-up, short pauses).
constexpr double kTail = 0.1;
constexpr double kTailDeviations = 1.2816;
// Least deviation of a feature, as a share of the signal's level: smaller changes do not matter.
constexpr double kLeastOfLevel = 0.015;
// So many usual blocks in a row end an excursion.
constexpr std::size_t kBackAfter = 3;
// A returning phase's features lie within so many of its deviations, and a share of its level.
constexpr double kRecognised = 3;
constexpr std::size_t kMostSignatures = 64;
constexpr double kGoldenSection = 0.6180339887;
// Share of an excursion's blocks that must be unusual for it to be a shift.
constexpr double kMostlyUnusual = 0.6;

}  // namespace

ShiftDetector::ShiftDetector(std::size_t signals, ShiftOptions options)
    : signals_(signals),
      options_(options),
      block_length_s_(options.block_s),
      last_s_(-std::numeric_limits<double>::infinity()),
      sum_(signals),
      squares_(signals),
      steps_(signals),
      last_(signals) {}

std::optional<Shift> ShiftDetector::push(double t_s, std::span<const double> values) {
  const bool finite = std::ranges::all_of(values, [](double v) { return std::isfinite(v); });
  if (values.size() != signals_ || !finite || !std::isfinite(t_s) || t_s <= last_s_) {
    return std::nullopt;
  }
  last_s_ = t_s;
  if (!phase_begun_) {
    phase_begun_ = true;
    phase_begin_s_ = t_s;
    block_begin_s_ = t_s;
  }
  std::optional<Shift> shift;
  if (auto block = gather(t_s, values)) shift = on_block(std::move(*block));
  return shift;
}

// Adds the sample to the block under way; the block before, when the sample begins a new one.
std::optional<ShiftDetector::Block> ShiftDetector::gather(double t_s,
                                                          std::span<const double> values) {
  std::optional<Block> closed;
  if (t_s - block_begin_s_ >= block_length_s_) {
    // Blocks of one length would always cut an iteration of a like length at the same places, and
    // at others after a pause; the golden section spreads the cuts evenly.
    golden_ = std::fmod(golden_ + kGoldenSection, 1.0);
    block_length_s_ = options_.block_s * (0.75 + 0.5 * golden_);
    if (block_samples_ >= kLeastSamplesOfBlock) closed = close_block();
    block_begin_s_ = t_s;
    block_samples_ = 0;
    std::ranges::fill(sum_, 0);
    std::ranges::fill(squares_, 0);
    std::ranges::fill(steps_, 0);
  }
  for (std::size_t i = 0; i < signals_; ++i) {
    sum_[i] += values[i];
    squares_[i] += values[i] * values[i];
    if (block_samples_ > 0) steps_[i] += std::abs(values[i] - last_[i]);
    last_[i] = values[i];
  }
  ++block_samples_;
  return closed;
}

ShiftDetector::Block ShiftDetector::close_block() {
  Block block;
  block.begin_s = block_begin_s_;
  block.end_s = last_s_;
  const double n = static_cast<double>(block_samples_);
  for (std::size_t i = 0; i < signals_; ++i) {
    const double level = sum_[i] / n;
    block.features.push_back(level);
    block.features.push_back(std::sqrt(std::max(0.0, squares_[i] / n - level * level)));
    block.features.push_back(steps_[i] / (n - 1));
  }
  return block;
}

ShiftDetector::Usual ShiftDetector::usual_of(const std::deque<Block>& blocks) const {
  Usual usual;
  for (std::size_t f = 0; f < signals_ * kFeatures; ++f) {
    std::vector<double> values, levels;
    for (const Block& block : blocks) {
      values.push_back(block.features[f]);
      levels.push_back(block.features[f - f % kFeatures]);
    }
    const double least =
        std::max(1e-12, kLeastOfLevel * std::abs(quantile(std::move(levels), 0.5)));
    const double middle = quantile(values, 0.5);
    const double low = quantile(values, kTail), high = quantile(std::move(values), 1 - kTail);
    usual.middle.push_back(middle);
    usual.below.push_back(std::max(least, (middle - low) / kTailDeviations));
    usual.above.push_back(std::max(least, (high - middle) / kTailDeviations));
  }
  return usual;
}

bool ShiftDetector::is_unusual(const Usual& usual, const std::vector<double>& features) const {
  for (std::size_t f = 0; f < features.size(); ++f) {
    const double off = features[f] - usual.middle[f];
    if (off > kFar * usual.above[f] || -off > kFar * usual.below[f]) return true;
  }
  return false;
}

std::optional<Shift> ShiftDetector::on_block(Block block) {
  const double now_s = block.end_s;
  const auto learned = static_cast<double>(blocks_.size()) * options_.block_s;
  const bool unusual = learned >= options_.learn_s && is_unusual(usual_of(blocks_), block.features);
  if (excursion_.empty() && !unusual) {
    blocks_.push_back(std::move(block));
    while (static_cast<double>(blocks_.size()) * options_.block_s > options_.memory_s) {
      blocks_.pop_front();
    }
    return std::nullopt;
  }
  usual_in_a_row_ = unusual ? 0 : usual_in_a_row_ + 1;
  unusual_ += unusual;
  excursion_.push_back(std::move(block));
  if (usual_in_a_row_ >= kBackAfter) {
    end_excursion();
    return std::nullopt;
  }
  const double began_s = excursion_.front().begin_s;
  const double needed_s = std::clamp(options_.age_share * (began_s - phase_begin_s_),
                                     options_.least_s, options_.most_s);
  const bool mostly =
      static_cast<double>(unusual_) >= kMostlyUnusual * static_cast<double>(excursion_.size());
  if (!unusual || !mostly || now_s - began_s < needed_s) return std::nullopt;
  return shift_to(now_s);
}

// It was a pause: the phase goes on. Its usual blocks at the end count, the pause does not.
void ShiftDetector::end_excursion() {
  const auto usual = static_cast<std::ptrdiff_t>(usual_in_a_row_);
  blocks_.insert(blocks_.end(), excursion_.end() - usual, excursion_.end());
  clear_excursion();
}

void ShiftDetector::clear_excursion() {
  excursion_.clear();
  usual_in_a_row_ = 0;
  unusual_ = 0;
}

void ShiftDetector::remember() {
  if (static_cast<double>(blocks_.size()) * options_.block_s < options_.learn_s) return;
  std::erase_if(signatures_,
                [&](const Signature& s) { return s.phase == phase_ && s.setting == setting_; });
  signatures_.push_back({phase_, setting_, usual_of(blocks_)});
  if (signatures_.size() > kMostSignatures) signatures_.pop_front();
}

Shift ShiftDetector::shift_to(double now_s) {
  remember();
  Shift shift{excursion_.front().begin_s, now_s, next_phase_, false};
  // The first blocks hold the change itself (a gap between two jobs); the later half is the phase.
  const auto later = static_cast<std::ptrdiff_t>(excursion_.size() / 2);
  blocks_.assign(excursion_.begin() + later, excursion_.end());
  const Usual now = usual_of(blocks_);
  for (const Signature& s : signatures_) {
    if (s.setting != setting_ || s.phase == phase_) continue;
    bool same = true;
    for (std::size_t f = 0; f < now.middle.size() && same; ++f) {
      const double off = now.middle[f] - s.usual.middle[f];
      same = off <= kRecognised * s.usual.above[f] && -off <= kRecognised * s.usual.below[f];
    }
    if (!same) continue;
    shift.phase = s.phase;
    shift.known = true;
  }
  if (!shift.known) ++next_phase_;
  phase_ = shift.phase;
  phase_begin_s_ = shift.began_s;
  clear_excursion();
  return shift;
}

void ShiftDetector::on_clock_change(std::uint64_t setting) {
  remember();
  setting_ = setting;
  blocks_.clear();
  clear_excursion();
  block_samples_ = 0;
  block_begin_s_ = last_s_;
  std::ranges::fill(sum_, 0);
  std::ranges::fill(squares_, 0);
  std::ranges::fill(steps_, 0);
}

}  // namespace gpoeo::iteration
