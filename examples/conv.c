/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv: a small convolution network. 8 filters of 5 x 5 make 14 x 14 pixels of the 28 x 28, 16
 * filters of 3 x 3 make 7 x 7 of those, and two dense layers follow: 784 - hidden - 10.
 */
#include "convolution.h"
#include "head.h"

#include <stdlib.h>

static const struct convolution_shape shapes[2] = {
	{ .side = DIGITS_SIDE, .channels = 1, .kernel = 5, .stride = 2, .filters = 8 },
	{ .side = DIGITS_SIDE / 2, .channels = 8, .kernel = 3, .stride = 2, .filters = 16 },
};

enum {
	MIDDLE = (DIGITS_SIDE / 2) * (DIGITS_SIDE / 2) * 8, /* elements between the convolutions */
	FEATURES = (DIGITS_SIDE / 4) * (DIGITS_SIDE / 4) * 16,
};

/*
 * The backward pass begins at the head. So the head's weights come first, then those of the second
 * convolution, then those of the first.
 */
struct conv {
	struct net net;
	struct head head; /* its input is the output of the second convolution */
	struct convolution first, second;
	size_t second_at, first_at;             /* where their weights begin */
	float *picture, *middle;                /* what goes into each convolution */
	float *middle_gradient, *head_gradient; /* of what comes out of each */
};

static struct conv *conv_of(struct net *net)
{
	return (struct conv *)net;
}

static void conv_destroy(struct net *net)
{
	struct conv *conv = conv_of(net);

	head_free(&conv->head);
	convolution_free(&conv->first);
	convolution_free(&conv->second);
	free(conv->picture);
	free(conv->middle);
	free(conv->middle_gradient);
	free(conv->head_gradient);
	net_free(net);
	free(net);
}

static int conv_init(struct conv *conv, size_t hidden, size_t batch_max)
{
	conv->second_at = head_count(FEATURES, hidden);
	conv->first_at = conv->second_at + convolution_count(shapes[1]);
	conv->picture = calloc(batch_max, DIGITS_PIXELS * sizeof(float));
	conv->middle = calloc(batch_max, MIDDLE * sizeof(float));
	conv->middle_gradient = calloc(batch_max, MIDDLE * sizeof(float));
	conv->head_gradient = calloc(batch_max, FEATURES * sizeof(float));
	if (!conv->picture || !conv->middle || !conv->middle_gradient || !conv->head_gradient ||
	    net_init(&conv->net, conv->first_at + convolution_count(shapes[0])) != 0 ||
	    head_init(&conv->head, FEATURES, hidden, batch_max) != 0 ||
	    convolution_init(&conv->first, shapes[0], batch_max) != 0 ||
	    convolution_init(&conv->second, shapes[1], batch_max) != 0)
		return -1;
	return 0;
}

static struct net *conv_create(size_t hidden, size_t batch_max)
{
	struct conv *conv = calloc(1, sizeof(*conv));

	if (!conv)
		return NULL;
	if (conv_init(conv, hidden, batch_max) == 0)
		return &conv->net;
	conv_destroy(&conv->net);
	return NULL;
}

static void conv_randomize(struct net *net, uint64_t seed)
{
	struct conv *conv = conv_of(net);
	/* The order of samples has the streams from 0 on. */
	uint64_t stream = UINT64_MAX;

	head_randomize(&conv->head, net->weights, seed);
	convolution_randomize(&conv->first, net->weights + conv->first_at, seed, stream);
	convolution_randomize(&conv->second, net->weights + conv->second_at, seed, stream - 1);
}

static struct score conv_forward(struct net *net, const struct digits *set, const uint32_t *picks,
                                 size_t count)
{
	struct conv *conv = conv_of(net);

	for (size_t n = 0; n < count; n++)
		input_fill(conv->picture + n * DIGITS_PIXELS,
		           set->pixels + picks[n] * (size_t)DIGITS_PIXELS, DIGITS_PIXELS);
	convolution_forward(&conv->first, net->weights + conv->first_at, conv->picture,
	                    conv->middle, count);
	convolution_forward(&conv->second, net->weights + conv->second_at, conv->middle,
	                    conv->head.input, count);
	return head_forward(&conv->head, net->weights, set, picks, count);
}

static size_t conv_backward(struct net *net, size_t count, float scale, size_t part, size_t parts)
{
	struct conv *conv = conv_of(net);
	size_t end =
		head_backward(&conv->head, net->weights, net->gradient, count, scale, part, parts);

	if (part + 1 < parts)
		return end;
	head_backward_input(&conv->head, net->weights, conv->head_gradient, count);
	relu_backward(conv->head_gradient, conv->head.input, count * FEATURES);
	convolution_backward(&conv->second, conv->head_gradient, net->gradient + conv->second_at,
	                     count);
	convolution_backward_input(&conv->second, net->weights + conv->second_at,
	                           conv->head_gradient, conv->middle_gradient, count);
	relu_backward(conv->middle_gradient, conv->middle, count * MIDDLE);
	convolution_backward(&conv->first, conv->middle_gradient, net->gradient + conv->first_at,
	                     count);
	return net->count;
}

const struct model model_conv = {
	.name = "conv",
	.hidden = 128,
	.rate = 0.1,
	.create = conv_create,
	.destroy = conv_destroy,
	.randomize = conv_randomize,
	.forward = conv_forward,
	.backward = conv_backward,
};
