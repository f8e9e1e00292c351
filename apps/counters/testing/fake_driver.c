/* SPDX-License-Identifier: Apache-2.0
 * A libcuda.so.1 with one GPU, for gpoeo-counters' tests. */
#include <stdlib.h>
#include <string.h>

int cuInit(unsigned flags) {
  const char* visible = getenv("CUDA_VISIBLE_DEVICES");
  (void)flags;
  return visible != NULL && strcmp(visible, "GPU-gone") == 0 ? 100 : 0; /* CUDA_ERROR_NO_DEVICE */
}
