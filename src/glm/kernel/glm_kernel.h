/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The forward and backward loops of generalized linear models, for every layout of a shard.
 *
 * This room owns the arithmetic. It reads a matrix and weights, and adds to sums of the caller. It
 * must not allocate (except for an index), start threads, or know losses and workers.
 *
 * Every sum is a sum of integers, so it does not depend on the order: any split of columns or rows,
 * any number of threads and every processor give the same bits.
 *
 *   float:         activation[k] += round(a * (x[j] * 2^GLM_ACTIVATION_BITS)), an i32 each
 *                  g[j]          += round(a * (scale_f[k] * 2^GLM_GRADIENT_BITS)), an i32 each
 *   low precision: activation[k] += code * u[j]
 *                  g[j]          += code * scale_i[k]
 *
 * Products of floats are f32 and round to the nearest integer, ties to even. A product outside of
 * +-GLM_TERM_MAX is clamped to it and counted as a saturation. NaN counts too, and becomes
 * -GLM_TERM_MAX.
 */
#ifndef TRIB_GLM_KERNEL_H
#define TRIB_GLM_KERNEL_H

#include "glm/kernel/glm_matrix.h"
#include "glm/kernel/weave.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GLM_ACTIVATION_BITS 24    /* a term of an activation is a multiple of 2^-24 */
#define GLM_GRADIENT_BITS 20      /* float: a term of a gradient is a multiple of 2^-20 */
#define GLM_SCALE_BITS 16         /* low precision: a scale is a multiple of 2^-16 */
#define GLM_TERM_MAX 2147483520.f /* the largest f32 below 2^31 */
#define GLM_WEIGHT_MAX 0x7f7f7f00 /* of |u|: four signed bytes hold it, and so does an f32 */
#define GLM_SCALE_MAX 0x7f7f7f    /* of |scale_i|: larger ones give the right sum, but slowly */

struct glm_weights {
	float *x;      /* float: one a column of the shard */
	int32_t *u;    /* low precision: x * step * 2^GLM_ACTIVATION_BITS, see kernel_prepare */
	int8_t *limbs; /* GLM_WEAVED: kernel_limb_bytes() bytes, zeros at first */
};

/* Bytes of `limbs` for so many columns. */
size_t kernel_limb_bytes(uint32_t columns);

/* Low precision, once a mini-batch: u and limbs of the columns [from, to) from x. `step` has one
 * value a column of the shard. Returns how many u were clamped to GLM_WEIGHT_MAX. Threads may
 * prepare ranges of their own at the same time. */
uint64_t kernel_prepare(const struct glm_matrix *matrix, const float *step,
                        const struct glm_weights *weights, uint32_t from, uint32_t to);
/* The same for callers who have made u, with |u| <= GLM_WEIGHT_MAX. */
void kernel_prepare_limbs(const struct glm_matrix *matrix, const struct glm_weights *weights,
                          uint32_t from, uint32_t to);

/* activation[k] += the product of row rows[k] and the weights over the columns [from, to) of the
 * shard. Returns saturations. Weaved rows need prepared weights of that same range, or of ranges
 * that begin and end at multiples of GLM_GROUP. */
uint64_t kernel_forward(const struct glm_matrix *matrix, const struct glm_weights *weights,
                        const uint32_t *rows, uint32_t n, uint32_t from, uint32_t to,
                        int64_t *activation);
/* g[j] += the sum over k of the scale of rows[k] times its feature j, for j in [from, to).
 * `scale_f` is for float, `scale_i` for low precision; the other one may be NULL. Returns
 * saturations. */
uint64_t kernel_backward(const struct glm_matrix *matrix, const uint32_t *rows, uint32_t n,
                         const float *scale_f, const int32_t *scale_i, uint32_t from, uint32_t to,
                         int64_t *g);

/* The first column of part `part` of `parts`, for part = 0 to parts. Parts of weaved and dense rows
 * begin at multiples of GLM_GROUP, where no loop has to cut a group. */
uint32_t kernel_bound(const struct glm_matrix *matrix, uint32_t part, uint32_t parts);

/* Where the parts of kernel_bound begin in each sparse row. Without it, each call searches. */
struct glm_index {
	uint32_t parts;
	uint32_t *at; /* row r, part t: at[r * (parts + 1) + t] entries after start[r] */
};

/* Needs nothing for other layouts. False: no memory. */
bool kernel_index_build(struct glm_index *index, const struct glm_matrix *matrix, uint32_t parts);
void kernel_index_free(struct glm_index *index);
/* As kernel_forward and kernel_backward over part `part` of the index. */
uint64_t kernel_forward_part(const struct glm_matrix *matrix, const struct glm_weights *weights,
                             const uint32_t *rows, uint32_t n, const struct glm_index *index,
                             uint32_t part, int64_t *activation);
uint64_t kernel_backward_part(const struct glm_matrix *matrix, const uint32_t *rows, uint32_t n,
                              const float *scale_f, const int32_t *scale_i,
                              const struct glm_index *index, uint32_t part, int64_t *g);

/* The loops in use: "plain", "avx2", "avx512", "neon" or "neon-dot". */
const char *kernel_name(void);
/* For tests and measurements: other loops, by name. False: this processor or build lacks them. Call
 * it before other threads use the kernel, and prepare weights again. */
bool kernel_use(const char *name);

#endif
