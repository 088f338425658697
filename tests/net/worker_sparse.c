/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What network tests of sparse training start as workers. `push` pushes gradients of small integers
 * that follow from the rank alone, with a rate of 1, so that sums are exact in every order. `check`
 * adds up what all ranks pushed, and compares with the rows of the servers.
 */
#include <err.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tributary/sparse.h>
#include <unistd.h>

static struct {
	const char *name, *mark, *wire, *path, *optimizer, *sums;
	long keys, width, pushes, batch, workers, bounded, pause_us, waits, pull_every, seed, skew,
		drift;
} given = { .name = "default",
	    .keys = 1000,
	    .width = 4,
	    .pushes = 200,
	    .batch = 50,
	    .workers = 1,
	    .skew = 3,
	    .bounded = -1 };

static const struct option rows[] = {
	{ "table", 1, NULL, 't' },      { "keys", 1, NULL, 'k' },  { "width", 1, NULL, 'w' },
	{ "pushes", 1, NULL, 'p' },     { "batch", 1, NULL, 'b' }, { "workers", 1, NULL, 'n' },
	{ "bounded", 1, NULL, 's' },    { "mark", 1, NULL, 'm' },  { "pause", 1, NULL, 'u' },
	{ "wait", 0, NULL, 'W' },       { "wire", 1, NULL, 'f' },  { "path", 1, NULL, 'a' },
	{ "pull-every", 1, NULL, 'l' }, { "seed", 1, NULL, 'r' },  { "skew", 1, NULL, 'z' },
	{ "drift", 1, NULL, 'd' },      { "sums", 1, NULL, 'S' },  { "optimizer", 1, NULL, 'o' },
	{ NULL, 0, NULL, 0 },
};

static void options_take(int argc, char **argv)
{
	int option;

	while ((option = getopt_long(argc, argv, "", rows, NULL)) != -1) {
		long number = optarg ? atol(optarg) : 1;

		switch (option) {
		case 't':
			given.name = optarg;
			break;
		case 'k':
			given.keys = number;
			break;
		case 'w':
			given.width = number;
			break;
		case 'p':
			given.pushes = number;
			break;
		case 'b':
			given.batch = number;
			break;
		case 'n':
			given.workers = number;
			break;
		case 's':
			given.bounded = number;
			break;
		case 'm':
			given.mark = optarg;
			break;
		case 'u':
			given.pause_us = number;
			break;
		case 'W':
			given.waits = 1;
			break;
		case 'f':
			given.wire = optarg;
			break;
		case 'a':
			given.path = optarg;
			break;
		case 'l':
			given.pull_every = number;
			break;
		case 'S':
			given.sums = optarg;
			break;
		case 'o':
			given.optimizer = optarg;
			break;
		case 'z':
			given.skew = number;
			break;
		case 'd':
			given.drift = number;
			break;
		case 'r':
			given.seed = number;
			break;
		default:
			exit(2);
		}
	}
}

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/*
 * The gradients of a push. Low keys are frequent, and occur several times. With --drift other keys
 * are frequent from that push on.
 */
static void push_make(long rank, long push, uint64_t *keys, float *values)
{
	uint64_t n = (uint64_t)given.keys,
		 at = mix((uint64_t)given.seed) ^ mix((uint64_t)rank << 32 | (uint64_t)push);

	for (long i = 0; i < given.batch; i++) {
		uint64_t a = mix(at + 3 * (uint64_t)i), b = mix(at + 3 * (uint64_t)i + 1);

		keys[i] = least(a % n, b % n);
		for (long k = 2; k < given.skew; k++)
			keys[i] = least(keys[i], mix((a ^ b) + (uint64_t)k) % n);
		if (given.drift && push >= given.drift)
			keys[i] = (keys[i] + n / 2) % n;
		for (long j = 0; j < given.width; j++)
			values[i * given.width + j] =
				(float)(int)(mix(a + b + (uint64_t)j) % 9) - 4;
	}
}

static trib_sparse *table_open(int is_push)
{
	trib_sparse_options options = TRIB_SPARSE_OPTIONS_INIT;
	trib_sparse *table;

	options.name = given.name;
	options.width = (uint32_t)given.width;
	options.parameters = (uint64_t)given.keys;
	options.rate = 1;
	options.largest = 256;
	options.optimizer = given.optimizer;
	options.wire = given.wire;
	options.sums = is_push ? given.sums : NULL;
	options.path = is_push ? given.path : "servers";
	options.is_bounded = is_push && given.bounded >= 0;
	options.staleness = options.is_bounded ? (int)given.bounded : 0;
	if (trib_sparse_open(&table, &options) != TRIB_OK)
		errx(1, "%s", trib_last_error());
	return table;
}

