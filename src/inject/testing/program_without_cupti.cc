// SPDX-License-Identifier: Apache-2.0
// A "CUDA program" where no libcupti can be opened, whatever this machine has installed: it loads
// the injection as the driver would, and does its work.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// In place of the C library's for everybody in the process.
extern "C" void* dlopen(const char* path, int mode) {
  if (path != nullptr && strstr(path, "libcupti") != nullptr) return nullptr;
  static const auto real =
      reinterpret_cast<void* (*)(const char*, int)>(dlsym(RTLD_NEXT, "dlopen"));
  return real(path, mode);
}

int main() {
  const char* path = getenv("CUDA_INJECTION64_PATH");
  void* library = path == nullptr ? nullptr : dlopen(path, RTLD_NOW);
  if (library != nullptr) {
    printf("injection %d\n", reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection"))());
  }
  usleep(100'000);
  printf("done\n");
  return 0;
}
