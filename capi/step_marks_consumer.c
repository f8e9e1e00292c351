/* SPDX-License-Identifier: Apache-2.0 */
/* A C program with step marks: STEPS of them, MICROSECONDS apart. Prints whether gpoeo listens. */
#include <gpoeo.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char** argv) {
  int steps = argc > 1 ? atoi(argv[1]) : 10;
  unsigned pause_us = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
  int i;
  printf("listening %d\n", gpoeo_begin());
  for (i = 0; i < steps; ++i) {
    if (pause_us > 0) usleep(pause_us);
    gpoeo_step();
  }
  gpoeo_end();
  return 0;
}
