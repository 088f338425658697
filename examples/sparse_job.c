/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse_job.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PULL_ROWS = 8192, TOTALS_WIDTH = 2 };

static const double totals_timeout_s = 3600; /* rank 0 may test for long */

/* ---- small things ---- */

void job_require(const struct job *job, trib_status status, const char *what)
{
	if (status == TRIB_OK)
		return;
	fprintf(stderr, "%s: rank %d: %s: %s\n", job->name, job->rank, what, trib_last_error());
	exit(EXIT_FAILURE);
}

void *job_alloc(size_t count, size_t size)
{
	void *memory = calloc(count ? count : 1, size);

	if (!memory) {
		fprintf(stderr, "no memory for %zu times %zu bytes\n", count, size);
		exit(EXIT_FAILURE);
	}
	return memory;
}

double job_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

size_t job_part(const struct job *job, size_t count, int rank)
{
	return count * (size_t)rank / (size_t)job->workers;
}

double job_softplus(double x)
{
	return x > 0 ? log1p(exp(-x)) : log1p(exp(x)) - x;
}

float job_sigmoid(float x)
{
	return x > 0 ? 1 / (1 + expf(-x)) : expf(x) / (1 + expf(x));
}

float job_dot(const float *a, const float *b, size_t n)
{
	float sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += a[i] * b[i];
	return sum;
}

/* ---- begin ---- */

static int number_of(const char *variable, int otherwise)
{
	const char *text = getenv(variable);

	return text && *text ? (int)strtol(text, NULL, 10) : otherwise;
}

void job_start(struct job *job, const char *name, const struct job_options *options)
{
	*job = (struct job){ .name = name, .o = options, .started = job_now() };
	job->workers = number_of("TRIB_SIZE", 1);
	job->rank = number_of("TRIB_RANK", 0);
	if (job->workers < 1 || job->rank < 0 || job->rank >= job->workers) {
		fprintf(stderr, "%s: TRIB_RANK %d and TRIB_SIZE %d do not fit together\n", name,
		        job->rank, job->workers);
		exit(EXIT_FAILURE);
	}
	progress_init(&job->progress, job->rank == 0 ? job_progress(options) : PROGRESS_NONE);
	job->result.job = name;
	job->result.workers = job->workers;
	job->result.batch = options->batch;
	job->result.width = options->width;
}

static void totals_open(struct job *job)
{
	trib_sparse_options t = TRIB_SPARSE_OPTIONS_INIT;

	t.name = "totals";
	t.width = TOTALS_WIDTH;
	t.rate = 1;
	t.servers = job->o->servers;
	t.workers = job->workers;
	t.rank = job->rank;
	t.is_bounded = 1;
	t.path = "servers";
	t.timeout_s = totals_timeout_s;
	job_require(job, trib_sparse_open(&job->totals, &t), "cannot open the table of totals");
}

void job_open(struct job *job, size_t keys)
{
	const struct job_options *o = job->o;
	trib_sparse_options t = TRIB_SPARSE_OPTIONS_INIT;
	int staleness = job_staleness(o);

	t.name = job->name;
	t.width = (uint32_t)o->width;
	t.optimizer = o->optimizer;
	t.rate = o->rate;
	t.init = o->init;
	t.seed = o->seed;
	t.servers = o->servers;
	t.workers = job->workers;
	t.rank = job->rank;
	t.is_bounded = staleness >= 0;
	t.staleness = staleness >= 0 ? staleness : 0;
	t.wire = o->wire;
	t.path = o->path;
	t.sums = o->sums;
	t.largest = o->largest;
	t.timeout_s = o->timeout_s;
	job_require(job, trib_sparse_open(&job->table, &t), "cannot open the table");
	totals_open(job);
	job->result.keys = keys;
	if (o->tensors)
		job->tensors = tensors_open(o->tensors, job->rank, o->width, keys);
}

/* ---- training ---- */

/* Counts the keys of a sample of the first epoch's steps, and tells the servers. */
static void heat_tell(struct job *job, struct job_model *model)
{
	size_t n = (size_t)ceil((double)model->steps * job->o->sample / 100);
	struct batch heat;

	if (n == 0)
		return;
	batch_open(&heat, 0);
	model->begin(model->context, 0);
	for (size_t i = 0; i < n; i++)
		model->choose(model->context, i * model->steps / n, &heat);
	job_require(job, trib_sparse_heat(job->table, heat.keys, heat.counts, heat.n),
	            "telling the servers which rows are hot");
	batch_close(&heat);
}

static struct job_loss step_run(struct job *job, struct job_model *model, size_t step,
                                struct batch *batch)
{
	struct job_loss loss;

	batch_clear(batch);
	model->choose(model->context, step, batch);
	job_require(job, trib_sparse_pull(job->table, batch->keys, batch->rows, batch->n, NULL),
	            "pulling rows");
	loss = model->compute(model->context, batch);
	if (job->tensors)
		tensors_write(job->tensors, job->o->tensors, batch);
	job_require(job,
	            trib_sparse_push(job->table, batch->keys, batch->gradients, batch->n, NULL),
	            "pushing gradients");
	job_require(job, trib_sparse_step(job->table), "ending a step");
	return loss;
}

