// SPDX-License-Identifier: Apache-2.0
// A training-shaped program with no framework in it: STEPS steps of twelve kernels, an occasional
// "validation", and its own count at the end. With the CUDA runtime linked in statically there is
// no libcupti in the process but the one that LD_LIBRARY_PATH leads to, so that any version of it
// can be tried (cupti_versions.sh).
//
// nvcc -O2 -o step_loop step_loop.cu; ./step_loop SECONDS
#include <cstdio>
#include <cstdlib>
#include <ctime>

template <int kWhich>
__global__ void layer(float* x, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) x[i] = x[i] * 0.999f + static_cast<float>(kWhich) * 1e-3f;
}

static double now_s() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

template <int kWhich>
static void run_layers(float* x, int n) {
  if constexpr (kWhich > 0) run_layers<kWhich - 1>(x, n);
  layer<kWhich><<<(n + 255) / 256, 256>>>(x, n);
}

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 20;
  constexpr int kFloats = 1 << 23;
  float* x = nullptr;
  if (cudaMalloc(&x, kFloats * sizeof(float)) != cudaSuccess) return 1;
  cudaMemset(x, 0, kFloats * sizeof(float));
  long steps = 0;
  const double began = now_s();
  while (now_s() - began < seconds) {
    run_layers<11>(x, kFloats);
    if (++steps % 16 == 0) cudaDeviceSynchronize();
    if (steps % 500 == 0) {
      for (int i = 0; i < 20; ++i) run_layers<4>(x, kFloats / 2);
    }
  }
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  std::printf("iterations %ld\n", steps);
  return 0;
}
