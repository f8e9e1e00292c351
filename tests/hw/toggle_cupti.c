/* SPDX-License-Identifier: Apache-2.0
 * Stands between the injected library and CUPTI, so that a measuring program can put the launch
 * callbacks off and on within one process, many times a second: nothing else differs.
 *
 * cc -shared -fPIC -o libcupti.so.0 toggle_cupti.c; LD_PRELOAD it; GPOEO_REAL_CUPTI names the real
 * library. toggle(0 or 1) puts every callback that was asked for off or on. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

static void* subscriber;
static uint32_t ids[64];
static int count;

static void* real(const char* name) {
  static void* library;
  if (!library) library = dlopen(getenv("GPOEO_REAL_CUPTI"), RTLD_LAZY | RTLD_LOCAL);
  return dlsym(library, name);
}

int cuptiGetVersion(uint32_t* version) {
  return ((int (*)(uint32_t*))real("cuptiGetVersion"))(version);
}
int cuptiSubscribe(void** out, void* callback, void* user) {
  const int result = ((int (*)(void**, void*, void*))real("cuptiSubscribe"))(out, callback, user);
  subscriber = *out;
  return result;
}
int cuptiUnsubscribe(void* s) { return ((int (*)(void*))real("cuptiUnsubscribe"))(s); }
int cuptiEnableCallback(uint32_t on, void* s, int domain, uint32_t id) {
  if (count < 64) ids[count++] = id;
  return ((int (*)(uint32_t, void*, int, uint32_t))real("cuptiEnableCallback"))(on, s, domain, id);
}

void toggle(uint32_t on) {
  int (*enable)(uint32_t, void*, int, uint32_t) = real("cuptiEnableCallback");
  for (int i = 0; i < count; ++i) enable(on, subscriber, 1, ids[i]);
}
