/* SPDX-License-Identifier: Apache-2.0 */
#include "convolution.h"
#include "matrix.h"
#include "random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static size_t patch_size(struct convolution_shape shape)
{
	return shape.kernel * shape.kernel * shape.channels;
}

size_t convolution_count(struct convolution_shape shape)
{
	return (patch_size(shape) + 1) * shape.filters;
}

int convolution_init(struct convolution *layer, struct convolution_shape shape, size_t batch_max)
{
	size_t out = (shape.side + shape.stride - 1) / shape.stride;
	size_t padded = (out - 1) * shape.stride + shape.kernel, patch = patch_size(shape);

	*layer = (struct convolution){
		.shape = shape,
		.border = (padded - shape.side) / 2,
		.padded = padded,
		.out_side = out,
		.pixels = out * out,
		.patch = patch,
		.patches = calloc(batch_max, out * out * patch * sizeof(float)),
		.input = calloc(padded * padded, shape.channels * sizeof(float)),
		.input_gradient = calloc(padded * padded, shape.channels * sizeof(float)),
		.patch_gradients = calloc(out * out, patch * sizeof(float)),
	};
	return layer->patches && layer->input && layer->input_gradient && layer->patch_gradients
	               ? 0
	               : -1;
}

void convolution_free(struct convolution *layer)
{
	free(layer->patches);
	free(layer->input);
	free(layer->input_gradient);
	free(layer->patch_gradients);
	*layer = (struct convolution){ 0 };
}

/* He initialization, as in head_randomize. */
void convolution_randomize(const struct convolution *layer, float *weights, uint64_t seed,
                           uint64_t stream)
{
	struct random r = random_of(seed, stream);
	float deviation = sqrtf(2.0f / (float)layer->patch);

	for (size_t i = 0; i < layer->patch * layer->shape.filters; i++)
		weights[i] = deviation * random_normal(&r);
}

/* A row of a picture, without the border, in a picture with one. */
static float *row_of(const struct convolution *layer, float *padded, size_t y)
{
	return padded +
	       ((y + layer->border) * layer->padded + layer->border) * layer->shape.channels;
}

/* The place of row `ky` of the patch that belongs to pixel `i` of the output. */
static float *run_of(const struct convolution *layer, float *padded, size_t i, size_t ky)
{
	const struct convolution_shape *s = &layer->shape;
	size_t y = i / layer->out_side * s->stride + ky, x = i % layer->out_side * s->stride;

	return padded + (y * layer->padded + x) * s->channels;
}

static void patches_fill(const struct convolution *layer, const float *in, float *patches)
{
	size_t row = layer->shape.side * layer->shape.channels;
	size_t run = layer->shape.kernel * layer->shape.channels;

	for (size_t y = 0; y < layer->shape.side; y++)
		memcpy(row_of(layer, layer->input, y), in + y * row, row * sizeof(float));
	for (size_t i = 0; i < layer->pixels; i++)
		for (size_t ky = 0; ky < layer->shape.kernel; ky++, patches += run)
			memcpy(patches, run_of(layer, layer->input, i, ky), run * sizeof(float));
}

void convolution_forward(struct convolution *layer, const float *weights, const float *in,
                         float *out, size_t count)
{
	size_t filters = layer->shape.filters;
	size_t in_size = layer->shape.side * layer->shape.side * layer->shape.channels;
	const float *bias = weights + layer->patch * filters;

	for (size_t n = 0; n < count; n++) {
		float *patches = layer->patches + n * layer->pixels * layer->patch;
		float *to = out + n * layer->pixels * filters;

		patches_fill(layer, in + n * in_size, patches);
		matrix_multiply(to, (struct matrix){ patches, layer->patch, 1 },
		                (struct matrix){ weights, filters, 1 }, layer->pixels, filters,
		                layer->patch);
		for (size_t i = 0; i < layer->pixels; i++, to += filters)
			for (size_t f = 0; f < filters; f++) {
				float sum = to[f] + bias[f];

				to[f] = sum > 0 ? sum : 0;
			}
	}
}

void relu_backward(float *gradient, const float *out, size_t count)
{
	for (size_t i = 0; i < count; i++)
		gradient[i] = out[i] > 0 ? gradient[i] : 0;
}

void convolution_backward(const struct convolution *layer, const float *out_gradient,
                          float *gradient, size_t count)
{
	size_t filters = layer->shape.filters, rows = count * layer->pixels;
	float *bias = gradient + layer->patch * filters;

	matrix_multiply(gradient, (struct matrix){ layer->patches, 1, layer->patch },
	                (struct matrix){ out_gradient, filters, 1 }, layer->patch, filters, rows);
	memset(bias, 0, filters * sizeof(float));
	for (size_t i = 0; i < rows; i++)
		for (size_t f = 0; f < filters; f++)
			bias[f] += out_gradient[i * filters + f];
}

/* Adds the gradients of patches where the patches overlap, and removes the border. */
static void patches_add(const struct convolution *layer, float *in_gradient)
{
	const struct convolution_shape *s = &layer->shape;
	size_t row = s->side * s->channels, run = s->kernel * s->channels;
	const float *from = layer->patch_gradients;

	memset(layer->input_gradient, 0,
	       layer->padded * layer->padded * s->channels * sizeof(float));
	for (size_t i = 0; i < layer->pixels; i++)
		for (size_t ky = 0; ky < s->kernel; ky++, from += run) {
			float *to = run_of(layer, layer->input_gradient, i, ky);

			for (size_t k = 0; k < run; k++)
				to[k] += from[k];
		}
	for (size_t y = 0; y < s->side; y++)
		memcpy(in_gradient + y * row, row_of(layer, layer->input_gradient, y),
		       row * sizeof(float));
}

void convolution_backward_input(struct convolution *layer, const float *weights,
                                const float *out_gradient, float *in_gradient, size_t count)
{
	const struct convolution_shape *s = &layer->shape;

	for (size_t n = 0; n < count; n++) {
		const float *from = out_gradient + n * layer->pixels * s->filters;

		matrix_multiply(layer->patch_gradients, (struct matrix){ from, s->filters, 1 },
		                (struct matrix){ weights, 1, s->filters }, layer->pixels,
		                layer->patch, s->filters);
		patches_add(layer, in_gradient + n * s->side * s->side * s->channels);
	}
}
