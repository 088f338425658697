/* SPDX-License-Identifier: Apache-2.0 */
/* Runs many simulations at once: each in one thread, as many threads as there are cores. */
#include "base/clock.h"
#include "cli/sim/sim_command.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 256u
#define BAR_WIDTH 40u
#define BAR_EVERY 100000000ull /* ns */

struct tasks {
	struct sim_task *tasks;
	unsigned n;
	atomic_uint next;
	bool with_bar;
	pthread_mutex_t lock; /* protects the fields below */
	uint64_t shown_at;
	double *done; /* progress of each task, 0 to 1 */
};

static void bar_print(struct tasks *tasks)
{
	double sum = 0;
	unsigned full;

	for (unsigned i = 0; i < tasks->n; i++)
		sum += tasks->done[i];
	sum /= tasks->n;
	full = (unsigned)(sum * BAR_WIDTH);
	fprintf(stderr, "\r[%.*s%*s] %3.0f %%", (int)full,
	        "########################################", (int)(BAR_WIDTH - full), "", sum * 100);
	fflush(stderr);
}

static void progress_note(void *context, uint64_t done, uint64_t jobs, double now_s)
{
	struct sim_task *task = context;
	struct tasks *tasks = task->tasks;
	double until = task->input.options.until_s, share = jobs ? (double)done / (double)jobs : 1;
	uint64_t now;

	if (!tasks->with_bar)
		return;
	if (until > 0 && now_s / until > share)
		share = now_s / until;
	now = clock_now();
	pthread_mutex_lock(&tasks->lock);
	tasks->done[task - tasks->tasks] = share < 1 ? share : 1;
	if (now - tasks->shown_at > BAR_EVERY) {
		tasks->shown_at = now;
		bar_print(tasks);
	}
	pthread_mutex_unlock(&tasks->lock);
}

/*
 * Keeps as many samples as there is room for, evenly: when it is full, it drops every second
 * one.
 */
static void sample_note(void *context, const struct sim_sample *sample)
{
	struct sim_task *task = context;

	if (++task->skipped < task->every)
		return;
	task->skipped = 0;
	if (task->n_samples == SIM_SAMPLES) {
		for (unsigned i = 0; i < SIM_SAMPLES / 2; i++)
			task->samples[i] = task->samples[2 * i + 1];
		task->n_samples = SIM_SAMPLES / 2;
		task->every *= 2;
	}
	task->samples[task->n_samples++] = *sample;
}

/* CPU time of this thread: other processes do not count. */
static double cpu_seconds(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static uint64_t clock_look(void *context)
{
	(void)context;
	return (uint64_t)(cpu_seconds() * 1e9);
}

static void task_run(struct sim_task *task)
{
	uint64_t began = clock_now();
	double cpu = cpu_seconds();

	task->every = 1;
	task->input.hooks = (struct sim_hooks){ .progress = progress_note,
		                                .sample = task->is_sampled ? sample_note : NULL,
		                                .clock = clock_look,
		                                .context = task };
	task->status = sim_run(&task->input, task->outcomes, &task->result);
	task->wall_s = (double)(clock_now() - began) / 1e9;
	task->cpu_s = cpu_seconds() - cpu;
	if (task->status != TRIB_OK)
		snprintf(task->why, sizeof(task->why), "%s", trib_last_error());
	progress_note(task, 1, 1, 0);
}

static void *thread_run(void *argument)
{
	struct tasks *tasks = argument;
	unsigned i;

	while ((i = atomic_fetch_add(&tasks->next, 1)) < tasks->n)
		task_run(&tasks->tasks[i]);
	return NULL;
}

/* Cores that this process may use. */
static unsigned cores_count(void)
{
	cpu_set_t set;
	unsigned cores = sched_getaffinity(0, sizeof(set), &set) ? 1 : (unsigned)CPU_COUNT(&set);

	return cores < THREADS_MAX ? cores : THREADS_MAX;
}

trib_status tasks_run(struct sim_task *task, unsigned n, bool with_bar)
{
	struct tasks tasks = { .tasks = task,
		               .n = n,
		               .with_bar = with_bar && isatty(STDERR_FILENO),
		               .lock = PTHREAD_MUTEX_INITIALIZER };
	pthread_t threads[THREADS_MAX];
	unsigned started = 0, wanted = cores_count() < n ? cores_count() : n;

	tasks.done = calloc(n, sizeof(*tasks.done));
	if (!tasks.done)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for %u simulations", n);
	for (unsigned i = 0; i < n; i++)
		task[i].tasks = &tasks;
	/* This thread works too, so it is no error if threads cannot be created. */
	while (started + 1 < wanted && !pthread_create(&threads[started], NULL, thread_run, &tasks))
		started++;
	thread_run(&tasks);
	for (unsigned i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	if (tasks.with_bar)
		fprintf(stderr, "\r\033[K");
	free(tasks.done);
	for (unsigned i = 0; i < n; i++)
		if (task[i].status != TRIB_OK)
			return status_fail(task[i].status, "%s", task[i].why);
	return TRIB_OK;
}

void tasks_free(struct sim_task *tasks, unsigned n)
{
	for (unsigned i = 0; tasks && i < n; i++) {
		list_free(&tasks[i].list);
		free(tasks[i].outcomes);
	}
	free(tasks);
}

struct sim_spread spread_of(const struct sim_task *tasks, unsigned n, sim_figure *figure)
{
	struct sim_spread spread = { 0, figure(&tasks[0].result), figure(&tasks[0].result) };

	for (unsigned i = 0; i < n; i++) {
		double value = figure(&tasks[i].result);

		spread.mean += value / n;
		spread.low = value < spread.low ? value : spread.low;
		spread.high = value > spread.high ? value : spread.high;
	}
	return spread;
}
