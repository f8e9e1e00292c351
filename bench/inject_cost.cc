// SPDX-License-Identifier: Apache-2.0
// The injected library's own share of a launch, in nanoseconds: its callback as CUPTI calls it, on
// entry and on exit, beyond a callback that does nothing. Back to back, with room in the ring and
// with a full one; and with the caches full of other things, as a job leaves them between launches.
// CUPTI's share needs a GPU (tests/hw/inject_overhead.py).
//
// usage: inject_cost
#include <dlfcn.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <time.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "inject/cupti_abi.h"
#include "wire/ring_reader.h"

namespace cupti = gpoeo::inject::cupti;

extern "C" {
cupti::Result cuptiSubscribe(cupti::Subscriber*, cupti::Callback, void*);
cupti::Result cuptiUnsubscribe(cupti::Subscriber);
cupti::Result cuptiEnableCallback(std::uint32_t, cupti::Subscriber, int, std::uint32_t);
void fakeDriverCall(std::uint32_t id, const void* parameters, std::uint32_t context);
}

namespace gpoeo::bench {
namespace {

constexpr int kCalls = 50'000;  // fits the ring
constexpr int kRounds = 60;
constexpr int kColdCalls = 4'000;
constexpr std::size_t kOtherBytes = std::size_t{4} << 20;  // more than most second-level caches

double now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e9 * static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec);
}

void launch(int i) {
  const cupti::LaunchKernelParameters p{
      reinterpret_cast<void*>(0x1000 + 64 * (i % 200)), 7, 1, 1, 32, 1, 1, 0, nullptr};
  fakeDriverCall(cupti::kLaunchKernel, &p, 1);
}

double ns_per_launch() {
  const double start = now_ns();
  for (int i = 0; i < kCalls; ++i) launch(i);
  return (now_ns() - start) / kCalls;
}

double quantile(std::vector<double> values, double q) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
}

// Lower quartile: whatever else runs on the machine can only add.
double fast(const std::vector<double>& values) { return quantile(values, 0.25); }

double cold_ns_per_launch() {
  std::vector<unsigned char> other(kOtherBytes);
  std::vector<double> each;
  for (int i = 0; i < kColdCalls; ++i) {
    for (std::size_t at = 0; at < kOtherBytes; at += 64) other[at] = static_cast<unsigned char>(i);
    const double start = now_ns();
    launch(i);
    each.push_back(now_ns() - start);
  }
  return quantile(each, 0.5);
}

double clock_ns() {
  std::vector<double> each;
  for (int i = 0; i < kRounds; ++i) {
    const double start = now_ns();
    for (int k = 1; k < kCalls; ++k) now_ns();
    each.push_back((now_ns() - start) / kCalls);
  }
  return fast(each);
}

void do_nothing(void*, int, std::uint32_t, const void*) {}

struct Costs {
  std::vector<double> back_to_back;
  double cold = 0;
};

Costs of_empty_callback() {
  cupti::Subscriber subscriber = nullptr;
  cuptiSubscribe(&subscriber, do_nothing, nullptr);
  cuptiEnableCallback(1, subscriber, cupti::kDriverApi, cupti::kLaunchKernel);
  Costs costs;
  for (int i = 0; i < kRounds; ++i) costs.back_to_back.push_back(ns_per_launch());
  costs.cold = cold_ns_per_launch();
  cuptiUnsubscribe(subscriber);
  return costs;
}

int run() {
  std::string folder = (std::filesystem::temp_directory_path() / "gpoeo-bench-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 1;
  const Costs empty = of_empty_callback();
  setenv(wire::kRingDirEnv, folder.c_str(), 1);
  void* library = dlopen(GPOEO_INJECT, RTLD_NOW);
  if (library == nullptr) return 1;
  reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection"))();
  auto ring = wire::RingReader::open(std::filesystem::directory_iterator(folder)->path());
  if (!ring) return 1;
  std::vector<wire::RingRecord> records;
  Costs with;
  for (int i = 0; i < kRounds; ++i) {
    with.back_to_back.push_back(ns_per_launch());
    records.clear();
    if (!ring->drain(records)) return 1;
  }
  with.cold = cold_ns_per_launch();
  std::vector<double> full;
  for (int i = 0; i < kRounds; ++i) full.push_back(ns_per_launch());
  full.erase(full.begin(), full.begin() + 2);  // that filled it
  const double base = fast(empty.back_to_back);
  fmt::print(
      "own share of a launch, beyond an empty callback: {:.0f} ns back to back, {:.0f} ns with "
      "cold "
      "caches, {:.0f} ns with a full ring; reading the clock alone: {:.0f} ns "
      "({} x {}, lower quartile; cold: median of {})\n",
      fast(with.back_to_back) - base, with.cold - empty.cold, fast(full) - base, clock_ns(),
      kRounds, kCalls, kColdCalls);
  std::filesystem::remove_all(folder);
  return 0;
}

}  // namespace
}  // namespace gpoeo::bench

int main() { return gpoeo::bench::run(); }
