// SPDX-License-Identifier: Apache-2.0
// The injected library's own share of a launch, in nanoseconds: its callback as CUPTI calls it, on
// entry and on exit, with an empty ring and with a full one. CUPTI's share needs a GPU
// (tests/hw/inject_overhead.py).
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

extern "C" void fakeDriverCall(std::uint32_t id, const void* parameters, std::uint32_t context);

namespace gpoeo::bench {
namespace {

namespace cupti = inject::cupti;
constexpr int kCalls = 50'000;  // fits the ring

double now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e9 * static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec);
}

double ns_per_launch() {
  const double start = now_ns();
  for (int i = 0; i < kCalls; ++i) {
    const cupti::LaunchKernelParameters p{
        reinterpret_cast<void*>(0x1000 + 64 * (i % 200)), 7, 1, 1, 32, 1, 1, 0, nullptr};
    fakeDriverCall(cupti::kLaunchKernel, &p, 1);
  }
  return (now_ns() - start) / kCalls;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

int run() {
  std::string folder = (std::filesystem::temp_directory_path() / "gpoeo-bench-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 1;
  constexpr int kRounds = 40;
  std::vector<double> without, with, full;
  for (int i = 0; i < kRounds; ++i) without.push_back(ns_per_launch());
  setenv(wire::kRingDirEnv, folder.c_str(), 1);
  void* library = dlopen(GPOEO_INJECT, RTLD_NOW);
  if (library == nullptr) return 1;
  reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection"))();
  auto ring = wire::RingReader::open(std::filesystem::directory_iterator(folder)->path());
  if (!ring) return 1;
  std::vector<wire::RingRecord> records;
  for (int i = 0; i < kRounds; ++i) {
    with.push_back(ns_per_launch());
    records.clear();
    if (!ring->drain(records)) return 1;
  }
  for (int i = 0; i < kRounds; ++i) full.push_back(ns_per_launch());
  const double base = median(without);
  fmt::print("own share of a launch: {:.0f} ns; with a full ring {:.0f} ns (median of {} x {})\n",
             median(with) - base,
             median(full.size() > 2 ? std::vector(full.begin() + 2, full.end()) : full) - base,
             kRounds, kCalls);
  std::filesystem::remove_all(folder);
  return 0;
}

}  // namespace
}  // namespace gpoeo::bench

int main() { return gpoeo::bench::run(); }
