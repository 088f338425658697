/* SPDX-License-Identifier: Apache-2.0 */
#include "glm/train/train_job.h"

#include "base/random_bits.h"
#include "base/clock.h"
#include "base/status.h"
#include "glm/data/shard_plan.h"
#include "glm/model/glm_model.h"
#include "glm/train/train_plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROGRESS_NS 100000000ull

static double seconds_since(uint64_t then)
{
	return (double)clock_since(clock_now(), then) / (double)NSEC_PER_SEC;
}

/* ---- all workers agree ---- */

/* A number for what the model does not depend on, and workers must still have in common. */
static uint64_t way_fingerprint(const struct train_job *job)
{
	const struct train_rule *rule = &job->trainer.rule;
	uint64_t sum = job->fingerprint ^ ((uint64_t)rule->micro << 32 | rule->epochs);

	sum = random_next(&sum) ^
	      (rule->data_parallel | (job->options.test != NULL) << 1 |
	       (job->options.checkpoint != NULL) << 2 | (job->options.resume != 0) << 3);
	return random_next(&sum);
}

/* Each worker puts its number into its own place of a vector. */
static trib_status workers_agree(struct train_job *job)
{
	struct exchange *x = &job->trainer.exchange;
	int64_t *all = calloc((size_t)x->size, sizeof(*all)), mine = (int64_t)way_fingerprint(job);
	trib_status status;

	if (!all)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for %d workers", x->size);
	all[x->rank] = mine;
	status = exchange_sum(x, all, (size_t)x->size);
	for (int i = 0; status == TRIB_OK && i < x->size; i++)
		if (all[i] != mine)
			status = status_fail(TRIB_ERR_MISMATCH,
			                     "worker %d has other data or other options than "
			                     "worker %d: %s and all "
			                     "options must be the same everywhere",
			                     i, x->rank, job->files.source.path);
	free(all);
	return status;
}

/* ---- results of epochs ---- */

static trib_glm_score score_of(const struct train_rule *rule, const struct train_sums *sums)
{
	double n = (double)sums->samples, unit = rule->unit * rule->unit;
	trib_glm_score score = { .loss = (double)NAN, .accuracy = (double)NAN };

	if (!sums->samples)
		return score;
	score.loss = ldexp((double)sums->loss, -TRAIN_LOSS_BITS) * unit / n;
	if (rule->loss != GLM_LOSS_LINEAR)
		score.accuracy = (double)sums->correct / n;
	return score;
}

static void epoch_tell(struct train_job *job, uint32_t number)
{
	const struct checkpoint_epoch *past = &job->state.history[number];
	trib_glm_epoch epoch = {
		.struct_size = sizeof(epoch),
		.epoch = (int)number + 1,
		.epochs = (int)job->trainer.rule.epochs,
		.train = { past->train_loss, past->train_accuracy },
		.test = { past->test_loss, past->test_accuracy },
		.seconds = past->seconds,
		.saturated = past->saturated,
	};

	for (uint32_t i = 0; i <= number; i++)
		epoch.total_seconds += job->state.history[i].seconds;
	if (job->options.on_epoch)
		job->options.on_epoch(job->options.context, &epoch);
}

static void progress_tick(void *context, uint64_t done)
{
	struct train_job *job = context;
	uint64_t now = clock_now();

	if (now - job->shown_at < PROGRESS_NS)
		return;
	job->shown_at = now;
	job->options.on_progress(job->options.context, done,
	                         job->trainer.rule.rows * job->trainer.rule.epochs);
}

/* ---- the training ---- */

