/* SPDX-License-Identifier: Apache-2.0 */
#include "glm/train/train_epoch.h"

#include "base/status.h"
#include "glm/train/pipeline.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define SPINS 200u       /* looks at a value before the thread gives its core to others */
#define YIELDS 20000u    /* looks before it sleeps, as between epochs */
#define SLEEP_NS 50000ll /* 50 us */
#define ACTIVATION_UNIT (1.0 / (1 << GLM_ACTIVATION_BITS))
#define ROUND 6755399441055744.0 /* added and subtracted, it rounds a double to an integer */

/* ---- threads wait for each other ---- */

static void thread_pause(unsigned *spins)
{
	++*spins;
	if (*spins > YIELDS)
		nanosleep(&(struct timespec){ .tv_nsec = SLEEP_NS }, NULL);
	else if (*spins > SPINS)
		sched_yield();
}

void threads_fail(struct trainer *trainer, trib_status status)
{
	pthread_mutex_lock(&trainer->lock);
	if (!trainer->failed) {
		snprintf(trainer->error, sizeof(trainer->error), "%s", trib_last_error());
		trainer->failed = status;
	}
	pthread_mutex_unlock(&trainer->lock);
}

void threads_meet(struct trainer *trainer)
{
	unsigned meeting = trainer->meeting, spins = 0;

	if (atomic_fetch_add(&trainer->met, 1) + 1 == trainer->rule.threads) {
		trainer->met = 0;
		trainer->meeting = meeting + 1;
		return;
	}
	while (trainer->meeting == meeting)
		thread_pause(&spins);
}

/* ---- forward ---- */

static void forward(struct train_thread *self, const uint32_t *rows, uint32_t n, uint32_t slot)
{
	struct trainer *t = self->trainer;
	const struct train_rule *rule = &t->rule;
	uint32_t size = rule->classes * n;
	int64_t *part = self->parts + (size_t)slot * t->slot_room;
	/* The bias has one owner in the job, or one a worker if each has its own rows. */
	bool owns_bias =
		rule->bias && self->number == 0 && (rule->data_parallel || t->exchange.rank == 0);
	trib_status status;

	for (uint32_t c = 0; c < rule->classes; c++) {
		int64_t same = self->constants[c];

		if (owns_bias)
			same += weights_fixed((double)t->bias[c].x);
		for (uint32_t k = 0; k < n; k++)
			part[c * n + k] = same;
		self->saturated += kernel_forward_part(&t->data.matrix, &t->kernels[c], rows, n,
		                                       &t->index, self->number, part + c * n);
	}
	if (rule->threads > 1 && atomic_fetch_add(&t->done[slot], 1) + 1 < rule->threads)
		return;
	/* The last thread: it adds the parts of all, and posts. */
	if (rule->threads > 1) {
		int64_t *sum = t->activation + (size_t)slot * t->slot_room;

		t->done[slot] = 0;
		memcpy(sum, t->team[0].parts + (size_t)slot * t->slot_room, size * sizeof(*sum));
		for (uint32_t i = 1; i < rule->threads; i++) {
			const int64_t *other = t->team[i].parts + (size_t)slot * t->slot_room;

			for (uint32_t k = 0; k < size; k++)
				sum[k] += other[k];
		}
		part = sum;
	}
	/* With one micro-batch there is nothing to do until its sum is there. */
	if (t->window == 1)
		status = exchange_sum_small(t->activations, part, size, t->narrow);
	else
		status = exchange_post(t->activations, slot, part, size);
	if (status < 0) {
		threads_fail(t, status);
		return;
	}
	/* In this order: the first thread waits for the network if it sees a post without a result.
	 */
	if (status == TRIB_OK)
		t->arrived++;
	t->posted++;
}

/* ---- waiting for a result ---- */

/* The first thread waits for the network, the others for the first thread. */
static void result_wait(struct train_thread *self, uint64_t number, uint32_t slot)
{
	struct trainer *t = self->trainer;
	unsigned spins = 0;
	trib_status status;

	if (self->number == 0) {
		while (t->posted <= number && !t->failed)
			thread_pause(&spins);
		if (t->failed || t->arrived > number)
			return;
		status = exchange_wait(t->activations, slot);
		if (status == TRIB_OK)
			t->arrived = number + 1;
		else
			threads_fail(t, status);
		return;
	}
	while (t->arrived <= number && !t->failed)
		thread_pause(&spins);
}

/* ---- backward ---- */

static double class_target(const struct train_rule *rule, float target, uint32_t c)
{
	if (rule->classes == 1)
		return (double)target / rule->unit;
	return (uint32_t)target == c ? 1 : -1;
}

static void sums_add(const struct train_rule *rule, const int64_t *activation, uint32_t stride,
                     const float *targets, const uint32_t *rows, uint32_t n,
                     struct train_sums *sums)
{
	/* A sample's share of the loss is bounded, so that the sum of all rows fits 63 bits. */
	double most = 274877906944.0 / (double)(rule->rows * rule->classes + 1);

