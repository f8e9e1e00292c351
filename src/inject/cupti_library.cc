// SPDX-License-Identifier: Apache-2.0
#include "inject/cupti_library.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inject/say.h"

namespace gpoeo::inject {
namespace {

// Newest first; CUDA 11 counted its minor versions.
constexpr const char* kNames[] = {"libcupti.so.13",   "libcupti.so.12",   "libcupti.so.11.8",
                                  "libcupti.so.11.7", "libcupti.so.11.6", "libcupti.so.11.5",
                                  "libcupti.so.11.4", "libcupti.so.11.3", "libcupti.so.11.2",
                                  "libcupti.so.11.1", "libcupti.so.11.0"};

struct LoadedFiles {
  char cupti[PATH_MAX];
  char runtime[PATH_MAX];  // libcudart
};

void remember(char (&to)[PATH_MAX], const char* path) {
  if (to[0] == '\0' && strlen(path) < sizeof to) strcpy(to, path);
}

int look_at_object(dl_phdr_info* info, size_t /*size*/, void* user) {
  auto* found = static_cast<LoadedFiles*>(user);
  const char* slash = strrchr(info->dlpi_name, '/');
  const char* base = slash == nullptr ? info->dlpi_name : slash + 1;
  // Wheels rename what they bundle: libcupti-1a2b3c.so.12.
  if (strncmp(base, "libcupti.", 9) == 0 || strncmp(base, "libcupti-", 9) == 0) {
    remember(found->cupti, info->dlpi_name);
  }
  if (strncmp(base, "libcudart.", 10) == 0 || strncmp(base, "libcudart-", 10) == 0) {
    remember(found->runtime, info->dlpi_name);
  }
  return 0;
}

template <typename F>
void look_up(void* handle, const char* name, F* out) {
  *out = reinterpret_cast<F>(dlsym(handle, name));
}

CuptiFound take(void* handle, CuptiLibrary* out) {
  if (handle == nullptr) return CuptiFound::kNone;
  CuptiLibrary found;
  found.handle = handle;
  look_up(handle, "cuptiGetVersion", &found.get_version);
  look_up(handle, "cuptiSubscribe", &found.subscribe);
  look_up(handle, "cuptiSubscribe_v2", &found.subscribe_v2);
  look_up(handle, "cuptiUnsubscribe", &found.unsubscribe);
  look_up(handle, "cuptiEnableCallback", &found.enable_callback);
  const bool complete = found.get_version != nullptr && found.subscribe != nullptr &&
                        found.unsubscribe != nullptr && found.enable_callback != nullptr;
  if (!complete || found.get_version(&found.version) != cupti::kSuccess ||
      !cupti::is_known_version(found.version)) {
    out->version = found.version;
    return CuptiFound::kUnknownVersion;
  }
  *out = found;
  return CuptiFound::kYes;
}

// Folders that hold CUPTI, as seen from the folder of libcudart: pip's wheels for CUDA 13 and conda
// put both in one, those for CUDA 11 and 12 beside each other, the toolkit in extras.
constexpr const char* kBesideRuntime[] = {"", "../../cuda_cupti/lib/", "../extras/CUPTI/lib64/",
                                          "../../../extras/CUPTI/lib64/"};

void* open_beside_runtime(const char* runtime) {
  const char* slash = strrchr(runtime, '/');
  if (slash == nullptr) return nullptr;
  // libcudart.so.12 -> libcupti.so.12; libcudart.so.11.0 -> any libcupti.so.11.*
  const char* suffix = strstr(slash, ".so.");
  if (suffix == nullptr) return nullptr;
  const size_t major = strcspn(suffix + 4, ".");
  for (const char* folder : kBesideRuntime) {
    for (const char* name : kNames) {
      if (strncmp(strstr(name, ".so."), suffix, 4 + major) != 0) continue;
      char path[PATH_MAX];
      const int n = snprintf(path, sizeof path, "%.*s/%s%s", static_cast<int>(slash - runtime),
                             runtime, folder, name);
      if (n <= 0 || static_cast<size_t>(n) >= sizeof path) continue;
      if (void* handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL)) return handle;
    }
  }
  return nullptr;
}

void* open_in(const char* folder) {
  for (const char* name : kNames) {
    char path[PATH_MAX];
    const int n = snprintf(path, sizeof path, "%s%s", folder, name);
    if (n <= 0 || static_cast<size_t>(n) >= sizeof path) continue;
    if (void* handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL)) return handle;
  }
  return nullptr;
}

}  // namespace

CuptiFound find_cupti(CuptiLibrary* out) {
  LoadedFiles loaded{};
  dl_iterate_phdr(look_at_object, &loaded);
  CuptiFound worst = CuptiFound::kNone;
  const auto accept = [&](void* handle, const char* from) {
    const CuptiFound found = take(handle, out);
    if (found == CuptiFound::kYes) say("CUPTI %u, %s", out->version, from);
    if (found == CuptiFound::kUnknownVersion) {
      say("CUPTI %u, %s: not known", out->version, from);
      worst = found;
    }
    return found == CuptiFound::kYes;
  };
  // The one that the process uses, and no other: two in one process are two CUPTI users.
  if (loaded.cupti[0] != '\0') {
    return accept(dlopen(loaded.cupti, RTLD_LAZY | RTLD_NOLOAD), loaded.cupti)
               ? CuptiFound::kYes
               : CuptiFound::kUnknownVersion;
  }
  if (accept(open_beside_runtime(loaded.runtime), "beside the CUDA runtime"))
    return CuptiFound::kYes;
  if (accept(open_in(""), "on the library path")) return CuptiFound::kYes;
  if (accept(open_in("/usr/local/cuda/extras/CUPTI/lib64/"), "of the toolkit")) {
    return CuptiFound::kYes;
  }
  return worst;
}

}  // namespace gpoeo::inject
