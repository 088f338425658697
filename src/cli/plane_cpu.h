/* SPDX-License-Identifier: Apache-2.0 */
/* CPU time of cores and of threads, as the kernel counts it. */
#ifndef TRIB_CLI_PLANE_CPU_H
#define TRIB_CLI_PLANE_CPU_H

#include "base/status.h"

#include <sched.h>
#include <stdbool.h>

#define CPU_CORES_MAX 256
#define CPU_PROCESSES_MAX 4096

struct cpu_process {
	int id;
	double time;
};

struct cpu_sample {
	double at;                  /* seconds of the clock */
	double idle[CPU_CORES_MAX]; /* ... that each core had nothing to do, or was taken away */
	unsigned long long forks;   /* of the whole machine */
	struct cpu_process others[CPU_PROCESSES_MAX]; /* that are no part of this, by their ids */
	unsigned n_others;
};

unsigned cpu_count(void);
void cpu_look(struct cpu_sample *sample);
/* Seconds that the core was busy between the two. */
double cpu_busy(const struct cpu_sample *before, const struct cpu_sample *after, unsigned core);
/* Seconds of other processes between the two, but for those that have ended meanwhile. */
double cpu_others(const struct cpu_sample *before, const struct cpu_sample *after);
/* Waits until the machine has been idle for a moment; false: it has not, for so many seconds. */
bool cpu_wait_quiet(double seconds);
/* Of one thread, exactly; 0 if it is gone. */
double cpu_thread(int id);
/* How often it has been put on a core; 0 if it is gone. */
unsigned long long cpu_thread_switches(int id);

/*
 * Keeps all cores from `first` on at work until cpu_spin_end: a machine clocks
 * a few busy cores higher than many, and figures over the number of cores
 * would tell of that.
 */
void cpu_spin(unsigned first);
void cpu_spin_end(void);

/*
 * Other work on these cores, before all else there, for this share of every half
 * a millisecond, until cpu_crowd_end. At most a share of CPU_CROWD_MOST, or
 * nothing else would go on.
 */
#define CPU_CROWD_MOST 0.95
trib_status cpu_crowd(const cpu_set_t *cores, double share);
double cpu_crowd_time(void); /* seconds that it has taken */
void cpu_crowd_end(void);

#endif
