/* SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"
#include "glm/train/train_job.h"

#include <string.h>
#include <unistd.h>

static bool is_first(const struct train_job *job)
{
	return job->trainer.exchange.rank == 0;
}

trib_status job_gather(struct train_job *job)
{
	struct trainer *t = &job->trainer;
	struct checkpoint *state = &job->state;

	for (uint32_t c = 0; c < t->rule.classes; c++) {
		state->bias[c] = t->bias[c].x;
		state->bias[t->rule.classes + c] = t->bias[c].h;
	}
	return trainer_gather(t, state->x, state->h);
}

trib_status job_save(struct train_job *job)
{
	trib_status status = job_gather(job);

	if (status == TRIB_OK && is_first(job))
		status = checkpoint_write(&job->state, job->options.checkpoint);
	return status;
}

static trib_status checkpoint_check(const struct train_job *job, const struct checkpoint *read)
{
	const struct checkpoint *state = &job->state;
	const char *path = job->options.checkpoint;

	if (read->fingerprint != job->fingerprint || read->classes != state->classes ||
	    read->columns != state->columns || !read->h != !state->h)
		return status_fail(
			TRIB_ERR_CONFIG,
			"%s is the checkpoint of other data or other options; to start anew, "
			"remove it or leave --resume out",
			path);
	if (read->epochs > job->trainer.rule.epochs)
		return status_fail(TRIB_ERR_CONFIG, "%s is from after epoch %u, and --epochs is %u",
		                   path, read->epochs, job->trainer.rule.epochs);
	return TRIB_OK;
}

/* Worker 0 reads; 1 in *found: there is a checkpoint. */
static trib_status checkpoint_take(struct train_job *job, int64_t *found)
{
	struct checkpoint read = { 0 };
	trib_status status;

	*found = 0;
	if (!is_first(job) || access(job->options.checkpoint, F_OK) != 0)
		return TRIB_OK;
	status = checkpoint_read(job->options.checkpoint, &read);
	if (status == TRIB_OK)
		status = checkpoint_check(job, &read);
	if (status == TRIB_OK) {
		size_t bytes = (size_t)read.classes * read.columns * sizeof(float);

		memcpy(job->state.x, read.x, bytes);
		if (read.h)
			memcpy(job->state.h, read.h, bytes);
		memcpy(job->state.bias, read.bias, 2 * read.classes * sizeof(float));
		memcpy(job->state.history, read.history, read.epochs * sizeof(*read.history));
		job->state.epochs = read.epochs;
		*found = 1;
	}
	checkpoint_free(&read);
	return status;
}

/* All workers get what worker 0 has read. */
static trib_status checkpoint_spread(struct train_job *job)
{
	struct trainer *t = &job->trainer;
	struct checkpoint *state = &job->state;
	size_t weights = (size_t)state->classes * state->columns;
	int64_t epochs = state->epochs;
	trib_status status = exchange_sum(&t->exchange, &epochs, 1);

	state->epochs = (uint32_t)epochs;
	if (status == TRIB_OK)
		status = floats_spread(&t->exchange, state->x, weights);
	if (status == TRIB_OK && state->h)
		status = floats_spread(&t->exchange, state->h, weights);
	if (status == TRIB_OK)
		status = floats_spread(&t->exchange, state->bias, 2 * (size_t)state->classes);
	if (status == TRIB_OK)
		status = floats_spread(&t->exchange, (float *)(void *)state->history,
		                       (size_t)epochs * sizeof(*state->history) / sizeof(float));
	if (status != TRIB_OK)
		return status;
	for (uint32_t c = 0; c < state->classes; c++)
		t->bias[c] = (struct train_bias){ state->bias[c], state->bias[state->classes + c] };
	trainer_scatter(t, state->x, state->h);
	return TRIB_OK;
}

trib_status job_resume(struct train_job *job)
{
	int64_t found = 0;
	trib_status status;

	if (!job->options.checkpoint || !job->options.resume)
		return TRIB_OK;
	status = checkpoint_take(job, &found);
	if (status == TRIB_OK)
		status = exchange_sum(&job->trainer.exchange, &found, 1);
	return status == TRIB_OK && found ? checkpoint_spread(job) : status;
}
