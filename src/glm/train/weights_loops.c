/* SPDX-License-Identifier: Apache-2.0 */
/* Loops without branches, which compilers do several columns of at once. */
#include "glm/train/weights_loops.h"

#ifndef WEIGHTS_LOOPS
#define WEIGHTS_LOOPS weights_loops_plain
#endif

static void update_float(const struct weights *w, const struct weights_step *s, uint32_t from,
                         uint32_t to)
{
	float *restrict x = w->x, *restrict h = w->h;
	int64_t *restrict g = w->g;
	const float *restrict pace = w->pace;
	const float rate = (float)s->rate, quantum = (float)s->quantum;

	if (h)
		for (uint32_t j = from; j < to; j++) {
			x[j] -= step_adagrad(&h[j], rate * pace[j], gradient_float(g[j], quantum));
			g[j] = 0;
		}
	else
		for (uint32_t j = from; j < to; j++) {
			x[j] -= rate * pace[j] * gradient_float(g[j], quantum);
			g[j] = 0;
		}
}

static void update_codes(const struct weights *w, const struct weights_step *s, uint32_t from,
                         uint32_t to)
{
	float *restrict x = w->x, *restrict h = w->h;
	int64_t *restrict g = w->g;
	const float *restrict pace = w->pace, *restrict step = w->step, *restrict low = w->low;
	const float rate = (float)s->rate, quantum = (float)s->quantum, total = total_of(s);

	if (h)
		for (uint32_t j = from; j < to; j++) {
			x[j] -= step_adagrad(&h[j], rate * pace[j],
			                     gradient_codes(g[j], quantum, step[j], low[j], total));
			g[j] = 0;
		}
	else
		for (uint32_t j = from; j < to; j++) {
			x[j] -= rate * pace[j] *
			        gradient_codes(g[j], quantum, step[j], low[j], total);
			g[j] = 0;
		}
}

static void columns_update(const struct weights *w, const struct weights_step *s, uint32_t from,
                           uint32_t to)
{
	if (w->step)
		update_codes(w, s, from, to);
	else
		update_float(w, s, from, to);
}

/* Soft threshold, then division. `by` is the rate of the column. */
static inline float shrink(float x, float by, float l1, float l2)
{
	float size = fabsf(x) - by * l1, less = size / (1 + by * l2);

	return copysignf(size > 0 ? less : 0, x);
}

static void columns_shrink(const struct weights *w, double rates, double l1, double l2,
                           uint32_t from, uint32_t to)
{
	float *restrict x = w->x;
	const float *restrict h = w->h, *restrict pace = w->pace, *restrict each = w->inverse;
	const float rate = (float)rates, one = (float)l1, two = (float)l2;

	/* A column without gradients has h == 0 and x == 0: its rate is large, and x stays 0. */
	if (h)
		for (uint32_t j = from; j < to; j++)
			x[j] = shrink(x[j], rate * pace[j] / sqrtf(h[j] + LEAST), one * each[j],
			              two * each[j] * each[j]);
	else
		for (uint32_t j = from; j < to; j++)
			x[j] = shrink(x[j], rate * pace[j], one * each[j], two * each[j] * each[j]);
}

static int64_t columns_constant(const struct weights *w, uint32_t from, uint32_t to)
{
	int64_t sum = 0;

	for (uint32_t j = from; j < to; j++)
		sum += fixed((double)w->low[j] * (double)w->x[j]);
	return sum;
}

const struct weights_loops WEIGHTS_LOOPS = { columns_update, columns_shrink, columns_constant };
