// SPDX-License-Identifier: Apache-2.0
// What the CUDA driver calls when it has loaded the library that CUDA_INJECTION64_PATH names: once,
// inside the process's first cuInit().
#include <stdlib.h>

#include "inject/launch_log.h"
#include "inject/say.h"

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  const char* folder = getenv(gpoeo::wire::kRingDirEnv);
  if (folder != nullptr && *folder != '\0') {
    gpoeo::inject::start_launch_log(folder);
  } else {
    gpoeo::inject::say("%s is not set: nothing to do", gpoeo::wire::kRingDirEnv);
  }
  return 1;  // whatever happened: the job must not notice
}
