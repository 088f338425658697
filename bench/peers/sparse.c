/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker of `trib bench sparse`: pushes batches of rows again and again, through the public
 * headers only.
 *
 *     sparse --way push|dense --iterations I --warmup W --steps S ...
 *
 * An iteration is S steps. `push`: each step pushes a batch, and the iteration ends when the pushes
 * of all workers are durable. `dense`: each step is an allreduce of the whole table's gradient,
 * zeros included.
 *
 * Rank 0 prints `BEGIN` when the warm-up is over, and `SAMPLE <iteration> <seconds> <hot share>`
 * after each iteration. Every rank prints `FIGURES <rows> <hot rows> <packets> <repeats> <bytes to
 * servers> <bytes of a step> <hot rows now>`, without the warm-up.
 */
#include "sparse_load.h"

#include <tributary/sparse.h>

#include <err.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SEED 7
#define HEAT_PART 16 /* one batch of so many is counted ahead: 6 % */
#define LOAD_BYTES ((size_t)16 << 20)

struct asked {
	bool is_dense, pulls;
	unsigned iterations, warmup, steps;
	unsigned drift; /* before this iteration other keys become popular; 0: never */
	const char *path, *sums, *tensors;
	const char *gate; /* a file: when it is there, the timed iterations begin; NULL: at once */
	unsigned files;
	struct load_shape shape;
	double timeout_s;
	double hot_wait_s; /* for the first hot rows; 0: there will be none */
};

struct bencher {
	struct asked asked;
	int rank, size;
	struct load loads[2]; /* the second one is for the time after a drift */
	trib_sparse *table;
	trib_comm *comm;
	float *dense; /* the whole table's gradient, or rows that were pulled */
	uint64_t dense_rows, steps_done, bytes;
};

static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void require(trib_status status, const char *what)
{
	if (status != TRIB_OK)
		errx(1, "%s: %s", what, trib_last_error());
}

/* ---- arguments ---- */

static uint64_t count_of(const char *text, uint64_t least)
{
	char *end;
	uint64_t value = strtoull(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || value < least)
		errx(2, "\"%s\" is not a whole number from %" PRIu64 " on", text, least);
	return value;
}

static const struct option names[] = {
	{ "way", required_argument, NULL, 'w' },     { "iterations", required_argument, NULL, 'i' },
	{ "warmup", required_argument, NULL, 'u' },  { "steps", required_argument, NULL, 's' },
	{ "drift", required_argument, NULL, 'd' },   { "path", required_argument, NULL, 'p' },
	{ "sums", required_argument, NULL, 'm' },    { "tensors", required_argument, NULL, 't' },
	{ "gate", required_argument, NULL, 'g' },    { "files", required_argument, NULL, 'f' },
	{ "keys", required_argument, NULL, 'k' },    { "width", required_argument, NULL, 'W' },
	{ "rows", required_argument, NULL, 'r' },    { "zipf", required_argument, NULL, 'z' },
	{ "timeout", required_argument, NULL, 'T' }, { "hot-wait", required_argument, NULL, 'H' },
	{ "pull", no_argument, NULL, 'P' },          { 0 },
};

static void text_take(struct asked *a, int which)
{
	switch (which) {
	case 'w':
		a->is_dense = strcmp(optarg, "dense") == 0;
		break;
	case 'p':
		a->path = optarg;
		break;
	case 'm':
		a->sums = optarg;
		break;
	case 't':
		a->tensors = optarg;
		break;
	case 'g':
		a->gate = optarg;
		break;
	case 'z':
		a->shape.zipf = strtod(optarg, NULL);
		break;
	case 'T':
		a->timeout_s = strtod(optarg, NULL);
		break;
	case 'H':
		a->hot_wait_s = strtod(optarg, NULL);
		break;
	case 'P':
		a->pulls = true;
		break;
	default:
		exit(2);
	}
}

static void argument_take(struct asked *a, int which)
{
	switch (which) {
	case 'i':
		a->iterations = (unsigned)count_of(optarg, 1);
		break;
	case 'u':
		a->warmup = (unsigned)count_of(optarg, 0);
		break;
	case 's':
		a->steps = (unsigned)count_of(optarg, 1);
		break;
	case 'd':
		a->drift = (unsigned)count_of(optarg, 0);
		break;
	case 'f':
		a->files = (unsigned)count_of(optarg, 1);
		break;
	case 'k':
		a->shape.table_rows = count_of(optarg, 1);
		break;
	case 'W':
		a->shape.width = (uint32_t)count_of(optarg, 1);
		break;
	case 'r':
		a->shape.rows = (uint32_t)count_of(optarg, 1);
		break;
	default:
		text_take(a, which);
	}
}

