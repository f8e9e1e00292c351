// SPDX-License-Identifier: Apache-2.0
// How fast the twin's core runs and what a shared card costs its users. Prints figures; judges
// nothing. Usage: twin_speed [SIMULATED_SECONDS]
#include <fmt/format.h>
#include <unistd.h>

#include <ctime>
#include <string>

#include "base/text.h"
#include "twin/card_front.h"
#include "twin/compile.h"
#include "twin/device_spec.h"
#include "twin/job_catalog.h"
#include "twin/judge.h"
#include "twin/segment.h"
#include "twin/twin.h"

namespace {

using namespace gpoeo;

double cpu_s() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// One card with one job, read as a sampler does: the new power samples each 100 ms.
Status speed(const std::string& device, const std::string& job, double seconds) {
  GPOEO_TRY(const auto model, twin::find_device(device));
  GPOEO_TRY(const auto spec, twin::find_job(device, job));
  GPOEO_TRY(const auto work, twin::compile(spec, model));
  VirtualClock clock;
  twin::Twin twin(clock);
  const unsigned card = twin.add_card(model);
  GPOEO_TRY(const auto handle, twin.attach(card, *work));
  const twin::CardFront front(twin, card);
  std::size_t samples = 0;
  Instant last = clock.now();
  const double begin = cpu_s();
  for (double t = 0; t < seconds; t += 0.1) {
    clock.advance(std::chrono::milliseconds(100));
    GPOEO_TRY(const auto news, front.power_samples_since(last));
    if (!news.empty()) last = news.back().time;
    samples += news.size();
  }
  const double spent = cpu_s() - begin;
  GPOEO_TRY(const auto progress, twin.progress(card, handle));
  fmt::print(
      "{:10s} {:14s} {:8.0f} simulated s per CPU s  ({:.0f} s, {} power samples, {} "
      "iterations in {:.2f} CPU s)\n",
      device, job, seconds / spent, seconds, samples, progress.iterations, spent);
  return {};
}

// What one call on a shared card costs when little time has passed.
Status call_cost() {
  GPOEO_TRY(const auto model, twin::find_device("h200"));
  GPOEO_TRY(const auto spec, twin::find_job("h200", "resnet50"));
  GPOEO_TRY(const auto work, twin::compile(spec, model));
  twin::SegmentOptions options;
  options.cards = {model};
  const std::string name = fmt::format("bench-{}", getpid());
  GPOEO_TRY(const auto segment, twin::Segment::create(name, options));
  GPOEO_TRY(const auto handle, segment->attach_job(0, *work, {}));
  static_cast<void>(handle);
  const twin::CardFront front(*segment, 0);
  constexpr int kCalls = 100'000;
  const double begin = cpu_s();
  for (int i = 0; i < kCalls; ++i) GPOEO_TRY_STATUS(front.power_instant());
  fmt::print("a reading of a shared card: {:.2f} us CPU; state {} bytes, a job's table {} bytes\n",
             (cpu_s() - begin) / kCalls * 1e6, sizeof(twin::CardState), sizeof(twin::Work));
  return twin::Segment::remove(name, /*force=*/true);
}

}  // namespace

int main(int argc, char** argv) {
  double seconds = 20'000;
  if (argc > 1) seconds = gpoeo::parse_double(argv[1]).value_or(seconds);
  for (const auto& [device, job] : {std::pair{"h200", "resnet50"},
                                    {"h200", "dlrm"},
                                    {"h200", "gpt2_accum"},
                                    {"a100", "LSTM"},
                                    {"titanx", "gemm"},
                                    {"rtx3080ti", "resnet50"}})
    if (const auto done = speed(device, job, seconds); !done)
      fmt::print(stderr, "{}\n", done.error().text);
  if (const auto done = call_cost(); !done) fmt::print(stderr, "{}\n", done.error().text);
}
