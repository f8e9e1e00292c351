// SPDX-License-Identifier: Apache-2.0
// A "CUDA program" for tests without a GPU: loads the library that CUDA_INJECTION64_PATH names as
// the driver would, and launches through the fake CUPTI. It links that as PyTorch links the real
// one, so that calls go through its import table. Arguments are steps, done in order; at the end it
// prints how many launches it made.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "inject/cupti_abi.h"

namespace cupti = gpoeo::inject::cupti;

extern "C" {
cupti::Result cuptiSubscribe(cupti::Subscriber*, cupti::Callback, void*);
cupti::Result cuptiUnsubscribe(cupti::Subscriber);
void fakeDriverCall(std::uint32_t id, const void* parameters, std::uint32_t context);
}

namespace {

std::atomic<long> g_launches{0};
cupti::Subscriber g_profiler;

void on_call(void*, int, std::uint32_t, const void*) {}

// The first cuInit(): the driver loads the injection and calls it once.
void cu_init() {
  const char* path = getenv("CUDA_INJECTION64_PATH");
  if (path == nullptr) return;
  void* library = dlopen(path, RTLD_NOW);
  if (library == nullptr) return;
  auto* initialise = reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection"));
  if (initialise != nullptr) initialise();
}

void launch(std::uintptr_t function, unsigned grid, std::uintptr_t stream = 0x1000) {
  const cupti::LaunchKernelParameters p{reinterpret_cast<void*>(function), grid, 1, 1, 32, 1, 1, 0,
                                        reinterpret_cast<void*>(stream)};
  fakeDriverCall(cupti::kLaunchKernel, &p, 1);
  ++g_launches;
}

// A training loop: 40 kernels a step, each once, as fast as it goes or `pause_us` apart.
void train(int steps, unsigned pause_us) {
  for (int i = 0; i < steps; ++i) {
    for (unsigned k = 0; k < 40; ++k) launch(0x10000 + 64 * (k % 23), 1 + k);
    if (pause_us > 0) usleep(pause_us);
  }
}

void launch_all_kinds() {
  void* function = reinterpret_cast<void*>(0x7000);
  void* stream = reinterpret_cast<void*>(0x2000);
  const cupti::LaunchKernelParameters kernel{function, 2, 3, 4, 32, 1, 1, 0, stream};
  const cupti::LaunchConfig config{2, 3, 4, 32, 1, 1, 0, stream};
  const cupti::LaunchKernelExParameters extended{&config, function};
  const cupti::LaunchGridParameters grid{function, 2, 3};
  const cupti::LaunchGridAsyncParameters async{function, 2, 3, stream};
  const cupti::MultiDeviceParameters several{&kernel, 2};
  const cupti::GraphLaunchParameters graph{function, stream};
  const auto call = [](std::uint32_t id, const void* parameters) {
    fakeDriverCall(id, parameters, 1);
    ++g_launches;
  };
  call(cupti::kLaunch, &function);
  call(cupti::kLaunchGrid, &grid);
  call(cupti::kLaunchGridAsync, &async);
  for (const auto id : {cupti::kLaunchKernel, cupti::kLaunchKernelPtsz, cupti::kLaunchCooperative,
                        cupti::kLaunchCooperativePtsz}) {
    call(id, &kernel);
  }
  for (const auto id : {cupti::kLaunchKernelEx, cupti::kLaunchKernelExPtsz}) call(id, &extended);
  call(cupti::kLaunchCooperativeMultiDevice, &several);
  for (const auto id : {cupti::kGraphLaunch, cupti::kGraphLaunchPtsz}) call(id, &graph);
}

int in_child(int (*work)()) {
  const pid_t child = fork();
  if (child == 0) _exit(work());
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

void profile() {
  const cupti::Result result = cuptiSubscribe(&g_profiler, on_call, nullptr);
  printf("profiler %d\n", result);
}

// As tools do that do not link CUPTI.
void profile_by_name() {
  using Subscribe = cupti::Result (*)(cupti::Subscriber*, cupti::Callback, void*);
  void* library = dlopen("libcupti.so.12", RTLD_NOW | RTLD_NOLOAD);
  const auto subscribe = reinterpret_cast<Subscribe>(dlsym(library, "cuptiSubscribe"));
  printf("profiler %d\n", subscribe(&g_profiler, on_call, nullptr));
}

}  // namespace

int main(int count, char** words) {
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const auto number = [&] { return ++i < count ? atoi(words[i]) : 0; };
    if (word == "init") cu_init();
    if (word == "train") train(number(), 0);
    if (word == "paced") train(number(), 2000);
    if (word == "kinds") launch_all_kinds();
    if (word == "profile") profile();
    if (word == "profile-by-name") profile_by_name();
    if (word == "unprofile") cuptiUnsubscribe(g_profiler);
    if (word == "threads") {
      std::vector<std::thread> threads;
      const int each = number();
      for (std::uintptr_t t = 0; t < 4; ++t) {
        threads.emplace_back([=] {
          for (int k = 0; k < each; ++k) launch(0x9000 + t, 1, 0x1000 + 256 * t);
        });
      }
      for (auto& thread : threads) thread.join();
    }
    if (word == "fork") {
      in_child([] {
        train(5, 0);
        return 0;
      });
    }
    if (word == "fork-init") {  // a child that is the first to use CUDA
      in_child([] {
        cu_init();
        train(5, 0);
        return 0;
      });
    }
    if (word == "exec") {
      execl("/proc/self/exe", words[0], "init", "train", "7", nullptr);
      return 1;
    }
    if (word == "wait") {  // for a line on stdin: the test goes on
      printf("waiting\n");
      fflush(stdout);
      char line[8];
      if (fgets(line, sizeof line, stdin) == nullptr) return 1;
    }
    if (word == "_exit") _exit(3);
    if (word == "abort") abort();
    fflush(stdout);
  }
  printf("launches %ld\n", g_launches.load());
  return 0;
}
