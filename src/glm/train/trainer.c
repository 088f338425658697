/* SPDX-License-Identifier: Apache-2.0 */
#include "glm/train/trainer.h"

#include "glm/data/large_memory.h"
#include "base/status.h"
#include "glm/train/train_epoch.h"

#include <stdlib.h>
#include <string.h>

#define WALK_COST 4.0 /* of an entry that is visited, in columns of a loop over all */

/* Zeroed memory, aligned for kernels; it counts what could not be had. */
static void *room(size_t n, size_t size, unsigned *missing)
{
	void *memory = large_memory((n ? n : 1) * size);

	*missing += !memory;
	return memory;
}

/* ---- memory ---- */

/* Kernels write whole groups of columns. */
static size_t columns_padded(const struct trainer *t)
{
	return ((size_t)t->data.matrix.columns + GLM_GROUP - 1) / GLM_GROUP * GLM_GROUP;
}

static void classes_open(struct trainer *t, const float *pace, const float *inverse,
                         unsigned *missing)
{
	const struct train_rule *rule = &t->rule;
	size_t padded = columns_padded(t), classes = rule->classes;

	t->weights = room(classes, sizeof(*t->weights), missing);
	t->kernels = room(classes, sizeof(*t->kernels), missing);
	t->bias = room(classes, sizeof(*t->bias), missing);
	t->sums_n = classes * (padded + 1);
	t->sums = room(t->sums_n, sizeof(*t->sums), missing);
	for (uint32_t c = 0; !*missing && c < classes; c++) {
		struct weights *w = &t->weights[c];

		w->x = room(padded, sizeof(*w->x), missing);
		if (rule->bits)
			w->u = room(padded, sizeof(*w->u), missing);
		if (rule->update == GLM_UPDATE_ADAGRAD)
			w->h = room(padded, sizeof(*w->h), missing);
		w->g = t->sums ? t->sums + c * padded : NULL;
		w->low = t->data.low;
		w->step = t->data.step;
		w->pace = pace;
		w->inverse = inverse;
		t->kernels[c] = (struct glm_weights){ .x = w->x, .u = w->u };
		if (t->data.matrix.layout == GLM_WEAVED)
			t->kernels[c].limbs =
				room(kernel_limb_bytes(t->data.matrix.columns), 1, missing);
	}
}

static void slots_open(struct trainer *t, unsigned *missing)
{
	const struct train_rule *rule = &t->rule;
	size_t n = (size_t)t->window * t->slot_room;

	t->activation = room(n, sizeof(*t->activation), missing);
	t->narrow = room((rule->data_parallel ? t->sums_n : t->slot_room) + 1, sizeof(*t->narrow),
	                 missing);
	t->done = room(t->window, sizeof(*t->done), missing);
	t->order = room(t->data.matrix.rows, sizeof(*t->order), missing);
	t->scratch = room(t->data.share.rows, sizeof(*t->scratch), missing);
	t->start = room((size_t)row_batches(&t->data.share) + 1, sizeof(*t->start), missing);
	t->team = room(rule->threads, sizeof(*t->team), missing);
	for (uint32_t i = 0; !*missing && i < rule->threads; i++) {
		struct train_thread *self = &t->team[i];

		self->trainer = t;
		self->number = i;
		self->from = kernel_bound(&t->data.matrix, i, rule->threads);
		self->to = kernel_bound(&t->data.matrix, i + 1, rule->threads);
		self->parts = room(n, sizeof(*self->parts), missing);
		self->constants = room(rule->classes, sizeof(*self->constants), missing);
		self->totals = room(rule->classes, sizeof(*self->totals), missing);
		self->scale_f = room(rule->micro, sizeof(*self->scale_f), missing);
		self->scale_i = room(rule->micro, sizeof(*self->scale_i), missing);
	}
	if (!*missing && !kernel_index_build(&t->index, &t->data.matrix, rule->threads))
		++*missing;
}

/* ---- threads ---- */

static void *thread_main(void *argument)
{
	struct train_thread *self = argument;
	struct trainer *t = self->trainer;

	for (;;) {
		threads_meet(t);
		if (t->stops)
			return NULL;
		if (t->scored)
			thread_score(self);
		else
			thread_epoch(self);
		threads_meet(t);
	}
}

static trib_status threads_start(struct trainer *t)
{
	for (uint32_t i = 1; i < t->rule.threads; i++) {
		if (pthread_create(&t->team[i].thread, NULL, thread_main, &t->team[i]))
			return status_fail(TRIB_ERR_SYSTEM, "cannot start thread %u of %u", i + 1,
			                   t->rule.threads);
		t->threads++;
	}
	return TRIB_OK;
}

