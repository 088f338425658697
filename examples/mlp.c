/* SPDX-License-Identifier: Apache-2.0 */
#include "mlp.h"
#include "matrix.h"
#include "random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CLASSES = DIGITS_CLASSES, PIXELS = DIGITS_PIXELS };

/* Where the parts are in an array of weights or gradients. */
struct parts {
	float *out_bias;    /* CLASSES */
	float *out_weights; /* CLASSES x hidden */
	float *bias;        /* hidden */
	float *pixel;       /* PIXELS x hidden */
};

static struct parts parts_of(const struct mlp *net, float *array)
{
	struct parts p;

	p.out_bias = array;
	p.out_weights = p.out_bias + CLASSES;
	p.bias = p.out_weights + CLASSES * net->hidden;
	p.pixel = p.bias + net->hidden;
	return p;
}

int mlp_init(struct mlp *net, size_t hidden, size_t batch_max)
{
	*net = (struct mlp){ .hidden = hidden, .batch_max = batch_max };
	net->head = CLASSES + CLASSES * hidden + hidden;
	net->count = net->head + PIXELS * hidden;
	net->weights = calloc(net->count, sizeof(float));
	net->gradient = calloc(net->count, sizeof(float));
	net->velocity = calloc(net->count, sizeof(float));
	net->input = calloc(batch_max, PIXELS * sizeof(float));
	net->active = calloc(batch_max, hidden * sizeof(float));
	net->active_gradient = calloc(batch_max, hidden * sizeof(float));
	net->out = calloc(batch_max, CLASSES * sizeof(float));
	if (net->weights && net->gradient && net->velocity && net->input && net->active &&
	    net->active_gradient && net->out)
		return 0;
	mlp_free(net);
	return -1;
}

void mlp_free(struct mlp *net)
{
	free(net->weights);
	free(net->gradient);
	free(net->velocity);
	free(net->input);
	free(net->active);
	free(net->active_gradient);
	free(net->out);
	*net = (struct mlp){ 0 };
}

/* He's rule: the deviation keeps the size of what goes through a ReLU layer. */
void mlp_randomize(struct mlp *net, uint64_t seed)
{
	struct parts w = parts_of(net, net->weights);
	struct random r = random_of(seed, 0);
	float deviation = sqrtf(2.0f / PIXELS), out_deviation = sqrtf(1.0f / (float)net->hidden);

	for (size_t i = 0; i < PIXELS * net->hidden; i++)
		w.pixel[i] = deviation * random_normal(&r);
	for (size_t i = 0; i < CLASSES * net->hidden; i++)
		w.out_weights[i] = out_deviation * random_normal(&r);
}

static void input_fill(float *input, const uint8_t *pixels)
{
	for (size_t i = 0; i < PIXELS; i++)
		input[i] = (float)pixels[i] * (1 / 255.0f);
}

/* Turns outputs into the loss's gradient by the outputs: probabilities less the truth. */
static void softmax_score(float *out, unsigned label, struct mlp_score *score)
{
	float top = out[0], sum = 0;
	unsigned guess = 0;

	for (unsigned i = 1; i < CLASSES; i++)
		if (out[i] > top) {
			top = out[i];
			guess = i;
		}
	for (unsigned i = 0; i < CLASSES; i++)
		sum += expf(out[i] - top);
	score->loss += (double)(logf(sum) + top - out[label]);
	score->correct += guess == label;
	for (unsigned i = 0; i < CLASSES; i++)
		out[i] = expf(out[i] - top) / sum;
	out[label] -= 1;
}

struct mlp_score mlp_forward(struct mlp *net, const struct digits *set, const uint32_t *picks,
                             size_t count)
{
	struct parts w = parts_of(net, net->weights);
	struct mlp_score score = { 0 };
	size_t hidden = net->hidden;

	for (size_t n = 0; n < count; n++)
		input_fill(net->input + n * PIXELS, set->pixels + picks[n] * (size_t)PIXELS);
	matrix_multiply(net->active, (struct matrix){ net->input, PIXELS, 1 }, w.pixel, count,
	                hidden, PIXELS);
	for (size_t n = 0; n < count; n++) {
		float *active = net->active + n * hidden, *out = net->out + n * CLASSES;

		for (size_t h = 0; h < hidden; h++) {
			float sum = active[h] + w.bias[h];

			active[h] = sum > 0 ? sum : 0;
		}
		for (size_t i = 0; i < CLASSES; i++)
			out[i] = w.out_bias[i] +
			         vector_dot(active, w.out_weights + i * hidden, hidden);
		softmax_score(out, set->labels[picks[n]], &score);
	}
	return score;
}

void mlp_backward_head(struct mlp *net, size_t count, float scale)
{
	struct parts w = parts_of(net, net->weights), g = parts_of(net, net->gradient);
	size_t hidden = net->hidden;

	memset(g.out_bias, 0, CLASSES * sizeof(float));
	memset(g.bias, 0, hidden * sizeof(float));
	for (size_t i = 0; i < count * CLASSES; i++) {
		net->out[i] *= scale;
		g.out_bias[i % CLASSES] += net->out[i];
	}
	matrix_multiply(g.out_weights, (struct matrix){ net->out, 1, CLASSES }, net->active,
	                CLASSES, hidden, count);
	matrix_multiply(net->active_gradient, (struct matrix){ net->out, CLASSES, 1 },
	                w.out_weights, count, hidden, CLASSES);
	for (size_t n = 0; n < count; n++) {
		const float *active = net->active + n * hidden;
		float *gradient = net->active_gradient + n * hidden;

		for (size_t h = 0; h < hidden; h++) {
			gradient[h] = active[h] > 0 ? gradient[h] : 0;
			g.bias[h] += gradient[h];
		}
	}
}

void mlp_backward_pixels(struct mlp *net, size_t count, size_t first, size_t pixels)
{
	matrix_multiply(net->gradient + mlp_offset(net, first),
	                (struct matrix){ net->input + first, 1, PIXELS }, net->active_gradient,
	                pixels, net->hidden, count);
}