static void demand(trib_status status)
{
	if (status != TRIB_OK)
		errx(1, "%s", trib_last_error());
}

static void marked(void)
{
	char path[512];
	FILE *file;

	if (!given.mark)
		return;
	snprintf(path, sizeof(path), "%s.%s", given.mark, getenv("TRIB_RANK"));
	file = fopen(path, "w");
	if (file)
		fclose(file);
}

static void push_all(void)
{
	const char *place = getenv("TRIB_RANK");
	long rank = place ? atol(place) : 0;
	uint64_t *keys = calloc((size_t)given.batch, sizeof(*keys));
	float *values = calloc((size_t)(given.batch * given.width), sizeof(*values));
	trib_sparse *table = table_open(1);
	trib_sparse_stats stats = { .struct_size = sizeof(stats) };

	if (!keys || !values)
		err(1, "no memory");
	for (long i = 0; i < given.pushes; i++) {
		trib_sparse_request *request = NULL;

		push_make(rank, i, keys, values);
		demand(trib_sparse_push(table, keys, values, (size_t)given.batch,
		                        given.waits ? &request : NULL));
		if (request)
			demand(trib_sparse_wait(&request, -1));
		demand(trib_sparse_step(table));
		if (given.pull_every && i % given.pull_every == 0)
			demand(trib_sparse_pull(table, keys, values, (size_t)given.batch, NULL));
		if (i == (given.pushes < 40 ? given.pushes / 4 : 10))
			marked();
		if (given.pause_us)
			usleep((useconds_t)given.pause_us);
	}
	demand(trib_sparse_flush(table));
	demand(trib_sparse_get_stats(table, &stats));
	demand(trib_sparse_close(table));
	printf("rank %ld pushed %llu rows, %llu hot, hot set %u, moves %u\n", rank,
	       (unsigned long long)stats.pushed_rows, (unsigned long long)stats.hot_rows,
	       stats.hot_set, stats.moves);
	free(keys);
	free(values);
}

/* Closes the table, and says what was pulled. */
static void close_pulled(trib_sparse *table, long rank)
{
	trib_sparse_stats stats = { .struct_size = sizeof(stats) };

	demand(trib_sparse_get_stats(table, &stats));
	demand(trib_sparse_close(table));
	printf("rank %ld pulled %llu rows, %llu hot\n", rank, (unsigned long long)stats.pulled_rows,
	       (unsigned long long)stats.hot_pulled_rows);
}

/*
 * Pushes to keys that only this rank has, waits, and pulls them: a worker sees its own gradients
 * whose push has ended. Some are too large for an aggregator.
 */
static void own_check(void)
{
	const char *place = getenv("TRIB_RANK");
	long rank = place ? atol(place) : 0;
	size_t n = (size_t)given.batch, width = (size_t)given.width;
	uint64_t *keys = calloc(n, sizeof(*keys)), own = (uint64_t)(given.keys / given.workers);
	float *values = calloc(n * width, sizeof(*values)), *got = calloc(n * width, sizeof(*got)),
	      *sums = calloc((size_t)given.keys * width, sizeof(*sums));
	trib_sparse *table = table_open(1);

	if (!keys || !values || !got || !sums)
		err(1, "no memory");
	for (long i = 0; i < given.pushes; i++) {
		trib_sparse_request *request = NULL;

		push_make(rank, i, keys, values);
		for (size_t j = 0; j < n * width; j++) {
			size_t k = j / width;

			if (!(j % width))
				keys[k] = keys[k] % own * (uint64_t)given.workers + (uint64_t)rank;
			if (i % 50 == 49 && !(j % width))
				values[j] = 300;
			sums[keys[k] * width + j % width] -= values[j];
		}
		demand(trib_sparse_push(table, keys, values, n, &request));
		demand(trib_sparse_wait(&request, -1));
		demand(trib_sparse_pull(table, keys, got, n, NULL));
		for (size_t j = 0; j < n * width; j++)
			if (got[j] != sums[keys[j / width] * width + j % width])
				errx(1, "push %ld, key %llu: %g, and %g was pushed", i,
				     (unsigned long long)keys[j / width], got[j],
				     sums[keys[j / width] * width + j % width]);
		if (given.pause_us)
			usleep((useconds_t)given.pause_us);
	}
	close_pulled(table, rank);
	free(keys);
	free(values);
	free(got);
	free(sums);
}

