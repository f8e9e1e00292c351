/* SPDX-License-Identifier: Apache-2.0 */
/* An NVML client in plain C that knows nothing of this project: it loads the library it is given,
 * locks clocks and expects the card, its energy and the job to follow. Run inside twin_scene.
 *
 *   twin_nvml_client loop LIBRARY   the closed loop
 *   twin_nvml_client kill LIBRARY   clients killed with -9 inside calls, again and again */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef void* device_t;
typedef struct {
  unsigned long long time_us;
  unsigned long long value; /* the low 32 bits hold milliwatts */
} sample_t;

static int (*init)(void);
static int (*shut_down)(void);
static int (*handle_by_index)(unsigned, device_t*);
static int (*clock_info)(device_t, unsigned, unsigned*);
static int (*power_usage)(device_t, unsigned*);
static int (*total_energy)(device_t, unsigned long long*);
static int (*samples)(device_t, unsigned, unsigned long long, unsigned*, unsigned*, sample_t*);
static int (*lock_clocks)(device_t, unsigned, unsigned);
static int (*reset_clocks)(device_t);
static int (*graphics_clocks)(device_t, unsigned, unsigned*, unsigned*);

static int failures;
#define EXPECT(condition)                                             \
  do {                                                                \
    if (!(condition)) {                                               \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      ++failures;                                                     \
    }                                                                 \
  } while (0)
#define NEED(condition)                                                       \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: needed: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                \
    }                                                                         \
  } while (0)

static void* library;
static void bind(void* function_pointer, const char* name) {
  void* symbol = dlsym(library, name);
  if (symbol == NULL) {
    fprintf(stderr, "no %s\n", name);
    exit(1);
  }
  memcpy(function_pointer, &symbol, sizeof symbol);
}

static void load(const char* path) {
  library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  bind(&init, "nvmlInit_v2");
  bind(&shut_down, "nvmlShutdown");
  bind(&handle_by_index, "nvmlDeviceGetHandleByIndex_v2");
  bind(&clock_info, "nvmlDeviceGetClockInfo");
  bind(&power_usage, "nvmlDeviceGetPowerUsage");
  bind(&total_energy, "nvmlDeviceGetTotalEnergyConsumption");
  bind(&samples, "nvmlDeviceGetSamples");
  bind(&lock_clocks, "nvmlDeviceSetGpuLockedClocks");
  bind(&reset_clocks, "nvmlDeviceResetGpuLockedClocks");
  bind(&graphics_clocks, "nvmlDeviceGetSupportedGraphicsClocks");
}

static int scene_fd;
static double ask(const char* request) {
  char reply[64] = "";
  size_t used = 0;
  NEED(write(scene_fd, request, strlen(request)) > 0);
  while (used + 1 < sizeof reply && read(scene_fd, reply + used, 1) == 1 && reply[used] != '\n') {
    ++used;
  }
  return atof(reply);
}

typedef struct {
  unsigned sm_mhz, power_mw;
  double energy_j, iterations, mean_sample_w;
} view_t;

/* 40 s of the job, after 200 s to settle (the card's temperature too). */
static view_t watch(device_t device) {
  view_t view;
  unsigned long long before = 0, after = 0;
  sample_t list[512];
  unsigned type = 0, count = 512, i;
  double iterations, sum = 0;
  ask("step 200\n");
  EXPECT(total_energy(device, &before) == 0);
  iterations = ask("iterations\n");
  ask("step 40\n");
  EXPECT(total_energy(device, &after) == 0);
  view.iterations = ask("iterations\n") - iterations;
  view.energy_j = (double)(after - before) * 1e-3;
  EXPECT(clock_info(device, 1, &view.sm_mhz) == 0);
  EXPECT(power_usage(device, &view.power_mw) == 0);
  EXPECT(samples(device, 0, 0, &type, &count, list) == 0);
  EXPECT(count > 10);
  for (i = 0; i < count; ++i) sum += (double)(unsigned)list[i].value * 1e-3;
  view.mean_sample_w = sum / count;
  return view;
}