static trib_status state_make(struct train_job *job)
{
	const struct train_rule *rule = &job->trainer.rule;
	size_t weights = (size_t)rule->classes * rule->columns + 1;
	struct checkpoint *state = &job->state;

	state->fingerprint = job->fingerprint;
	state->classes = rule->classes;
	state->columns = rule->columns;
	state->history = calloc((size_t)rule->epochs + 1, sizeof(*state->history));
	state->x = calloc(weights, sizeof(float));
	state->h = rule->update == GLM_UPDATE_ADAGRAD ? calloc(weights, sizeof(float)) : NULL;
	state->bias = calloc(2 * (size_t)rule->classes, sizeof(float));
	job->pace = calloc((size_t)rule->columns + GLM_GROUP, sizeof(float));
	if (!state->history || !state->x || !state->bias || !job->pace ||
	    (rule->update == GLM_UPDATE_ADAGRAD && !state->h))
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for weights of %u columns",
		                   rule->columns);
	return TRIB_OK;
}

static void setup_tell(struct train_job *job)
{
	const struct train_rule *rule = &job->trainer.rule;
	const struct glm_stats *stats = &job->files.stats;
	trib_glm_setup setup = {
		.struct_size = sizeof(setup),
		.rows = stats->rows,
		.nonzeros = stats->nonzeros,
		.columns = stats->columns,
		.classes = rule->loss == GLM_LOSS_LINEAR ? 0 : (int)stats->labels.n,
		.rank = job->trainer.exchange.rank,
		.workers = job->trainer.exchange.size,
		.threads = (int)rule->threads,
		.layout = layout_name(job->files.layout),
		.kernel = kernel_name(),
		.exchange = job->trainer.exchange.ops->name,
		.rate = rule->rate,
		.decay = rule->decay,
		.l1 = rule->l1,
		.l2 = rule->l2,
		.batch = (int)rule->batch,
		.micro = (int)rule->micro,
		.skipped_rows = job->files.skipped,
		.load_seconds = job->load_seconds,
		.first_epoch = (int)job->state.epochs + 1,
	};

	if (job->options.on_setup)
		job->options.on_setup(job->options.context, &setup);
}

/* From options to a trainer that is ready, on every worker. */
static trib_status job_prepare(struct train_job *job, trib_comm *comm, const char *path)
{
	struct trainer *t = &job->trainer;
	uint64_t start = clock_now();
	trib_status status = rule_read(&job->options, &t->rule);

	if (status == TRIB_OK)
		status = exchange_open(&t->exchange, job->options.exchange, comm, TRAIN_WINDOW);
	if (status == TRIB_OK)
		status = files_scan(&job->files, path, &job->options, &t->rule);
	/* MPI_Allreduce blocks: micro-batches would only cost time. */
	if (job->options.exchange && !strcmp(job->options.exchange, "mpi") && !job->options.micro)
		t->rule.pipelined = false;
	if (status == TRIB_OK)
		status = rule_complete(&job->options, &job->files.stats, (uint32_t)t->exchange.size,
		                       &t->rule);
	if (status != TRIB_OK)
		return status;
	job->fingerprint = rule_fingerprint(&t->rule, &job->files.stats);
	status = workers_agree(job);
	if (status == TRIB_OK)
		status = state_make(job);
	if (status == TRIB_OK)
		status = files_load(&job->files, t);
	if (status == TRIB_OK && job->options.test)
		status = files_load_test(&job->files, job->options.test, t);
	if (status != TRIB_OK)
		return status;
	pace_fill(&t->rule, &job->files.stats, t->first_column, t->data.matrix.columns, job->pace);
	if (job->options.on_progress) {
		t->tick = progress_tick;
		t->context = job;
	}
	status = trainer_open(t, job->pace, job->files.inverse + t->first_column);
	if (status == TRIB_OK)
		status = job_resume(job);
	job->load_seconds = seconds_since(start);
	return status;
}