static void step_show(struct job *job, const struct job_loss *loss, struct job_progress *state)
{
	trib_sparse_stats stats = { .struct_size = sizeof(stats) };
	double mean = loss->samples ? loss->sum / (double)loss->samples : job->loss, now;
	double weight = job->result.n_losses < 50 ? 1 / (double)(job->result.n_losses + 1) : 0.02;

	job_result_step(&job->result, mean);
	job->loss += weight * (mean - job->loss);
	if (job->progress.mode == PROGRESS_NONE)
		return;
	now = job_now();
	if (trib_sparse_get_stats(job->table, &stats) == TRIB_OK && stats.pushed_rows) {
		state->hot_share = (double)stats.hot_rows / (double)stats.pushed_rows;
		state->rows_s = (double)stats.pushed_rows / (now - job->started);
	}
	state->loss = job->loss;
	job_progress_show(&job->progress, state, now);
}

/*
 * Adds this worker's loss to the totals and waits for all workers. A row of an SGD table with rate
 * 1 falls by each gradient, so gradients have the other sign.
 */
static double totals_add(struct job *job, size_t epoch, const struct job_loss *loss)
{
	uint64_t key = epoch;
	float row[TOTALS_WIDTH] = { (float)-loss->sum, -(float)loss->samples };

	job_require(job, trib_sparse_flush(job->table), "waiting for pushes");
	job_require(job, trib_sparse_push(job->totals, &key, row, 1, NULL), "adding the loss");
	job_require(job, trib_sparse_step(job->totals), "waiting for all workers");
	job_require(job, trib_sparse_pull(job->totals, &key, row, 1, NULL), "reading the loss");
	return row[1] > 0 ? (double)row[0] / (double)row[1] : NAN;
}

static void epoch_end(struct job *job, struct job_model *model, const struct job_loss *loss)
{
	struct job_epoch *epoch = job_result_epoch(&job->result);
	struct progress *p = &job->progress;

	epoch->loss = totals_add(job, job->result.n_epochs, loss);
	if (job->rank == 0 && model->test)
		model->test(model->context, epoch);
	epoch->seconds = job_now() - job->started;
	if (job->rank == 0) {
		progress_say(p, "epoch %zu: loss %.4f, %.1f s", job->result.n_epochs, epoch->loss,
		             epoch->seconds);
		for (size_t i = 0; i < epoch->n_measures; i++)
			progress_say(p, "  %s %.4f (%s %.4f)", epoch->measures[i].name,
			             epoch->measures[i].value, job->result.baseline,
			             epoch->measures[i].baseline);
	}
	/* The others must not change rows while rank 0 tests. */
	job_require(job, trib_sparse_step(job->totals), "waiting for the test");
}

static void epoch_run(struct job *job, struct job_model *model, size_t epoch, struct batch *batch)
{
	struct job_progress state = { .epoch = epoch + 1,
		                      .epochs = job->o->epochs,
		                      .steps = model->steps };
	size_t all = job->o->epochs * model->steps;
	struct job_loss total = { 0 };
	double began = job_now();

	model->begin(model->context, epoch);
	for (size_t step = 0; step < model->steps; step++) {
		struct job_loss loss;

		if (model->decays)
			batch->scale = 1 - (float)job->result.steps / (float)all;
		loss = step_run(job, model, step, batch);
		total.sum += loss.sum;
		total.samples += loss.samples;
		job->result.steps++;
		state.step = step + 1;
		step_show(job, &loss, &state);
	}
	job->result.samples += total.samples;
	job->result.train_s += job_now() - began;
	epoch_end(job, model, &total);
}

void job_train(struct job *job, struct job_model *model)
{
	struct batch batch;

	if (job->o->steps && job->o->steps < model->steps)
		model->steps = job->o->steps;
	heat_tell(job, model);
	batch_open(&batch, job->o->width);
	job->started = job_now();
	for (size_t epoch = 0; epoch < job->o->epochs; epoch++)
		epoch_run(job, model, epoch, &batch);
	job->result.total_s = job_now() - job->started;
	batch_close(&batch);
}

void job_pull(struct job *job, const uint64_t *keys, float *rows, size_t n)
{
	for (size_t at = 0; at < n; at += PULL_ROWS) {
		size_t count = n - at < PULL_ROWS ? n - at : PULL_ROWS;

		job_require(job,
		            trib_sparse_pull(job->table, keys + at, rows + at * job->o->width,
		                             count, NULL),
		            "pulling rows");
	}
}

/* ---- end ---- */

static int files_write(const struct job *job)
{
	const char *failed = NULL;

	if (job->o->json && job_result_write(&job->result, job->o->json) != 0)
		failed = job->o->json;
	else if (job->o->plot && job_result_plot(&job->result, job->o->plot) != 0)
		failed = job->o->plot;
	if (!failed)
		return EXIT_SUCCESS;
	fprintf(stderr, "%s: %s: %s\n", job->name, failed, strerror(errno));
	return EXIT_FAILURE;
}

int job_end(struct job *job)
{
	int code = EXIT_SUCCESS;

	job->result.stats.struct_size = sizeof(job->result.stats);
	job_require(job, trib_sparse_get_stats(job->table, &job->result.stats), "figures");
	job_require(job, trib_sparse_close(job->table), "closing the table");
	job_require(job, trib_sparse_close(job->totals), "closing the table of totals");
	if (job->tensors)
		tensors_close(job->tensors, job->o->tensors);
	if (job->rank == 0) {
		job_result_print(&job->result, &job->progress);
		code = files_write(job);
	}
	job_result_free(&job->result);
	return code;
}
