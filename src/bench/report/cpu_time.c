/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/report/cpu_time.h"

#include "base/clock.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define QUIET 0.15 /* share of a core that counts as idle */

unsigned cpu_count(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n < 1 ? 1 : n > CPU_CORES_MAX ? CPU_CORES_MAX : (unsigned)n;
}

/*
 * CPU time of other processes. This process does not count, nor do kernel threads that may work
 * for it.
 */
static void others_look(struct cpu_sample *sample)
{
	double tick = (double)sysconf(_SC_CLK_TCK);
	DIR *proc = opendir("/proc");
	struct dirent *entry;

	sample->n_others = 0;
	while (proc && (entry = readdir(proc)) && sample->n_others < CPU_PROCESSES_MAX) {
		char path[300], name[64];
		unsigned long user, system;
		FILE *file;

		if (!isdigit((unsigned char)entry->d_name[0]) || atoi(entry->d_name) == getpid())
			continue;
		snprintf(path, sizeof(path), "/proc/%s/stat", entry->d_name);
		file = fopen(path, "r");
		if (!file)
			continue;
		if (fscanf(file,
		           "%*d (%63[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
		           name, &user, &system) == 3 &&
		    strncmp(name, "napi/", 5) != 0 && strncmp(name, "ksoftirqd/", 10) != 0)
			sample->others[sample->n_others++] =
				(struct cpu_process){ atoi(entry->d_name),
				                      (double)(user + system) / tick };
		fclose(file);
	}
	if (proc)
		closedir(proc);
}

double cpu_others(const struct cpu_sample *before, const struct cpu_sample *after)
{
	unsigned old = 0;
	double sum = 0;

	/* /proc lists processes in the order of their ids. */
	for (unsigned i = 0; i < after->n_others; i++) {
		const struct cpu_process *now = &after->others[i];

		while (old < before->n_others && before->others[old].id < now->id)
			old++;
		sum += now->time;
		if (old < before->n_others && before->others[old].id == now->id)
			sum -= before->others[old].time;
	}
	return sum;
}

/*
 * Busy is what is not idle: idle time is exact if the tick stops on an idle core, while other
 * times are counted in ticks.
 */
void cpu_look(struct cpu_sample *sample)
{
	double tick = (double)sysconf(_SC_CLK_TCK);
	FILE *file;
	char line[512];

	memset(sample->idle, 0, sizeof(sample->idle));
	sample->forks = 0;
	others_look(sample);
	file = fopen("/proc/stat", "r");
	sample->at = (double)clock_now() * 1e-9;
	while (file && fgets(line, sizeof(line), file)) {
		unsigned long long idle, wait, steal = 0;
		unsigned core;

		if (sscanf(line, "cpu%u %*u %*u %*u %llu %llu %*u %*u %llu", &core, &idle, &wait,
		           &steal) >= 3 &&
		    core < CPU_CORES_MAX)
			sample->idle[core] = (double)(idle + wait + steal) / tick;
		sscanf(line, "processes %llu", &sample->forks);
	}
	if (file)
		fclose(file);
}

double cpu_busy(const struct cpu_sample *before, const struct cpu_sample *after, unsigned core)
{
	double busy = after->at - before->at - (after->idle[core] - before->idle[core]);

	return busy > 0 ? busy : 0;
}

bool cpu_wait_quiet(double seconds)
{
	double until = (double)clock_now() * 1e-9 + seconds;

	for (;;) {
		const struct timespec nap = { .tv_nsec = 100000000 };
		static struct cpu_sample a, b;
		double busy = 0;

		cpu_look(&a);
		nanosleep(&nap, NULL);
		cpu_look(&b);
		for (unsigned core = 0; core < cpu_count(); core++)
			busy += cpu_busy(&a, &b, core);
		if (busy < QUIET * (b.at - a.at))
			return true;
		if (b.at > until)
			return false;
	}
}

