/* SPDX-License-Identifier: Apache-2.0 */
#include "glm/train/weights.h"

#include "glm/kernel/glm_kernel.h"

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

/* The bits of ROUND: what rounding leaves in a double above them is the integer. */
#define ROUND_BITS 0x4338000000000000ll

/* NaN becomes a bound too: only a model that diverges has it, and the bound is counted. */
static inline int64_t fixed(double value)
{
	int64_t bits;

	value *= ACTIVATION;
	value = value < FIXED_MAX ? value : FIXED_MAX;
	value = value > -FIXED_MAX ? value : -FIXED_MAX;
	value += ROUND;
	memcpy(&bits, &value, sizeof(bits));
	return bits - ROUND_BITS;
}

int64_t weights_fixed(double value)
{
	return fixed(value);
}

/* A sum of a mini-batch is below 2^51: this is exact, and processors do two or four at once. */
static inline double sum_double(int64_t g)
{
	int64_t bits = g + ROUND_BITS;
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

/* No sum of squares is 0 below a root. A column without a gradient has no step in any case. */
#define LEAST 1e-37f

static inline float step_adagrad(float *h, float rate, float gradient)
{
	*h += gradient * gradient;
	return rate * gradient / sqrtf(*h + LEAST);
}

static inline float gradient_float(int64_t g, float quantum)
{
	return (float)sum_double(g) * quantum;
}

/* `total` is the sum of the scales: the part of a gradient that comes from the low value. */
static inline float gradient_codes(int64_t g, float quantum, float step, float low, float total)
{
	return (float)sum_double(g) * (step * quantum) + low * total;
}

static float total_of(const struct weights_step *s)
{
	return (float)sum_double(s->total) * (float)s->quantum;
}

void weights_step_one(const struct weights *w, double rate, double gradient)
{
	float by = (float)rate * w->pace[0];

	w->x[0] -= w->h ? step_adagrad(w->h, by, (float)gradient) : by * (float)gradient;
}

uint32_t weights_update_one(const struct weights *w, const struct weights_step *s, uint32_t j)
{
	float rate = (float)s->rate * w->pace[j], gradient;

	if (w->step)
		gradient = gradient_codes(w->g[j], (float)s->quantum, w->step[j], w->low[j],
		                          total_of(s));
	else
		gradient = gradient_float(w->g[j], (float)s->quantum);
	w->g[j] = 0;
	w->x[j] -= w->h ? step_adagrad(&w->h[j], rate, gradient) : rate * gradient;
	return w->step ? column_recode(w, j) : 0;
}

/* ---- many columns: loops without branches, which compilers do several columns of at once ---- */

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

void weights_update(const struct weights *w, const struct weights_step *s, uint32_t from,
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

void weights_shrink(const struct weights *w, double rates, double l1, double l2, uint32_t from,
                    uint32_t to)
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

int64_t weights_constant(const struct weights *w, uint32_t from, uint32_t to)
{
	int64_t sum = 0;

	if (w->low)
		for (uint32_t j = from; j < to; j++)
			sum += fixed((double)w->low[j] * (double)w->x[j]);
	return sum;
}
