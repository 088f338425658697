/* SPDX-License-Identifier: Apache-2.0 */
#include "peer.h"

#include <err.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Inputs repeat with this period; small whole numbers, so that sums are exact. */
#define PERIOD 17

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint64_t number_parse(const char *name, const char *text)
{
	char *end;
	unsigned long long value = strtoull(text, &end, 10);

	if (*text < '0' || *text > '9' || *end)
		errx(2, "--%s wants a whole number, not '%s'", name, text);
	return value;
}

static void late_parse(struct peer_options *options, const char *text)
{
	unsigned i = options->n_late++;

	if (i == PEER_LATE_MAX ||
	    sscanf(text, "%d=%lf", &options->late[i].rank, &options->late[i].seconds) != 2)
		errx(2, "--late wants RANK=SECONDS, not '%s'", text);
}

void peer_parse(int argc, char **argv, struct peer_options *options)
{
	static const struct option table[] = {
		{ "bytes", required_argument, NULL, 'b' },
		{ "iterations", required_argument, NULL, 'i' },
		{ "warmup", required_argument, NULL, 'w' },
		{ "check", no_argument, NULL, 'c' },
		{ "to-one", no_argument, NULL, '1' },
		{ "late", required_argument, NULL, 'l' },
		{ "algorithm", required_argument, NULL, 'a' },
		{ 0 },
	};
	int c;

	*options = (struct peer_options){ .bytes = 1 << 20, .iterations = 10, .warmup = 2 };
	while ((c = getopt_long(argc, argv, "", table, NULL)) != -1) {
		switch (c) {
		case 'b':
			options->bytes =
				number_parse("bytes", optarg) / sizeof(float) * sizeof(float);
			break;
		case 'i':
			options->iterations = (unsigned)number_parse("iterations", optarg);
			break;
		case 'w':
			options->warmup = (unsigned)number_parse("warmup", optarg);
			break;
		case 'c':
			options->check = true;
			break;
		case '1':
			options->to_one = true;
			break;
		case 'l':
			late_parse(options, optarg);
			break;
		case 'a':
			options->algorithm = optarg;
			break;
		default:
			exit(2);
		}
	}
	if (optind < argc)
		errx(2, "'%s' is not an option", argv[optind]);
	if (options->iterations == 0)
		errx(2, "--iterations must be at least 1");
}

void peer_rank_from_env(int *rank, int *size)
{
	const char *r = getenv("TRIB_RANK"), *s = getenv("TRIB_SIZE");

	if (!r || !s)
		errx(2, "TRIB_RANK and TRIB_SIZE must be set");
	*rank = atoi(r);
	*size = atoi(s);
	if (*size < 1 || *rank < 0 || *rank >= *size)
		errx(2, "TRIB_RANK=%s does not fit TRIB_SIZE=%s", r, s);
}

void *peer_alloc(size_t bytes)
{
	void *memory = NULL;
	int e = posix_memalign(&memory, 4096, bytes ? bytes : 1);

	if (e)
		errx(1, "no memory for %zu bytes: %s", bytes, strerror(e));
	memset(memory, 0, bytes);
	return memory;
}

static float input_at(int rank, unsigned iteration, size_t i)
{
	return (float)(int)((i + 5u * (unsigned)rank + iteration) % PERIOD) - 8.0f;
}

static void input_fill(float *data, size_t n, int rank, unsigned iteration)
{
	for (size_t i = 0; i < PERIOD && i < n; i++)
		data[i] = input_at(rank, iteration, i);
	for (size_t have = PERIOD; have < n;) {
		size_t more = have < n - have ? have : n - have;

		memcpy(data + have, data, more * sizeof(*data));
		have += more;
	}
}

static int sum_check(const float *data, size_t n, const struct peer *peer, unsigned iteration)
{
	float expected[PERIOD] = { 0 };

	for (size_t i = 0; i < PERIOD; i++)
		for (int r = 0; r < peer->size; r++)
			expected[i] += input_at(r, iteration, i);
	for (size_t base = 0; base < n; base += PERIOD) {
		size_t m = n - base < PERIOD ? n - base : PERIOD;

		/* memcmp, as a NaN must not pass; -0 cannot come up. */
		if (memcmp(data + base, expected, m * sizeof(*data)) == 0)
			continue;
		for (size_t i = 0; i < m; i++) {
			if (data[base + i] == expected[i])
				continue;
			warnx("rank %d, iteration %u: the sum at %zu is %g, and should be %g",
			      peer->rank, iteration, base + i, (double)data[base + i],
			      (double)expected[i]);
			return -1;
		}
	}
	return 0;
}

static void late_sleep(double seconds)
{
	struct timespec t = { .tv_sec = (time_t)seconds,
		              .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9) };

	nanosleep(&t, NULL);
}

int peer_measure(const struct peer *peer, const struct peer_options *options, double *samples)
{
	size_t n = options->bytes / sizeof(float);
	unsigned rounds = options->warmup + options->iterations;
	float *data = (float *)peer_alloc(options->bytes);
	int rc = 0;

	for (unsigned k = 0; k < rounds && rc == 0; k++) {
		double start;

		input_fill(data, n, peer->rank, k);
		if ((rc = peer->barrier(peer->context)) != 0)
			break;
		start = now_s();
		for (unsigned i = 0; i < options->n_late; i++)
			if (peer->rank == options->late[i].rank)
				late_sleep(options->late[i].seconds);
		if ((rc = peer->allreduce(peer->context, data, n)) != 0)
			break;
		if (k >= options->warmup)
			samples[k - options->warmup] = now_s() - start;
		if (options->to_one && peer->rank)
			continue;
		if (options->check || k == 0 || k + 1 == rounds)
			rc = sum_check(data, n, peer, k);
	}
	free(data);
	return rc;
}

void peer_print(int rank, const double *samples, unsigned iterations)
{
	for (unsigned i = 0; i < iterations; i++)
		printf("SAMPLE %d %u %.9f\n", rank, i, samples[i]);
	fflush(stdout);
}