static void show(const char* what, view_t v) {
  printf("%-8s SM %4u MHz, power %6.1f W, samples %6.1f W, %7.0f J and %5.0f iterations in 40 s\n",
         what, v.sm_mhz, v.power_mw * 1e-3, v.mean_sample_w, v.energy_j, v.iterations);
}

static void closed_loop(device_t device) {
  unsigned memory = 0, count = 0, clocks[512], low;
  view_t standard, locked, again;
  EXPECT(clock_info(device, 2, &memory) == 0);
  EXPECT(graphics_clocks(device, memory, &count, NULL) ==
         7); /* too little room: tells the number */
  NEED(count > 0 && count <= 512);
  EXPECT(graphics_clocks(device, memory, &count, clocks) == 0);
  EXPECT(clocks[0] > clocks[count - 1]);
  low = clocks[count / 2];

  standard = watch(device);
  show("default", standard);
  EXPECT(lock_clocks(device, clocks[count - 1], low) == 0);
  locked = watch(device);
  show("locked", locked);
  EXPECT(reset_clocks(device) == 0);
  again = watch(device);
  show("reset", again);

  EXPECT(locked.sm_mhz == low);
  EXPECT(standard.sm_mhz > low);
  EXPECT(locked.power_mw < 0.95 * standard.power_mw);
  EXPECT(locked.mean_sample_w < 0.95 * standard.mean_sample_w);
  EXPECT(locked.energy_j < 0.95 * standard.energy_j);
  EXPECT(locked.iterations < 0.98 * standard.iterations);
  EXPECT(locked.iterations > 0);
  EXPECT(again.sm_mhz == standard.sm_mhz);
  EXPECT(again.iterations > 0.97 * standard.iterations);
  EXPECT(again.energy_j > 0.97 * standard.energy_j);
  /* The energy counter and the samples tell one story. */
  EXPECT(standard.energy_j / 40 > 0.97 * standard.mean_sample_w);
  EXPECT(standard.energy_j / 40 < 1.03 * standard.mean_sample_w);
}

static void kill_clients(device_t device) {
  unsigned memory = 0, count = 512, clocks[512], sm = 0;
  int round, hits = 0;
  EXPECT(clock_info(device, 2, &memory) == 0);
  NEED(graphics_clocks(device, memory, &count, clocks) == 0);
  srand(1);
  for (round = 0; round < 300; ++round) {
    const struct timespec delay = {0, rand() % 3000000};
    const pid_t child = fork();
    NEED(child >= 0);
    if (child == 0) {
      unsigned i;
      for (i = 0;; ++i) { /* in the card's lock most of the time */
        unsigned long long energy;
        lock_clocks(device, clocks[count - 1], clocks[i % count]);
        total_energy(device, &energy);
        reset_clocks(device);
      }
    }
    nanosleep(&delay, NULL);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    /* The next one finds a whole card, at once. */
    if (clock_info(device, 1, &sm) == 0 && sm >= clocks[count - 1] && sm <= clocks[0]) ++hits;
    if (round % 50 == 0) ask("step 0.1\n");
  }
  printf("%d of 300 clients killed, %d times the card answered\n", round, hits);
  EXPECT(hits == 300);
  EXPECT(reset_clocks(device) == 0);
  closed_loop(device);
}

int main(int argc, char** argv) {
  device_t device = NULL;
  const char* fd = getenv("GPOEO_SCENE_FD");
  if (argc != 3 || fd == NULL) return 2;
  scene_fd = atoi(fd);
  load(argv[2]);
  EXPECT(clock_info(device, 1, &(unsigned){0}) == 1); /* uninitialised */
  NEED(init() == 0);
  EXPECT(clock_info(device, 1, &(unsigned){0}) == 2); /* no such device */
  NEED(handle_by_index(0, &device) == 0);
  EXPECT(clock_info(device, 1, NULL) == 2);
  if (strcmp(argv[1], "kill") == 0) {
    kill_clients(device);
  } else {
    closed_loop(device);
  }
  EXPECT(shut_down() == 0);
  EXPECT(shut_down() == 1);
  return failures != 0;
}
