/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of weights.c and weights_loops.c only: the arithmetic of a column, and the loops over many
 * columns. weights_loops.c is compiled once for every processor, and again for newer ones. All give
 * the same bits.
 */
#ifndef TRIB_GLM_WEIGHTS_LOOPS_H
#define TRIB_GLM_WEIGHTS_LOOPS_H

#include "glm/kernel/glm_kernel.h"
#include "glm/train/weights.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

struct weights_loops {
	void (*update)(const struct weights *w, const struct weights_step *s, uint32_t from,
	               uint32_t to);
	void (*shrink)(const struct weights *w, double rates, double l1, double l2, uint32_t from,
	               uint32_t to);
	int64_t (*constant)(const struct weights *w, uint32_t from, uint32_t to);
};

extern const struct weights_loops weights_loops_plain;
#ifdef HAVE_WEIGHTS_AVX2
extern const struct weights_loops weights_loops_avx2, weights_loops_avx512;
#endif

#define ACTIVATION ((double)(1 << GLM_ACTIVATION_BITS))
/* Added and subtracted, this constant rounds a double below 2^51 to an integer. */
#define ROUND 6755399441055744.0
#define FIXED_MAX 2251799813685247.0 /* 2^51 - 1 */

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

/* A sum of a mini-batch is below 2^51: this is exact, and processors do two or four at once. */
static inline double sum_double(int64_t g)
{
	int64_t bits = g + ROUND_BITS;
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value - ROUND;
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

static inline float total_of(const struct weights_step *s)
{
	return (float)sum_double(s->total) * (float)s->quantum;
}

#endif