static void arguments_read(struct bencher *b, int argc, char **argv)
{
	const char *rank = getenv("TRIB_RANK"), *size = getenv("TRIB_SIZE");
	int which;

	b->asked = (struct asked){
		.iterations = 1,
		.steps = 1,
		.files = 1,
		.timeout_s = 60,
		.shape = { .table_rows = 100000, .width = 16, .rows = 1000, .zipf = 1 }
	};
	while ((which = getopt_long(argc, argv, "", names, NULL)) != -1)
		argument_take(&b->asked, which);
	if (!rank || !size)
		errx(2, "TRIB_RANK and TRIB_SIZE are not set");
	b->rank = (int)count_of(rank, 0);
	b->size = (int)count_of(size, 1);
}

/* ---- begin ---- */

/* One for each step, or as many as LOAD_BYTES hold: these are pushed again then. */
static size_t batches_count(const struct asked *a)
{
	size_t steps = (size_t)a->steps * (a->iterations + a->warmup);
	size_t most = LOAD_BYTES / (a->shape.rows * (a->shape.width * sizeof(float) + 8)) + 1;

	return steps < most ? steps : most;
}

static void loads_get(struct bencher *b)
{
	const struct asked *a = &b->asked;
	struct load_shape shape = a->shape;
	char path[4096];

	if (a->tensors) {
		snprintf(path, sizeof(path), "%s.%u", a->tensors, (unsigned)b->rank % a->files);
		load_read(&b->loads[0], path, a->steps * (size_t)(a->iterations + a->warmup));
		/* Workers with the same file begin at different steps of it. */
		b->steps_done = (unsigned)b->rank / a->files * 7919u % b->loads[0].n;
		return;
	}
	shape.batches = batches_count(a);
	shape.seed = SEED + (uint64_t)b->rank;
	load_make(&b->loads[0], &shape);
	shape.shift = shape.table_rows / 2;
	if (a->drift)
		load_make(&b->loads[1], &shape);
}

/* Tells the servers how often the keys of some batches occur. */
static void heat_tell(const struct bencher *b)
{
	const struct load *load = &b->loads[0];

	for (size_t i = 0; i < load->n; i += HEAT_PART) {
		const struct load_batch *batch = &load->batches[i];
		uint64_t *ones = calloc(batch->n, sizeof(*ones));

		if (!ones)
			errx(1, "no memory");
		for (uint32_t k = 0; k < batch->n; k++)
			ones[k] = 1;
		require(trib_sparse_heat(b->table, batch->keys, ones, batch->n), "heat");
		free(ones);
	}
}

/* Servers keep values at the aggregator as soon as a row was pulled. */
static void pull_once(const struct bencher *b, const struct load_batch *batch)
{
	float *rows = calloc((size_t)batch->n * b->loads[0].width, sizeof(*rows));

	if (!rows)
		errx(1, "no memory");
	require(trib_sparse_pull(b->table, batch->keys, rows, batch->n, NULL), "pull");
	free(rows);
}

/*
 * Servers need a moment to join an aggregator and to choose rows, and so do workers. That is no
 * part of a warm-up: pushes until the first of them is hot.
 */
static void hot_await(const struct bencher *b)
{
	const struct load_batch *batch = &b->loads[0].batches[0];
	const struct timespec moment = { .tv_nsec = 5000000 };
	double until = seconds_now() + b->asked.hot_wait_s;
	trib_sparse_stats stats = { .struct_size = sizeof(stats) };

	if (b->asked.pulls)
		pull_once(b, batch);
	while (seconds_now() < until && !stats.hot_rows) {
		require(trib_sparse_push(b->table, batch->keys, batch->rows, batch->n, NULL),
		        "push");
		require(trib_sparse_flush(b->table), "flush");
		require(trib_sparse_get_stats(b->table, &stats), "figures");
		nanosleep(&moment, NULL);
	}
}

static void table_open(struct bencher *b)
{
	trib_sparse_options t = TRIB_SPARSE_OPTIONS_INIT;

	t.name = "bench";
	t.width = b->loads[0].width;
	t.workers = b->size;
	t.rank = b->rank;
	t.is_bounded = 1;
	t.path = b->asked.path;
	t.sums = b->asked.sums;
	t.timeout_s = b->asked.timeout_s;
	require(trib_sparse_open(&b->table, &t), "opening the table");
	heat_tell(b);
	hot_await(b);
	require(trib_sparse_step(b->table), "meeting the others");
}

