/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model: a kind of network, as a table of functions. `train` knows only this table. A network owns
 * its weights and its gradient. It knows nothing of other workers: the caller combines gradients.
 */
#ifndef EXAMPLES_MODEL_H
#define EXAMPLES_MODEL_H

#include "digits.h"

/* All weights are in one array, all gradients in another, in the same order. */
struct net {
	size_t count;
	float *weights, *gradient;
};

struct score {
	double loss; /* summed over the samples */
	size_t correct;
};

struct model {
	const char *name;
	size_t hidden; /* default width of the hidden layer */
	double rate;   /* default learning rate */

	/* All weights are 0. At most `batch_max` samples run at a time. NULL if memory is short. */
	struct net *(*create)(size_t hidden, size_t batch_max);
	void (*destroy)(struct net *net);
	void (*randomize)(struct net *net, uint64_t seed);

	/* Runs the samples set[picks[0..count-1]]. */
	struct score (*forward)(struct net *net, const struct digits *set, const uint32_t *picks,
	                        size_t count);
	/*
	 * Computes the gradient of `scale` times the summed loss of the last `forward`, in `parts`
	 * parts of about equal size, from the front of the array to its end. Call it for each part
	 * in turn. Returns the index behind the part's last element. So the caller can send a part
	 * while the next one is computed.
	 */
	size_t (*backward)(struct net *net, size_t count, float scale, size_t part, size_t parts);
};

extern const struct model model_mlp, model_conv;

/* NULL: no model has this name. */
const struct model *model_find(const char *name);

/* For `create` and `destroy` of a model. net_init returns 0, or -1 if memory is short. */
int net_init(struct net *net, size_t count);
void net_free(struct net *net);

#endif
