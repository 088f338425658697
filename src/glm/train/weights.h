/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weights: the weights of one class over the columns of a shard, and how a mini-batch changes them.
 * Every column is changed by itself and from integers, so the result depends on no order. Pure.
 *
 * The objective is mean loss + l2 / 2 * sum(x^2) + l1 * sum(|x|). A gradient is applied at once; l1
 * and l2 are applied after every few mini-batches (weights_shrink), with the sum of the rates
 * since.
 */
#ifndef TRIB_GLM_TRAIN_WEIGHTS_H
#define TRIB_GLM_TRAIN_WEIGHTS_H

#include <stdbool.h>
#include <stdint.h>

enum glm_update { GLM_UPDATE_ADAGRAD, GLM_UPDATE_SGD, GLM_UPDATES_N };

const char *update_name(enum glm_update update);
bool update_find(const char *name, enum glm_update *update);

struct weights {
	float *x;
	int32_t *u;       /* low precision: x * step in the kernels' fixed point; NULL: float */
	float *h;         /* adagrad: sums of squared gradients; NULL: sgd */
	int64_t *g;       /* the sums of a mini-batch; 0 between mini-batches */
	const float *low; /* low precision: value = low + code * step; NULL: float */
	const float *step;
	const float *pace; /* a factor of the rate for each column; 0: the column has no values */
	/* 1 / unit. Values of a column were divided by its unit, a power of two, and x belongs to
	 * the quotients. So x / unit is the user's weight, which l1 and l2 are for. */
	const float *inverse;
};

/* One mini-batch. */
struct weights_step {
	double rate;
	double quantum; /* gradient = quantum * g; low precision: step * quantum * g + low * quantum
	                 * total */
	int64_t total;  /* low precision: the sum of the scales of the mini-batch */
};

/* A double as an integer of the kernels: times 2^24, to the nearest, and within +-2^51. */
int64_t weights_fixed(double value);

/* Changes a column and its u, and zeroes its g. Returns 1 if u was too large, else 0. */
uint32_t weights_update_one(const struct weights *w, const struct weights_step *s, uint32_t column);
/* The same for those of `n` columns whose g is not 0. Returns how many u were too large. */
uint32_t weights_update_some(const struct weights *w, const struct weights_step *s,
                             const uint32_t *columns, uint32_t n);
/*
 * The same for columns [from, to), but for u: kernel_prepare sets it faster. A column with g == 0
 * and low == 0 does not change.
 */
void weights_update(const struct weights *w, const struct weights_step *s, uint32_t from,
                    uint32_t to);

/* Changes the first column by a gradient that is known: for the bias. */
void weights_step_one(const struct weights *w, double rate, double gradient);

/* `rates` is the sum of the rates since the last call. Does not set u. */
void weights_shrink(const struct weights *w, double rates, double l1, double l2, uint32_t from,
                    uint32_t to);

/* Low precision: the part of an activation that is the same for all rows, sum(low * x). */
int64_t weights_constant(const struct weights *w, uint32_t from, uint32_t to);

#endif
