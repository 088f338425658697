/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a gradient changes a row. Plain float arithmetic in a fixed order, without contraction, and
 * no function of libm but sqrtf, which is rounded correctly. So a row has the same bits on every
 * machine. The bits of a NaN are an exception: processors differ in them.
 *
 * With w: value, g: gradient, all of them float:
 *   sgd       w -= rate * g
 *   momentum  v = momentum * v + g; w -= rate * v
 *   adagrad   a += g * g; w -= rate * g / (sqrt(a) + epsilon)
 *   adam      m = beta1 * m + (1 - beta1) * g; v = beta2 * v + (1 - beta2) * (g * g);
 *             w -= rate * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon)
 *
 * Adam's t counts the gradients of this row. The row keeps beta1^t and beta2^t as products, behind
 * its m and v: a power would need libm.
 */
#ifndef TRIB_SPARSE_STORE_OPTIMIZER_H
#define TRIB_SPARSE_STORE_OPTIMIZER_H

#include "sparse/store/table_options.h"

/* Floats of state that a row has beside its values. */
uint32_t optimizer_state_floats(const struct sparse_table_options *options);

/* The state of a row that got no gradient yet. */
void optimizer_state_begin(const struct sparse_table_options *options, float *state);

void optimizer_apply(const struct sparse_table_options *options, float *values, float *state,
                     const float *gradient);

/* The values of a row that got no gradient yet: they follow from seed, key and column. */
void optimizer_values_begin(const struct sparse_table_options *options, uint64_t key,
                            float *values);

#endif