/*
 * In bounded steps each rank pushes 1 to keys of its own, and after a step pulls those of the next
 * rank: it sees all gradients of the steps that everyone has ended. Every tenth push is too large
 * for an aggregator.
 */
static void seen_check(void)
{
	const char *place = getenv("TRIB_RANK");
	long rank = place ? atol(place) : 0, other = (rank + 1) % given.workers;
	size_t n = (size_t)given.batch, width = (size_t)given.width;
	uint64_t *keys = calloc(2 * n, sizeof(*keys));
	float *values = calloc(n * width, sizeof(*values)), *got = calloc(n * width, sizeof(*got));
	trib_sparse *table = table_open(1);

	if (!keys || !values || !got || width < 2)
		err(1, "no memory");
	for (size_t k = 0; k < n; k++) {
		keys[k] = k * (uint64_t)given.workers + (uint64_t)rank;
		keys[n + k] = k * (uint64_t)given.workers + (uint64_t)other;
		values[k * width] = 1;
	}
	for (long i = 0; i < given.pushes; i++) {
		long least_seen = i + 1 - given.bounded;

		for (size_t k = 0; k < n; k++)
			values[k * width + 1] = (i + rank) % 10 == 9 ? 300 : 0;
		demand(trib_sparse_push(table, keys, values, n, NULL));
		demand(trib_sparse_step(table));
		demand(trib_sparse_pull(table, keys + n, got, n, NULL));
		for (size_t k = 0; k < n; k++)
			if (-got[k * width] < (float)least_seen)
				errx(1, "step %ld: %g pushes of rank %ld are seen in key %zu",
				     i + 1, -got[k * width], other, (size_t)keys[n + k]);
		if (given.pause_us)
			usleep((useconds_t)given.pause_us);
	}
	close_pulled(table, rank);
	free(keys);
	free(values);
	free(got);
}

static void rows_check(void)
{
	size_t n = (size_t)given.keys, width = (size_t)given.width, wrong = 0;
	uint64_t *all = calloc(n, sizeof(*all)), *keys = calloc((size_t)given.batch, sizeof(*keys));
	float *values = calloc((size_t)(given.batch * given.width), sizeof(*values)),
	      *sums = calloc(n * width, sizeof(*sums)),
	      *rows_got = calloc(n * width, sizeof(*sums));
	trib_sparse *table = table_open(0);

	if (!all || !keys || !values || !sums || !rows_got)
		err(1, "no memory");
	for (long rank = 0; rank < given.workers; rank++) {
		for (long i = 0; i < given.pushes; i++) {
			push_make(rank, i, keys, values);
			for (long j = 0; j < given.batch * given.width; j++)
				sums[keys[j / given.width] * width + (size_t)(j % given.width)] -=
					values[j];
		}
	}
	for (size_t i = 0; i < n; i++)
		all[i] = i;
	demand(trib_sparse_pull(table, all, rows_got, n, NULL));
	for (size_t i = 0; i < n * width; i++) {
		if (rows_got[i] != sums[i] && wrong++ < 5)
			printf("key %zu, column %zu: %g, and %g was pushed\n", i / width, i % width,
			       rows_got[i], sums[i]);
	}
	demand(trib_sparse_close(table));
	if (wrong)
		errx(1, "%zu of %zu values are wrong", wrong, n * width);
	printf("right: %zu rows\n", n);
	free(all);
	free(keys);
	free(values);
	free(sums);
	free(rows_got);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (strcmp(what, "push") && strcmp(what, "check") && strcmp(what, "own") &&
	    strcmp(what, "seen"))
		errx(2, "usage: worker_sparse push|own|seen|check [OPTION]...");
	options_take(argc - 1, argv + 1);
	if (!strcmp(what, "push"))
		push_all();
	else if (!strcmp(what, "own"))
		own_check();
	else if (!strcmp(what, "seen"))
		seen_check();
	else
		rows_check();
	return 0;
}
