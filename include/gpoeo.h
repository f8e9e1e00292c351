/* SPDX-License-Identifier: Apache-2.0 */
/* Step marks: a training program tells gpoeo where its iterations end.
 *
 * Not needed where `gpoeo run` counts launches by itself; useful where it cannot (no CUDA, another
 * profiler holds CUPTI, a loop without a rhythm), and exact in any case: marks come before counted
 * launches. Link with -lgpoeo, or load libgpoeo.so.0 at run time.
 *
 *     gpoeo_begin();                       // training starts here
 *     for (...) { ...; gpoeo_step(); }     // at the end of each iteration
 *     gpoeo_end();                         // what follows (validation, saving) is no training
 *     gpoeo_begin(); ...                   // and may begin again
 *
 * Contract: no call fails, blocks, prints or ends the program; outside `gpoeo run` all do nothing.
 * Any thread may call, one thread marks the steps of a process. A process after fork() has marks of
 * its own. In a job of several processes one of them is enough. A call takes about a tenth of a
 * microsecond; the first one also makes a 0.5 MiB file in the folder that GPOEO_RING_DIR names. */
#ifndef GPOEO_H
#define GPOEO_H

#ifdef __cplusplus
extern "C" {
#endif

/* Training starts, or goes on after gpoeo_end(). Returns 1 when gpoeo is listening, else 0. */
int gpoeo_begin(void);
/* One iteration has ended. The first one needs no gpoeo_begin() before it. */
void gpoeo_step(void);
/* Training pauses or is over. */
void gpoeo_end(void);

#ifdef __cplusplus
}
#endif

#endif