static void threads_end(struct trainer *t)
{
	if (!t->threads)
		return;
	t->stops = true;
	if (t->threads + 1 < t->rule.threads)
		/* A thread is missing: its place in the meeting is taken for it. */
		atomic_fetch_add(&t->met, t->rule.threads - t->threads - 1);
	threads_meet(t);
	for (uint32_t i = 1; i <= t->threads; i++)
		pthread_join(t->team[i].thread, NULL);
	t->threads = 0;
}

/* ---- open, close ---- */

static bool any_low(const struct trainer *t)
{
	for (uint32_t j = 0; t->data.low && j < t->data.matrix.columns; j++)
		if (t->data.low[j] != 0)
			return true;
	return false;
}

/*
 * An update visits the entries of rows only where a mini-batch has few of them: a loop over all
 * columns takes a quarter of the time for each, as it does several at once.
 */
static bool updates_walk(const struct trainer *t)
{
	const struct glm_matrix *m = &t->data.matrix;

	if (m->layout != GLM_SPARSE || t->rule.data_parallel || t->has_low || !m->rows)
		return false;
	return (double)m->start[m->rows] / m->rows * t->rule.batch * WALK_COST < m->columns;
}

trib_status trainer_open(struct trainer *t, const float *pace, const float *inverse)
{
	const struct train_rule *rule = &t->rule;
	unsigned missing = 0;
	trib_status status;

	pthread_mutex_init(&t->lock, NULL);
	t->opened = true;
	status = exchange_open(&t->alone, "local", NULL, TRAIN_WINDOW);
	if (status != TRIB_OK)
		return status;
	t->activations = rule->data_parallel ? &t->alone : &t->exchange;
	t->window = (rule->batch + rule->micro - 1) / rule->micro;
	t->window = t->window < TRAIN_WINDOW ? t->window : TRAIN_WINDOW;
	t->slot_room = (rule->micro * rule->classes + 7) / 8 * 8; /* slots share no cache line */
	classes_open(t, pace, inverse, &missing);
	if (!missing)
		slots_open(t, &missing);
	if (missing)
		return status_fail(
			TRIB_ERR_NO_MEMORY,
			"no memory for %u weights of %u columns and mini-batches of %u rows",
			rule->classes, t->data.matrix.columns, rule->batch);
	t->has_low = any_low(t);
	t->walks = updates_walk(t);
	for (uint32_t i = 0; i < rule->threads; i++)
		thread_prepare(&t->team[i]);
	return threads_start(t);
}

void trainer_close(struct trainer *t)
{
	if (!t->opened)
		return;
	threads_end(t);
	for (uint32_t c = 0; t->weights && t->kernels && c < t->rule.classes; c++) {
		free(t->weights[c].x);
		free(t->weights[c].u);
		free(t->weights[c].h);
		free(t->kernels[c].limbs);
	}
	for (uint32_t i = 0; t->team && i < t->rule.threads; i++) {
		free(t->team[i].parts);
		free(t->team[i].constants);
		free(t->team[i].totals);
		free(t->team[i].scale_f);
		free(t->team[i].scale_i);
	}
	free(t->weights);
	free(t->kernels);
	free(t->bias);
	free(t->sums);
	free(t->activation);
	free(t->narrow);
	free(t->done);
	free(t->order);
	free(t->scratch);
	free(t->start);
	free(t->team);
	kernel_index_free(&t->index);
	pthread_mutex_destroy(&t->lock);
	t->opened = false;
}

/* ---- an epoch ---- */

trib_status trainer_sums(struct trainer *t, struct train_sums *sums)
{
	*sums = (struct train_sums){ 0 };
	for (uint32_t i = 0; i < t->rule.threads; i++) {
		sums->loss += t->team[i].sums.loss;
		sums->correct += t->team[i].sums.correct;
		sums->samples += t->team[i].sums.samples;
	}
	return exchange_sum(&t->exchange, &sums->loss, sizeof(*sums) / sizeof(sums->loss));
}

trib_status trainer_epoch(struct trainer *t, uint32_t epoch, struct train_sums *sums)
{
	t->epoch = epoch;
	row_order_fill(&t->data.share, t->rule.seed, epoch, t->scratch, t->order, t->start);
	threads_meet(t);
	thread_epoch(&t->team[0]);
	threads_meet(t);
	if (t->failed)
		return status_fail((trib_status)t->failed, "%s", t->error);
	return trainer_sums(t, sums);
}

trib_status trainer_saturated(struct trainer *t, uint64_t *n)
{
	int64_t sum = 0;
	trib_status status;

	for (uint32_t i = 0; i < t->rule.threads; i++)
		sum += (int64_t)t->team[i].saturated;
	status = exchange_sum(&t->exchange, &sum, 1);
	*n = (uint64_t)sum;
	return status;
}
