/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A perceptron with one hidden layer, 784 - hidden - 10, with ReLU and
 * softmax. It owns weights and gradients and knows nothing of other workers:
 * whoever calls it combines the gradients.
 */
#ifndef EXAMPLES_MLP_H
#define EXAMPLES_MLP_H

#include "digits.h"

/*
 * All weights lie in one array, and all gradients in another of the same
 * order: first the head (all but the first layer's matrix), then that matrix,
 * hidden weights for each pixel. Backward finishes them in this order, so any
 * leading part can travel while the rest is still computed.
 */
struct mlp {
	size_t hidden, batch_max;
	size_t head, count; /* elements of the head, of all */
	float *weights, *gradient, *velocity;
	float *input, *active, *active_gradient, *out; /* one row for each sample */
};

struct mlp_score {
	double loss; /* summed over the samples */
	size_t correct;
};

/* Returns 0, or -1 where memory is short. All weights are 0 then. */
int mlp_init(struct mlp *net, size_t hidden, size_t batch_max);
void mlp_free(struct mlp *net);
void mlp_randomize(struct mlp *net, uint64_t seed);

/* Runs samples set[picks[0..count-1]]; count is at most batch_max. */
struct mlp_score mlp_forward(struct mlp *net, const struct digits *set, const uint32_t *picks,
                             size_t count);

/*
 * The gradient of `scale` times the summed loss of the samples that
 * mlp_forward saw last: first the head, then any ranges of pixels.
 */
void mlp_backward_head(struct mlp *net, size_t count, float scale);
void mlp_backward_pixels(struct mlp *net, size_t count, size_t first, size_t pixels);

/* Where the gradients of a pixel begin; `DIGITS_PIXELS` gives the end. */
static inline size_t mlp_offset(const struct mlp *net, size_t pixel)
{
	return net->head + pixel * net->hidden;
}

#endif