static trib_status job_epoch(struct train_job *job, uint32_t number)
{
	struct trainer *t = &job->trainer;
	struct checkpoint_epoch *past = &job->state.history[number];
	struct train_sums train, test = { 0 };
	uint64_t start = clock_now();
	trib_status status = trainer_epoch(t, number, &train);

	past->seconds = seconds_since(start);
	if (status == TRIB_OK && job->files.has_test)
		status = trainer_score(t, &job->files.test, &test);
	if (status == TRIB_OK)
		status = trainer_saturated(t, &past->saturated);
	if (status != TRIB_OK)
		return status;
	past->train_loss = score_of(&t->rule, &train).loss;
	past->train_accuracy = score_of(&t->rule, &train).accuracy;
	past->test_loss = score_of(&t->rule, &test).loss;
	past->test_accuracy = score_of(&t->rule, &test).accuracy;
	job->state.epochs = number + 1;
	if (job->options.checkpoint)
		status = job_save(job);
	if (status == TRIB_OK)
		epoch_tell(job, number);
	return status;
}

/* A regression was trained with labels in units; the model has those of the user. */
static trib_status model_fill(struct train_job *job, trib_glm_model **model)
{
	struct trainer *t = &job->trainer;
	const struct train_rule *rule = &t->rule;
	const struct glm_stats *stats = &job->files.stats;
	uint32_t classes = rule->loss == GLM_LOSS_LINEAR ? 0 : stats->labels.n;
	struct train_sums sums;
	trib_status status = trainer_score(t, &t->data, &sums);

	if (status == TRIB_OK)
		status = job_gather(job);
	if (status == TRIB_OK)
		status = model_make(model, rule->classes, classes, rule->columns);
	if (status == TRIB_OK)
		status = model_set_names(*model, stats->names);
	if (status != TRIB_OK)
		return status;
	(*model)->loss = rule->loss;
	snprintf((*model)->update, sizeof((*model)->update), "%s", update_name(rule->update));
	(*model)->from_zero = stats->format == GLM_LIBSVM && stats->base == GLM_BASE_ZERO;
	(*model)->is_csv = stats->format == GLM_CSV;
	memcpy((*model)->labels, stats->labels.value, classes * sizeof(float));
	for (uint32_t c = 0; c < rule->classes; c++)
		(*model)->bias[c] = (float)((double)job->state.bias[c] * rule->unit);
	for (size_t i = 0; i < (size_t)rule->classes * rule->columns; i++)
		(*model)->x[i] = (float)((double)job->state.x[i] * rule->unit *
		                         (double)job->files.inverse[i % rule->columns]);
	(*model)->bits = rule->bits;
	(*model)->batch = rule->batch;
	(*model)->epochs = rule->epochs;
	(*model)->rows = rule->rows;
	(*model)->seed = rule->seed;
	(*model)->rate = rule->rate;
	(*model)->decay = rule->decay;
	(*model)->l1 = rule->l1;
	(*model)->l2 = rule->l2;
	(*model)->train = score_of(rule, &sums);
	return TRIB_OK;
}

trib_status trib_glm_train(trib_comm *comm, const char *path, const trib_glm_options *options,
                           trib_glm_model **model)
{
	struct train_job *job = calloc(1, sizeof(*job));
	trib_status status;

	*model = NULL;
	if (!job)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a training");
	if (options && options->struct_size > sizeof(job->options)) {
		free(job);
		return status_fail(TRIB_ERR_ARGUMENT,
		                   "the options are of a newer version of <tributary/glm.h>");
	}
	if (options)
		memcpy(&job->options, options, options->struct_size);
	status = job_prepare(job, comm, path);
	if (status == TRIB_OK) {
		setup_tell(job);
		for (uint32_t i = 0; i < job->state.epochs; i++)
			epoch_tell(job, i);
	}
	for (uint32_t i = job->state.epochs; status == TRIB_OK && i < job->trainer.rule.epochs; i++)
		status = job_epoch(job, i);
	if (status == TRIB_OK)
		status = model_fill(job, model);
	trainer_close(&job->trainer);
	files_free(&job->files, &job->trainer);
	exchange_close(&job->trainer.exchange);
	checkpoint_free(&job->state);
	free(job->pace);
	free(job);
	return status;
}
