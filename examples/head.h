/* SPDX-License-Identifier: Apache-2.0 */
/*
 * head: the last two layers of a network, inputs - hidden - 10, with ReLU and softmax. The caller
 * owns weights and gradients, and fills `input`.
 */
#ifndef EXAMPLES_HEAD_H
#define EXAMPLES_HEAD_H

#include "model.h"

/*
 * Weights come in this order: the layer of outputs, the biases of the hidden layer, then the matrix
 * of the hidden layer, `hidden` weights for each input. The backward pass finishes gradients in
 * this order.
 */
struct head {
	size_t inputs, hidden;
	float *input, *active, *active_gradient, *out; /* one row for each sample */
};

/* Returns 0, or -1 if memory is short. head_free is right in both cases. */
int head_init(struct head *head, size_t inputs, size_t hidden, size_t batch_max);
void head_free(struct head *head);

size_t head_count(size_t inputs, size_t hidden); /* number of weights */
void head_randomize(const struct head *head, float *weights, uint64_t seed);

/* Fills a row of `input`, or any other array, with pixels as numbers from 0 to 1. */
void input_fill(float *input, const uint8_t *pixels, size_t count);

struct score head_forward(struct head *head, const float *weights, const struct digits *set,
                          const uint32_t *picks, size_t count);

/* As `backward` of a model. The first part contains all but the matrix of the hidden layer. */
size_t head_backward(struct head *head, const float *weights, float *gradient, size_t count,
                     float scale, size_t part, size_t parts);
/* Computes the gradient of `input`, in the same layout. Call it after the first part. */
void head_backward_input(const struct head *head, const float *weights, float *in_gradient,
                         size_t count);

#endif
