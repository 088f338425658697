/* SPDX-License-Identifier: Apache-2.0 */
#include "glm/train/weights.h"

#include "glm/kernel/kernel.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define ACTIVATION ((double)(1 << GLM_ACTIVATION_BITS))
/* Added and subtracted, this constant rounds a double below 2^51 to an integer. */
#define ROUND 6755399441055744.0
#define FIXED_MAX 2251799813685247.0 /* 2^51 - 1 */

static const char *const update_names[] = {
	[GLM_UPDATE_ADAGRAD] = "adagrad", [GLM_UPDATE_SGD] = "sgd"
};

const char *update_name(enum glm_update update)
{
	return (unsigned)update < GLM_UPDATES_N ? update_names[update] : NULL;
}

bool update_find(const char *name, enum glm_update *update)
{
	for (unsigned i = 0; i < GLM_UPDATES_N; i++)
		if (!strcmp(name, update_names[i])) {
			*update = (enum glm_update)i;
			return true;
		}
	return false;
}

int64_t weights_fixed(double value)
{
	value *= ACTIVATION;
	/* NaN becomes the bound too: only a model that diverges has it, and the bound is counted.
	 */
	value = value < FIXED_MAX ? value : FIXED_MAX;
	value = value > -FIXED_MAX ? value : -FIXED_MAX;
	return (int64_t)(value + ROUND - ROUND);
}

/* A sum of a mini-batch is below 2^51: this is exact, and processors do two or four at once. */
static inline double sum_double(int64_t g)
{
	int64_t bits = g + 0x4338000000000000ll;
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value - ROUND;
}

/* Sets u from x, with the arithmetic of kernel_prepare; 1 if it is too large for a kernel. */
static inline uint32_t column_recode(const struct weights *w, uint32_t j)
{
	const float limit = (float)GLM_WEIGHT_MAX;
	float wide = w->x[j] * w->step[j] * (float)(1 << GLM_ACTIVATION_BITS);
	float bound = wide > -limit ? wide : -limit;

	bound = bound < limit ? bound : limit;
	w->u[j] = (int32_t)rintf(bound);
	return !(bound == wide);
}

static inline void column_step(const struct weights *w, double rate, double gradient, uint32_t j)
{
	double x = (double)w->x[j], by = rate * (double)w->pace[j] * gradient;

	if (w->h) {
		float h = (float)((double)w->h[j] + gradient * gradient);

		w->h[j] = h;
		by = h > 0 ? by / sqrt((double)h) : 0;
	}
	w->x[j] = (float)(x - by);
}

static inline void column_update(const struct weights *w, const struct weights_step *s, uint32_t j)
{
	double gradient = sum_double(w->g[j]) * s->quantum;

	w->g[j] = 0;
	if (w->step)
		gradient = (double)w->step[j] * gradient +
		           (double)w->low[j] * (sum_double(s->total) * s->quantum);
	column_step(w, s->rate, gradient, j);
}

uint32_t weights_update_one(const struct weights *w, const struct weights_step *s, uint32_t column)
{
	column_update(w, s, column);
	return w->u ? column_recode(w, column) : 0;
}

void weights_step_one(const struct weights *w, double rate, double gradient)
{
	column_step(w, rate, gradient, 0);
}

/* The commonest rule in a loop that compilers can do several columns of at once. */
static void sgd_float(const struct weights *w, const struct weights_step *s, uint32_t from,
                      uint32_t to)
{
	float *restrict x = w->x;
	int64_t *restrict g = w->g;
	const float *restrict pace = w->pace;
	double rate = s->rate, quantum = s->quantum;

	for (uint32_t j = from; j < to; j++) {
		double gradient = sum_double(g[j]) * quantum;

		g[j] = 0;
		x[j] = (float)((double)x[j] - rate * (double)pace[j] * gradient);
	}
}

void weights_update(const struct weights *w, const struct weights_step *s, uint32_t from,
                    uint32_t to)
{
	if (!w->step && !w->h) {
		sgd_float(w, s, from, to);
		return;
	}
	for (uint32_t j = from; j < to; j++)
		if (w->g[j] != 0 || (w->low && w->low[j] != 0))
			column_update(w, s, j);
}

void weights_shrink(const struct weights *w, double rates, double l1, double l2, uint32_t from,
                    uint32_t to)
{
	for (uint32_t j = from; j < to; j++) {
		double x = (double)w->x[j], by = rates * (double)w->pace[j], size, each;

		if (x == 0)
			continue;
		if (w->h)
			by = w->h[j] > 0 ? by / sqrt((double)w->h[j]) : 0;
		/* The objective has the user's weights, x / unit. */
		each = w->unit ? 1 / (double)w->unit[j] : 1;
		size = (x < 0 ? -x : x) - by * (l1 * each);
		size = size > 0 ? size / (1 + by * (l2 * each * each)) : 0;
		w->x[j] = (float)(x < 0 ? -size : size);
	}
}

int64_t weights_constant(const struct weights *w, uint32_t from, uint32_t to)
{
	int64_t sum = 0;

	if (w->low)
		for (uint32_t j = from; j < to; j++)
			sum += weights_fixed((double)w->low[j] * (double)w->x[j]);
	return sum;
}
