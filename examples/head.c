/* SPDX-License-Identifier: Apache-2.0 */
#include "head.h"
#include "matrix.h"
#include "random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CLASSES = DIGITS_CLASSES };

/* Where the parts of an array of weights or gradients begin. */
struct offsets {
	size_t out_weights; /* CLASSES x hidden; the biases of the outputs come before */
	size_t bias;        /* hidden */
	size_t matrix;      /* inputs x hidden */
};

static struct offsets offsets_of(size_t hidden)
{
	struct offsets at = { .out_weights = CLASSES };

	at.bias = at.out_weights + CLASSES * hidden;
	at.matrix = at.bias + hidden;
	return at;
}

size_t head_count(size_t inputs, size_t hidden)
{
	return offsets_of(hidden).matrix + inputs * hidden;
}

int head_init(struct head *head, size_t inputs, size_t hidden, size_t batch_max)
{
	*head = (struct head){ .inputs = inputs, .hidden = hidden };
	head->input = calloc(batch_max, inputs * sizeof(float));
	head->active = calloc(batch_max, hidden * sizeof(float));
	head->active_gradient = calloc(batch_max, hidden * sizeof(float));
	head->out = calloc(batch_max, CLASSES * sizeof(float));
	return head->input && head->active && head->active_gradient && head->out ? 0 : -1;
}

void head_free(struct head *head)
{
	free(head->input);
	free(head->active);
	free(head->active_gradient);
	free(head->out);
	*head = (struct head){ 0 };
}

/* He initialization: this deviation preserves the variance through a ReLU layer. */
void head_randomize(const struct head *head, float *weights, uint64_t seed)
{
	struct offsets at = offsets_of(head->hidden);
	struct random r = random_of(seed, 0);
	float deviation = sqrtf(2.0f / (float)head->inputs);
	float out_deviation = sqrtf(1.0f / (float)head->hidden);

	for (size_t i = 0; i < head->inputs * head->hidden; i++)
		weights[at.matrix + i] = deviation * random_normal(&r);
	for (size_t i = 0; i < CLASSES * head->hidden; i++)
		weights[at.out_weights + i] = out_deviation * random_normal(&r);
}

void input_fill(float *input, const uint8_t *pixels, size_t count)
{
	for (size_t i = 0; i < count; i++)
		input[i] = (float)pixels[i] * (1 / 255.0f);
}

/*
 * Replaces the outputs by the gradient of the loss: probabilities minus the label's one-hot vector.
 */
static void softmax_score(float *out, unsigned label, struct score *score)
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

struct score head_forward(struct head *head, const float *weights, const struct digits *set,
                          const uint32_t *picks, size_t count)
{
	size_t hidden = head->hidden;
	struct offsets at = offsets_of(hidden);
	struct score score = { 0 };

	matrix_multiply(head->active, (struct matrix){ head->input, head->inputs, 1 },
	                (struct matrix){ weights + at.matrix, hidden, 1 }, count, hidden,
	                head->inputs);
	for (size_t n = 0; n < count; n++) {
		float *active = head->active + n * hidden, *out = head->out + n * CLASSES;

		for (size_t h = 0; h < hidden; h++) {
			float sum = active[h] + weights[at.bias + h];

			active[h] = sum > 0 ? sum : 0;
		}
		for (size_t i = 0; i < CLASSES; i++)
			out[i] = weights[i] +
			         vector_dot(active, weights + at.out_weights + i * hidden, hidden);
		softmax_score(out, set->labels[picks[n]], &score);
	}
	return score;
}

static void out_backward(struct head *head, const float *weights, float *gradient, size_t count,
                         float scale)
{
	size_t hidden = head->hidden;
	struct offsets at = offsets_of(hidden);
	float *bias = gradient + at.bias;

	memset(gradient, 0, CLASSES * sizeof(float));
	memset(bias, 0, hidden * sizeof(float));
	for (size_t i = 0; i < count * CLASSES; i++) {
		head->out[i] *= scale;
		gradient[i % CLASSES] += head->out[i];
	}
	matrix_multiply(gradient + at.out_weights, (struct matrix){ head->out, 1, CLASSES },
	                (struct matrix){ head->active, hidden, 1 }, CLASSES, hidden, count);
	matrix_multiply(head->active_gradient, (struct matrix){ head->out, CLASSES, 1 },
	                (struct matrix){ weights + at.out_weights, hidden, 1 }, count, hidden,
	                CLASSES);
	for (size_t n = 0; n < count; n++) {
		const float *active = head->active + n * hidden;
		float *from = head->active_gradient + n * hidden;

		for (size_t h = 0; h < hidden; h++) {
			from[h] = active[h] > 0 ? from[h] : 0;
			bias[h] += from[h];
		}
	}
}

size_t head_backward(struct head *head, const float *weights, float *gradient, size_t count,
                     float scale, size_t part, size_t parts)
{
	size_t matrix = offsets_of(head->hidden).matrix;
	size_t first = head->inputs * part / parts, end = head->inputs * (part + 1) / parts;

	if (part == 0)
		out_backward(head, weights, gradient, count, scale);
	matrix_multiply(gradient + matrix + first * head->hidden,
	                (struct matrix){ head->input + first, 1, head->inputs },
	                (struct matrix){ head->active_gradient, head->hidden, 1 }, end - first,
	                head->hidden, count);
	return matrix + end * head->hidden;
}

void head_backward_input(const struct head *head, const float *weights, float *in_gradient,
                         size_t count)
{
	const float *matrix = weights + offsets_of(head->hidden).matrix;

	matrix_multiply(in_gradient, (struct matrix){ head->active_gradient, head->hidden, 1 },
	                (struct matrix){ matrix, 1, head->hidden }, count, head->inputs,
	                head->hidden);
}
