/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replays a trace of training steps, as the network sees them, with sleep in
 * place of computation. Each allreduce starts when its gradients would be ready.
 * At the end of a step's computation the program waits for all of them.
 *
 *   replay STEPS WARMUP[+COOLDOWN] COMPUTE_US[~PERCENT] START_US:BYTES...
 *
 * With ~PERCENT, steps vary: by up to so much, all their times are longer or
 * shorter. All ranks have the same steps.
 * Rank 0 prints a line of JSON: the seconds of all steps after the warm-up, and
 * of each. Steps of the cool-down are not counted: they keep this job running
 * for other jobs that share an aggregator with it and still count. Every sum is
 * checked.
 */
#include "tributary.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define OPS_MAX 256
#define STEPS_MAX 100000u

struct op {
	double start;
	size_t count;
	float *vector;
	trib_request *request;
};

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void sleep_until(double when)
{
	struct timespec t = { (time_t)when, (long)((when - (double)(time_t)when) * 1e9) };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static void fail(const char *what)
{
	fprintf(stderr, "replay: %s: %s\n", what, trib_last_error());
	exit(1);
}

/*
 * Checks the first, the middle and the last element: the result of another request would
 * differ.
 */
static void check(const struct op *op, int size, unsigned step, int index)
{
	const size_t at[] = { 0, op->count / 2, op->count - 1 };

	for (unsigned i = 0; i < 3; i++) {
		float want = (float)size * ((float)(step % 16) + (float)index + (float)(at[i] % 7));

		if (op->vector[at[i]] != want) {
			fprintf(stderr, "replay: step %u, allreduce %d: %g instead of %g\n", step,
			        index, (double)op->vector[at[i]], (double)want);
			exit(1);
		}
	}
}

/* How long this step's computation takes, of its usual time. */
static double pace(unsigned step, double percent)
{
	uint32_t bits = (step + 1) * 2654435761u;

	return 1 + percent / 100 * ((double)(bits >> 8) / (1 << 23) - 1);
}

static void run_step(trib_comm *comm, struct op *ops, int n, double compute, double pace,
                     unsigned step)
{
	double began = now_s();

	for (int i = 0; i < n; i++) {
		for (size_t k = 0; k < ops[i].count; k++)
			ops[i].vector[k] = (float)(step % 16) + (float)i + (float)(k % 7);
		sleep_until(began + pace * ops[i].start);
		if (trib_iallreduce(comm, TRIB_IN_PLACE, ops[i].vector, ops[i].count, TRIB_F32,
		                    TRIB_SUM, &ops[i].request) != TRIB_OK)
			fail("allreduce");
	}
	sleep_until(began + pace * compute);
	for (int i = 0; i < n; i++)
		if (trib_wait(&ops[i].request, -1) != TRIB_OK)
			fail("wait");
	for (int i = 0; i < n; i++)
		check(&ops[i], trib_size(comm), step, i);
}

static int read_ops(char **argv, int argc, struct op *ops)
{
	for (int i = 0; i < argc; i++) {
		char *colon = strchr(argv[i], ':');

		if (!colon || i == OPS_MAX)
			return -1;
		ops[i].start = strtod(argv[i], NULL) / 1e6;
		ops[i].count = strtoull(colon + 1, NULL, 10) / sizeof(float);
		ops[i].vector = ops[i].count ? malloc(ops[i].count * sizeof(float)) : NULL;
		if (!ops[i].vector)
			return -1;
	}
	return argc;
}

/* `at` has the start of each step, and the end of the last one. */
static void print(unsigned steps, const double *at)
{
	printf("{\"steps\":%u,\"seconds\":%.6f,\"step_s\":%.6f,\"each_s\":[", steps,
	       at[steps] - at[0], (at[steps] - at[0]) / steps);
	for (unsigned i = 0; i < steps; i++)
		printf("%s%.6f", i ? "," : "", at[i + 1] - at[i]);
	printf("]}\n");
}

int main(int argc, char **argv)
{
	static struct op ops[OPS_MAX];
	static double at[STEPS_MAX + 1];
	int n = argc > 4 ? read_ops(argv + 4, argc - 4, ops) : -1;
	unsigned steps = argc > 4 ? (unsigned)strtoul(argv[1], NULL, 10) : 0, warmup, more;
	double compute, percent;
	trib_comm *comm;
	char *end;

	if (n < 1 || !steps || steps > STEPS_MAX) {
		fprintf(stderr, "Usage: replay STEPS WARMUP[+COOLDOWN] COMPUTE_US[~PERCENT] "
		                "START_US:BYTES...\n");
		return 2;
	}
	warmup = (unsigned)strtoul(argv[2], &end, 10);
	more = (unsigned)strtoul(end, NULL, 10);
	compute = strtod(argv[3], &end) / 1e6;
	percent = *end == '~' ? strtod(end + 1, NULL) : 0;
	if (trib_init(&comm, NULL) != TRIB_OK)
		fail("init");
	for (unsigned step = 0; step < warmup + steps + more; step++) {
		if (step >= warmup && step <= warmup + steps)
			at[step - warmup] = now_s();
		run_step(comm, ops, n, compute, pace(step, percent), step);
	}
	if (!more)
		at[steps] = now_s();
	if (trib_rank(comm) == 0)
		print(steps, at);
	if (trib_finalize(comm) != TRIB_OK)
		fail("finalize");
	for (int i = 0; i < n; i++)
		free(ops[i].vector);
	return 0;
}
