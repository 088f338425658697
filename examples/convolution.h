/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convolution: a layer of square filters with ReLU. Pictures are stored row by row, and the
 * channels of a pixel lie side by side. Each picture has a border of zeros. So every patch below a
 * filter is a few runs of memory, and the layer is a product of the patches with the filters.
 */
#ifndef EXAMPLES_CONVOLUTION_H
#define EXAMPLES_CONVOLUTION_H

#include <stddef.h>
#include <stdint.h>

struct convolution_shape {
	size_t side, channels;          /* of the input, without its border */
	size_t kernel, stride, filters; /* kernel is not below stride */
};

struct convolution {
	struct convolution_shape shape;
	size_t border,
		padded; /* the border at the top and at the left; the side with both borders */
	size_t out_side, pixels; /* of the output: side / stride, rounded up, and its square */
	size_t patch;            /* elements of a patch */
	float *patches;          /* of all samples, one row for each pixel of the output */
	/* Of one sample: the input with its border, its gradient, and the gradient of its patches.
	 */
	float *input, *input_gradient, *patch_gradients;
};

/* Returns 0, or -1 if memory is short. convolution_free is right in both cases. */
int convolution_init(struct convolution *layer, struct convolution_shape shape, size_t batch_max);
void convolution_free(struct convolution *layer);

/* Number of weights: the filters, patch x filters, then a bias for each filter. */
size_t convolution_count(struct convolution_shape shape);
void convolution_randomize(const struct convolution *layer, float *weights, uint64_t seed,
                           uint64_t stream);

/* `in` and `out` have one picture for each sample, without borders. */
void convolution_forward(struct convolution *layer, const float *weights, const float *in,
                         float *out, size_t count);

/* Sets the gradient to 0 where ReLU was. */
void relu_backward(float *gradient, const float *out, size_t count);
/* Computes the gradient of the weights from the gradient of the output. */
void convolution_backward(const struct convolution *layer, const float *out_gradient,
                          float *gradient, size_t count);
/* The same for the input. */
void convolution_backward_input(struct convolution *layer, const float *weights,
                                const float *out_gradient, float *in_gradient, size_t count);

#endif