/* The scheduler's counters of a thread; 0 if it is gone. */
static void thread_look(int id, unsigned long long *ns, unsigned long long *times)
{
	char path[64];
	FILE *file;

	*ns = *times = 0;
	snprintf(path, sizeof(path), "/proc/%d/schedstat", id);
	file = fopen(path, "r");
	if (!file)
		return;
	if (fscanf(file, "%llu %*u %llu", ns, times) != 2)
		*ns = *times = 0;
	fclose(file);
}

double cpu_thread(int id)
{
	unsigned long long ns, times;

	thread_look(id, &ns, &times);
	return (double)ns * 1e-9;
}

unsigned long long cpu_thread_switches(int id)
{
	unsigned long long ns, times;

	thread_look(id, &ns, &times);
	return times;
}

/* ---- cores that are kept busy ---- */

static pthread_t spinners[CPU_CORES_MAX];
static unsigned n_spinners;
static _Atomic bool spinning;

static void *spin(void *argument)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)(uintptr_t)argument, &set);
	sched_setaffinity(0, sizeof(set), &set);
	while (atomic_load_explicit(&spinning, memory_order_relaxed))
		;
	return NULL;
}

void cpu_spin(unsigned first)
{
	atomic_store(&spinning, true);
	for (unsigned core = first; core < cpu_count(); core++)
		if (!pthread_create(&spinners[n_spinners], NULL, spin, (void *)(uintptr_t)core))
			n_spinners++;
}

void cpu_spin_end(void)
{
	atomic_store(&spinning, false);
	while (n_spinners)
		pthread_join(spinners[--n_spinners], NULL);
}

/* ---- cores that other work occupies ---- */

#define OCCUPY_PERIOD 500000ull /* nanoseconds of a period */
#define OCCUPY_PRIORITY 50      /* real-time priority, above that of receive work */

static pthread_t occupiers[CPU_CORES_MAX];
static unsigned n_occupiers;
static uint64_t occupy_busy; /* nanoseconds of a period that are busy */
static _Atomic bool occupying;

static void *occupy_work(void *unused)
{
	uint64_t begin = clock_now();

	while (atomic_load_explicit(&occupying, memory_order_relaxed)) {
		uint64_t end = clock_now() + occupy_busy;
		struct timespec next;

		while (clock_now() < end)
			;
		begin += OCCUPY_PERIOD;
		next = clock_span(begin);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
	}
	return unused;
}

static int occupier_add(unsigned core)
{
	const struct sched_param first = { .sched_priority = OCCUPY_PRIORITY };
	pthread_attr_t how;
	cpu_set_t one;
	int error;

	CPU_ZERO(&one);
	CPU_SET(core, &one);
	pthread_attr_init(&how);
	pthread_attr_setaffinity_np(&how, sizeof(one), &one);
	pthread_attr_setinheritsched(&how, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&how, SCHED_FIFO);
	pthread_attr_setschedparam(&how, &first);
	error = pthread_create(&occupiers[n_occupiers], &how, occupy_work, NULL);
	pthread_attr_destroy(&how);
	n_occupiers += !error;
	return error;
}

trib_status cpu_occupy(const cpu_set_t *cores, double share)
{
	occupy_busy = (uint64_t)(share * (double)OCCUPY_PERIOD);
	atomic_store(&occupying, true);
	for (unsigned core = 0; core < CPU_CORES_MAX; core++) {
		int error = CPU_ISSET(core, cores) ? occupier_add(core) : 0;

		if (error) {
			errno = error;
			return status_fail_errno("cannot put other work on core %u", core);
		}
	}
	return TRIB_OK;
}

double cpu_occupied_time(void)
{
	double sum = 0;

	for (unsigned i = 0; i < n_occupiers; i++) {
		struct timespec time;
		clockid_t clock;

		if (!pthread_getcpuclockid(occupiers[i], &clock) && !clock_gettime(clock, &time))
			sum += (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
	}
	return sum;
}

void cpu_occupy_end(void)
{
	atomic_store(&occupying, false);
	while (n_occupiers)
		pthread_join(occupiers[--n_occupiers], NULL);
}
