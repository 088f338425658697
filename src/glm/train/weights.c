/* SPDX-License-Identifier: Apache-2.0 */
#include "glm/train/weights_loops.h"

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
	return fixed(value);
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

uint32_t weights_update_some(const struct weights *w, const struct weights_step *s,
                             const uint32_t *columns, uint32_t n)
{
	const float rate = (float)s->rate, quantum = (float)s->quantum;
	uint32_t clamped = 0;

	if (w->step || !w->h) {
		for (uint32_t i = 0; i < n; i++)
			if (w->g[columns[i]])
				clamped += weights_update_one(w, s, columns[i]);
		return clamped;
	}
	/* The most frequent kind. A column with g == 0 does not change: no branch is needed. */
	for (uint32_t i = 0; i < n; i++) {
		uint32_t j = columns[i];

		w->x[j] -=
			step_adagrad(&w->h[j], rate * w->pace[j], gradient_float(w->g[j], quantum));
		w->g[j] = 0;
	}
	return 0;
}

/* ---- many columns ---- */

static const struct weights_loops *loops(void)
{
#ifdef HAVE_WEIGHTS_AVX2
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
	    __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw"))
		return &weights_loops_avx512;
	if (__builtin_cpu_supports("avx2"))
		return &weights_loops_avx2;
#endif
	return &weights_loops_plain;
}

void weights_update(const struct weights *w, const struct weights_step *s, uint32_t from,
                    uint32_t to)
{
	loops()->update(w, s, from, to);
}

void weights_shrink(const struct weights *w, double rates, double l1, double l2, uint32_t from,
                    uint32_t to)
{
	loops()->shrink(w, rates, l1, l2, from, to);
}

int64_t weights_constant(const struct weights *w, uint32_t from, uint32_t to)
{
	return w->low ? loops()->constant(w, from, to) : 0;
}
