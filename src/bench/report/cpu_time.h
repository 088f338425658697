/* SPDX-License-Identifier: Apache-2.0 */
/* CPU time of cores and of threads, as the kernel counts it. */
#ifndef TRIB_BENCH_REPORT_CPU_TIME_H
#define TRIB_BENCH_REPORT_CPU_TIME_H

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
	double idle[CPU_CORES_MAX]; /* seconds that each core was idle, or taken away by a
	                               hypervisor */
	unsigned long long forks;   /* processes started, on the whole machine */
	struct cpu_process others[CPU_PROCESSES_MAX]; /* other processes, ordered by id */
	unsigned n_others;
};

unsigned cpu_count(void);
void cpu_look(struct cpu_sample *sample);
/* Seconds that the core was busy between the two samples. */
double cpu_busy(const struct cpu_sample *before, const struct cpu_sample *after, unsigned core);
/*
 * Seconds that other processes used between the two samples; processes that have ended are not
 * counted.
 */
double cpu_others(const struct cpu_sample *before, const struct cpu_sample *after);
/*
 * Waits until the machine has been idle for a moment. False: it was not, within `seconds`.
 */
bool cpu_wait_quiet(double seconds);
/* CPU time of one thread, exactly; 0: it is gone. */
double cpu_thread(int id);
/* How often the thread was put on a core; 0: it is gone. */
unsigned long long cpu_thread_switches(int id);

/*
 * Keeps all cores from `first` on busy until cpu_spin_end. A machine clocks a few
 * busy cores higher than many, which would distort figures over the number of
 * cores.
 */
void cpu_spin(unsigned first);
void cpu_spin_end(void);

/*
 * Occupies this share of the cores with other work until cpu_occupy_end. The work
 * runs before everything else there, for a part of every half millisecond. The
 * share is CPU_OCCUPY_MOST at most, or nothing else would run.
 */
#define CPU_OCCUPY_MOST 0.95
trib_status cpu_occupy(const cpu_set_t *cores, double share);
double cpu_occupied_time(void); /* seconds that the other work has taken */
void cpu_occupy_end(void);

#endif