	for (uint32_t k = 0; k < n; k++) {
		float target = targets[rows[k]];
		uint32_t best = 0;

		for (uint32_t c = 0; c < rule->classes; c++) {
			double z = (double)activation[c * stride + k] * ACTIVATION_UNIT;
			double loss = loss_value(rule->loss, z, class_target(rule, target, c));

			loss = loss < most ? loss : most;
			sums->loss += (int64_t)(loss * (1 << TRAIN_LOSS_BITS) + 0.5);
			if (activation[c * stride + k] > activation[best * stride + k])
				best = c;
		}
		if (rule->loss == GLM_LOSS_LINEAR)
			continue;
		if (rule->classes > 1)
			sums->correct += best == (uint32_t)target;
		else
			sums->correct += (activation[k] > 0) == (target > 0);
	}
	sums->samples += n;
}

/* The scales of a class: how much each sample pulls at the weights. */
static void scales_fill(struct train_thread *self, const int64_t *activation, const uint32_t *rows,
                        uint32_t n, uint32_t c)
{
	const struct trainer *t = self->trainer;
	const struct train_rule *rule = &t->rule;
	double unit = rule->bits ? 1 << GLM_SCALE_BITS : 1 << GLM_GRADIENT_BITS;
	double most = rule->bits ? GLM_SCALE_MAX : (double)GLM_TERM_MAX;

	for (uint32_t k = 0; k < n; k++) {
		double z = (double)activation[k] * ACTIVATION_UNIT;
		double slope =
			loss_slope(rule->loss, z, class_target(rule, t->data.targets[rows[k]], c));
		double wide = slope * unit, fixed = wide < most ? wide : most;

		fixed = fixed > -most ? fixed : -most;
		self->saturated += fixed != wide;
		fixed = fixed + ROUND - ROUND;
		self->totals[c] += (int64_t)fixed;
		if (rule->bits)
			self->scale_i[k] = (int32_t)fixed;
		else
			self->scale_f[k] = (float)slope;
	}
}

void losses_add(struct train_thread *self, const struct train_losses *of)
{
	const struct trainer *t = self->trainer;
	bool alone = t->rule.data_parallel;
	uint64_t threads = of->whole_team ? t->rule.threads : 1;
	uint64_t parts = threads * (alone ? 1 : (uint64_t)t->exchange.size);
	uint64_t part = threads * (alone ? 0 : (uint64_t)t->exchange.rank) +
	                (of->whole_team ? self->number : 0);
	uint32_t first = (uint32_t)(of->n * part / parts);
	uint32_t end = (uint32_t)(of->n * (part + 1) / parts);

	sums_add(&t->rule, of->activation + first, of->stride, of->targets, of->rows + first,
	         end - first, &self->sums);
}

static void backward(struct train_thread *self, const uint32_t *rows, uint32_t n, uint32_t slot)
{
	struct trainer *t = self->trainer;
	const struct train_rule *rule = &t->rule;
	const int64_t *activation =
		(rule->threads > 1 ? t->activation : self->parts) + (size_t)slot * t->slot_room;

	losses_add(self, &(struct train_losses){ .activation = activation,
	                                         .stride = n,
	                                         .targets = t->data.targets,
	                                         .rows = rows,
	                                         .n = n,
	                                         .whole_team = true });
	for (uint32_t c = 0; c < rule->classes; c++) {
		scales_fill(self, activation + c * n, rows, n, c);
		self->saturated +=
			kernel_backward_part(&t->data.matrix, rows, n, self->scale_f, self->scale_i,
		                             &t->index, self->number, t->weights[c].g);
	}
}

/* ---- update ---- */

/* Rate of mini-batch `b` in this epoch. */
static double find_rate(const struct train_rule *rule, uint32_t epoch, uint32_t b, uint32_t batches)
{
	return rule->rate / (1 + rule->decay * (epoch + (double)b / batches));
}

/* Visits the entries of the rows: a column is changed at its first entry, and its g is 0 then. */
static void rows_update(struct train_thread *self, const struct weights_step *step, uint32_t c,
                        const uint32_t *rows, uint32_t n)
{
	const struct trainer *t = self->trainer;
	const struct glm_matrix *m = &t->data.matrix;
	const struct weights *w = &t->weights[c];

	for (uint32_t k = 0; k < n; k++) {
		const uint32_t *at =
			t->index.at + (size_t)rows[k] * (t->index.parts + 1) + self->number;
		const uint32_t *column = m->column + m->start[rows[k]];

		self->saturated += weights_update_some(w, step, column + at[0], at[1] - at[0]);
	}
}

