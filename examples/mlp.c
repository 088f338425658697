/* SPDX-License-Identifier: Apache-2.0 */
/* mlp: a perceptron with one hidden layer, 784 - hidden - 10. */
#include "head.h"

#include <stdlib.h>

struct mlp {
	struct net net;
	struct head head;
};

static struct mlp *mlp_of(struct net *net)
{
	return (struct mlp *)net;
}

static void mlp_destroy(struct net *net)
{
	head_free(&mlp_of(net)->head);
	net_free(net);
	free(net);
}

static struct net *mlp_create(size_t hidden, size_t batch_max)
{
	struct mlp *mlp = calloc(1, sizeof(*mlp));

	if (!mlp)
		return NULL;
	if (net_init(&mlp->net, head_count(DIGITS_PIXELS, hidden)) == 0 &&
	    head_init(&mlp->head, DIGITS_PIXELS, hidden, batch_max) == 0)
		return &mlp->net;
	mlp_destroy(&mlp->net);
	return NULL;
}

static void mlp_randomize(struct net *net, uint64_t seed)
{
	head_randomize(&mlp_of(net)->head, net->weights, seed);
}

static struct score mlp_forward(struct net *net, const struct digits *set, const uint32_t *picks,
                                size_t count)
{
	struct head *head = &mlp_of(net)->head;

	for (size_t n = 0; n < count; n++)
		input_fill(head->input + n * DIGITS_PIXELS,
		           set->pixels + picks[n] * (size_t)DIGITS_PIXELS, DIGITS_PIXELS);
	return head_forward(head, net->weights, set, picks, count);
}

static size_t mlp_backward(struct net *net, size_t count, float scale, size_t part, size_t parts)
{
	return head_backward(&mlp_of(net)->head, net->weights, net->gradient, count, scale, part,
	                     parts);
}

const struct model model_mlp = {
	.name = "mlp",
	.hidden = 512,
	.rate = 0.3,
	.create = mlp_create,
	.destroy = mlp_destroy,
	.randomize = mlp_randomize,
	.forward = mlp_forward,
	.backward = mlp_backward,
};
