// SPDX-License-Identifier: Apache-2.0
// Nanoseconds a launch of an empty kernel costs the host: run with and without
// CUDA_INJECTION64_PATH. The queue is emptied often, so that it is the host that limits.
//
// nvcc -O2 -o launch_cost launch_cost.cu; ./launch_cost [SECONDS: again and again for so long]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>

__global__ void nothing() {}

static double now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e9 * static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec);
}

int main(int argc, char** argv) {
  constexpr int kBatch = 500, kBatches = 400;
  const double until = now_ns() + 1e9 * (argc > 1 ? std::atof(argv[1]) : 0);
  for (int i = 0; i < 5000; ++i) nothing<<<1, 1>>>();
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  do {
    double sum = 0;
    static double each_of[kBatches];
    for (int b = 0; b < kBatches; ++b) {
      const double start = now_ns();
      for (int i = 0; i < kBatch; ++i) nothing<<<1, 1>>>();
      const double each = (now_ns() - start) / kBatch;
      cudaDeviceSynchronize();
      each_of[b] = each;
      sum += each;
    }
    std::sort(each_of, each_of + kBatches);
    std::printf("ns_per_launch median %.1f mean %.1f best %.1f\n", each_of[kBatches / 2],
                sum / kBatches, each_of[0]);
    std::fflush(stdout);
  } while (now_ns() < until);
  return 0;
}