static void bias_update(struct trainer *t, uint32_t c, double rate, double gradient)
{
	struct train_bias *bias = &t->bias[c];
	float pace = 1;
	struct weights w = { .x = &bias->x,
		             .h = t->rule.update == GLM_UPDATE_ADAGRAD ? &bias->h : NULL,
		             .pace = &pace };

	weights_step_one(&w, rate, gradient);
}

/* Codes and constants of the thread's columns, from their weights. */
static void class_prepare(struct train_thread *self, uint32_t c)
{
	struct trainer *t = self->trainer;

	if (t->rule.bits)
		self->saturated += kernel_prepare(&t->data.matrix, t->data.step, &t->kernels[c],
		                                  self->from, self->to);
	if (t->has_low)
		self->constants[c] = weights_constant(&t->weights[c], self->from, self->to);
}

void thread_prepare(struct train_thread *self)
{
	for (uint32_t c = 0; c < self->trainer->rule.classes; c++)
		class_prepare(self, c);
}

static void weights_apply(struct train_thread *self, uint32_t b, const uint32_t *rows, uint32_t n,
                          const int64_t *totals)
{
	struct trainer *t = self->trainer;
	const struct train_rule *rule = &t->rule;
	uint32_t batches = row_batches(&t->data.share);
	double rate = find_rate(rule, t->epoch, b, batches);
	double unit = rule->bits ? 1 << GLM_SCALE_BITS : 1 << GLM_GRADIENT_BITS;
	struct weights_step step = { .rate = rate,
		                     .quantum = 1 / (unit * row_batch_size(&t->data.share, b)) };
	bool shrinks;

	self->rates += rate;
	self->since++;
	shrinks = (rule->l1 > 0 || rule->l2 > 0) &&
	          (self->since == rule->shrink_every || b + 1 == batches);
	for (uint32_t c = 0; c < rule->classes; c++) {
		step.total = totals[c];
		if (t->walks)
			rows_update(self, &step, c, rows, n);
		else
			weights_update(&t->weights[c], &step, self->from, self->to);
		if (shrinks)
			weights_shrink(&t->weights[c], self->rates, rule->l1, rule->l2, self->from,
			               self->to);
		if (shrinks || !t->walks)
			class_prepare(self, c);
		if (rule->bias && self->number == 0)
			bias_update(t, c, rate, step.quantum * (double)totals[c]);
	}
	if (shrinks) {
		self->rates = 0;
		self->since = 0;
	}
}

/* Data parallel: the gradients of all workers. They end with the totals of the classes. */
static const int64_t *gradients_sum(struct train_thread *self)
{
	struct trainer *t = self->trainer;
	int64_t *totals = t->sums + t->sums_n - t->rule.classes;

	if (self->number == 0)
		memcpy(totals, self->totals, t->rule.classes * sizeof(*totals));
	threads_meet(t);
	if (self->number == 0 && !t->failed) {
		trib_status status =
			exchange_sum_small(&t->exchange, t->sums, t->sums_n, t->narrow);

		if (status != TRIB_OK)
			threads_fail(t, status);
	}
	threads_meet(t);
	return totals;
}

/* ---- a mini-batch, an epoch ---- */

static void thread_batch(struct train_thread *self, uint32_t b)
{
	struct trainer *t = self->trainer;
	const uint32_t *rows = t->order + t->start[b];
	uint32_t n = t->start[b + 1] - t->start[b], micro = t->rule.micro;
	struct pipeline line = { .micros = n ? (n + micro - 1) / micro : 1, .window = t->window };
	const int64_t *totals = self->totals;

	memset(self->totals, 0, t->rule.classes * sizeof(*self->totals));
	while (!t->failed) {
		uint64_t arrived = t->arrived;
		struct pipeline_step step = pipeline_next(
			&line, arrived > self->base ? (uint32_t)(arrived - self->base) : 0);
		uint32_t first = step.micro * micro, slot = step.micro % t->window;
		uint32_t count = first < n ? n - first : 0;

		count = count < micro ? count : micro;
		if (step.what == PIPELINE_DONE)
			break;
		if (step.what == PIPELINE_FORWARD)
			forward(self, rows + first, count, slot);
		else if (step.what == PIPELINE_BACKWARD)
			backward(self, rows + first, count, slot);
		else
			result_wait(self, self->base + step.micro, slot);
		pipeline_take(&line, step);
	}
	self->base += line.micros;
	if (t->rule.data_parallel)
		totals = gradients_sum(self);
	if (!t->failed)
		weights_apply(self, b, rows, n, totals);
}

void thread_epoch(struct train_thread *self)
{
	struct trainer *t = self->trainer;
	uint32_t batches = row_batches(&t->data.share);

	self->sums = (struct train_sums){ 0 };
	for (uint32_t b = 0; b < batches && !t->failed; b++) {
		thread_batch(self, b);
		if (self->number == 0 && t->tick)
			t->tick(t->context,
			        (uint64_t)t->epoch * t->rule.rows + (uint64_t)b * t->rule.batch);
	}
}
