// SPDX-License-Identifier: Apache-2.0
// A CUDA driver with one GPU, or none when it is asked for "GPU-gone".
#include <cstdlib>
#include <cstring>

extern "C" int cuInit(unsigned /*flags*/) {
  constexpr int kNoDevice = 100;
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return visible != nullptr && std::strcmp(visible, "GPU-gone") == 0 ? kNoDevice : 0;
}