static void begin(struct bencher *b)
{
	size_t rows = 1;

	loads_get(b);
	for (int k = 0; k < 2; k++)
		for (size_t i = 0; i < b->loads[k].n; i++)
			if (b->loads[k].batches[i].n > rows)
				rows = b->loads[k].batches[i].n;
	if (b->asked.is_dense) {
		rows = b->loads[0].table_rows;
		require(trib_init(&b->comm, NULL), "joining the job");
	} else {
		table_open(b);
	}
	b->dense = calloc(rows * b->loads[0].width, sizeof(float));
	if (!b->dense)
		errx(1, "no memory for %zu rows", rows);
}

/* ---- the measurement ---- */

/* Keys are spread over the table. Which row a key has does not change the time. */
static void rows_scatter(struct bencher *b, const struct load_batch *batch)
{
	size_t width = b->loads[0].width;

	memset(b->dense, 0, b->loads[0].table_rows * width * sizeof(float));
	for (uint32_t i = 0; i < batch->n; i++) {
		uint64_t row = batch->keys[i] % b->loads[0].table_rows;

		memcpy(b->dense + row * width, batch->rows + i * width, width * sizeof(float));
	}
}

static void step_run(struct bencher *b, const struct load *load)
{
	const struct load_batch *batch = &load->batches[b->steps_done++ % load->n];

	b->bytes = batch->n * (sizeof(uint64_t) + load->width * sizeof(float));
	if (b->asked.is_dense) {
		rows_scatter(b, batch);
		require(trib_allreduce(b->comm, TRIB_IN_PLACE, b->dense,
		                       load->table_rows * load->width, TRIB_F32, TRIB_SUM),
		        "allreduce");
		b->dense_rows += batch->n;
		b->bytes = load->table_rows * load->width * sizeof(float);
		return;
	}
	if (b->asked.pulls)
		require(trib_sparse_pull(b->table, batch->keys, b->dense, batch->n, NULL), "pull");
	require(trib_sparse_push(b->table, batch->keys, batch->rows, batch->n, NULL), "push");
}

static trib_sparse_stats stats_get(const struct bencher *b)
{
	trib_sparse_stats stats = { .struct_size = sizeof(stats) };

	if (b->table)
		require(trib_sparse_get_stats(b->table, &stats), "figures");
	else
		stats.pushed_rows = b->dense_rows;
	return stats;
}

static void iteration_run(struct bencher *b, unsigned iteration)
{
	bool drifted = b->asked.drift && iteration >= b->asked.drift && b->loads[1].n;

	for (unsigned s = 0; s < b->asked.steps; s++)
		step_run(b, &b->loads[drifted]);
	if (!b->asked.is_dense) {
		require(trib_sparse_flush(b->table), "flush");
		require(trib_sparse_step(b->table), "step");
	}
}

static double hot_share(const trib_sparse_stats *before, const trib_sparse_stats *after)
{
	uint64_t rows = after->pushed_rows - before->pushed_rows;

	return rows ? (double)(after->hot_rows - before->hot_rows) / (double)rows : 0;
}

/* Until the reader of BEGIN has looked at the servers' links. */
static void gate_await(const struct asked *asked)
{
	const struct timespec moment = { .tv_nsec = 1000000 };
	double until = seconds_now() + asked->timeout_s;

	while (asked->gate && access(asked->gate, F_OK) != 0) {
		if (seconds_now() > until)
			errx(1, "nobody has opened %s", asked->gate);
		nanosleep(&moment, NULL);
	}
}

static void measure(struct bencher *b)
{
	trib_sparse_stats first = stats_get(b), last = first;

	for (unsigned i = 0; i < b->asked.warmup + b->asked.iterations; i++) {
		trib_sparse_stats before = last;
		double start;

		if (i == b->asked.warmup) {
			first = before;
			if (b->rank == 0)
				printf("BEGIN\n");
			fflush(stdout);
			gate_await(&b->asked);
		}
		start = seconds_now();
		iteration_run(b, i < b->asked.warmup ? 0 : i - b->asked.warmup);
		last = stats_get(b);
		if (b->rank == 0 && i >= b->asked.warmup)
			printf("SAMPLE %u %.9f %.6f\n", i - b->asked.warmup, seconds_now() - start,
			       hot_share(&before, &last));
		fflush(stdout);
	}
	printf("FIGURES %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
	       " %u\n",
	       last.pushed_rows - first.pushed_rows, last.hot_rows - first.hot_rows,
	       last.hot_packets - first.hot_packets, last.resent_packets - first.resent_packets,
	       last.server_bytes_sent - first.server_bytes_sent, b->bytes, last.hot_set);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static struct bencher b;

	arguments_read(&b, argc, argv);
	begin(&b);
	measure(&b);
	if (b.table)
		require(trib_sparse_close(b.table), "closing the table");
	if (b.comm)
		require(trib_finalize(b.comm), "leaving the job");
	load_free(&b.loads[0]);
	load_free(&b.loads[1]);
	free(b.dense);
	return 0;
}
