/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The networks of the training example. Their loss and their gradient are compared with a plain
 * implementation in double, whose gradient comes from finite differences. TRIB_SEED: the seed.
 */
#include "model.h"
#include "random.h"
#include "short.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SIDE = DIGITS_SIDE, CLASSES = DIGITS_CLASSES, HIDDEN = 12, SAMPLES = 3 };

/* Small, so that the sign of what goes into a ReLU hardly ever changes between two losses. */
static const double step = 1e-8, scale = 0.5;
static uint64_t seed = 3;

/* Where the kinds of weights begin. The last two kinds are those of convolutions. */
enum {
	OUT_BIAS = 0,
	OUT_WEIGHTS = OUT_BIAS + CLASSES,
	BIAS = OUT_WEIGHTS + CLASSES * HIDDEN,
	MATRIX = BIAS + HIDDEN,
	SECOND = MATRIX + DIGITS_PIXELS * HIDDEN,
	SECOND_BIAS = SECOND + 3 * 3 * 8 * 16,
	FIRST = SECOND_BIAS + 16,
	FIRST_BIAS = FIRST + 5 * 5 * 8,
	END = FIRST_BIAS + 8,
};

static const size_t begins[] = { OUT_BIAS,    OUT_WEIGHTS, BIAS,       MATRIX, SECOND,
	                         SECOND_BIAS, FIRST,       FIRST_BIAS, END };

/* A network in double. */
struct reference {
	const struct model *model;
	size_t count;
	double *weights;
};

/*
 * A convolution with ReLU, pixel by pixel. The kernel of 5 begins one pixel above and to the left,
 * the kernel of 3 at the pixel itself. Pixels outside count as 0.
 */
static void convolve(double *out, const double *in, const double *weights, int side, int channels,
                     int kernel, int filters)
{
	int border = kernel == 5 ? 1 : 0, patch = kernel * kernel * channels;
	const double *bias = weights + patch * filters;

	for (int y = 0; y < side / 2; y++)
		for (int x = 0; x < side / 2; x++)
			for (int f = 0; f < filters; f++) {
				double sum = bias[f];

				for (int k = 0; k < patch; k++) {
					int row = 2 * y + k / channels / kernel - border;
					int column = 2 * x + k / channels % kernel - border;

					if (row >= 0 && row < side && column >= 0 && column < side)
						sum += weights[k * filters + f] *
						       in[(row * side + column) * channels +
						          k % channels];
				}
				*out++ = sum > 0 ? sum : 0;
			}
}

/* The loss of one picture behind the layers 784 - HIDDEN - 10. */
static double head_loss(const double *weights, const double *in, unsigned label)
{
	double active[HIDDEN], out[CLASSES], sum = 0;

	for (int h = 0; h < HIDDEN; h++) {
		active[h] = weights[BIAS + h];
		for (int i = 0; i < DIGITS_PIXELS; i++)
			active[h] += in[i] * weights[MATRIX + i * HIDDEN + h];
		active[h] = active[h] > 0 ? active[h] : 0;
	}
	for (int c = 0; c < CLASSES; c++) {
		out[c] = weights[OUT_BIAS + c];
		for (int h = 0; h < HIDDEN; h++)
			out[c] += active[h] * weights[OUT_WEIGHTS + c * HIDDEN + h];
		sum += exp(out[c]);
	}
	return log(sum) - out[label];
}

static double reference_loss(const struct reference *r, const struct digits *set)
{
	double loss = 0;

	for (size_t n = 0; n < set->count; n++) {
		double in[DIGITS_PIXELS], middle[14 * 14 * 8];

		for (int i = 0; i < DIGITS_PIXELS; i++)
			in[i] = set->pixels[n * DIGITS_PIXELS + (size_t)i] / 255.0;
		if (r->model == &model_conv) {
			convolve(middle, in, r->weights + FIRST, SIDE, 1, 5, 8);
			convolve(in, middle, r->weights + SECOND, SIDE / 2, 8, 3, 16);
		}
		loss += head_loss(r->weights, in, set->labels[n]);
	}
	return loss;
}

/* Noise: in it every pixel counts, also at the edges. */
static struct digits noise(void)
{
	static uint8_t pixels[SAMPLES * DIGITS_PIXELS], labels[SAMPLES];
	struct random r = random_of(seed, 1);

	for (size_t i = 0; i < sizeof(pixels); i++)
		pixels[i] = (uint8_t)random_next(&r);
	for (size_t i = 0; i < sizeof(labels); i++)
		labels[i] = (uint8_t)(random_next(&r) % CLASSES);
	return (struct digits){ SAMPLES, pixels, labels };
}

/* A network with random weights and random biases, and a reference with the same ones. */
static struct net *pair_create(const struct model *model, struct reference *r)
{
	struct random random = random_of(seed, 2);
	struct net *net = model->create(HIDDEN, SAMPLES);

	assert_non_null(net);
	model->randomize(net, seed);
	*r = (struct reference){ model, net->count, calloc(net->count, sizeof(double)) };
	assert_int_equal(net->count, model == &model_conv ? END : SECOND);
	assert_non_null(r->weights);
	for (size_t i = 0; i < net->count; i++) {
		net->weights[i] += 0.05f * random_normal(&random);
		r->weights[i] = (double)net->weights[i];
	}
	return net;
}

static struct score forward(const struct model *model, struct net *net, const struct digits *set)
{
	static const uint32_t picks[SAMPLES] = { 0, 1, 2 };

	return model->forward(net, set, picks, SAMPLES);
}

/* All parts, one after another. They must cover the whole array. */
static void backward(const struct model *model, struct net *net, size_t parts)
{
	size_t end = 0;

	for (size_t part = 0; part < parts; part++) {
		size_t before = end;

		end = model->backward(net, SAMPLES, (float)scale, part, parts);
		assert_in_range(end, before + 1, net->count);
	}
	assert_int_equal(end, net->count);
}

/* Adds `distance` times the direction to the weights from `first` on, and returns the loss. */
static double loss_moved(const struct reference *r, const struct digits *set, size_t first,
                         const double *direction, size_t count, double distance)
{
	double loss;

	for (size_t i = 0; i < count; i++)
		r->weights[first + i] += distance * direction[i];
	loss = reference_loss(r, set);
	for (size_t i = 0; i < count; i++)
		r->weights[first + i] -= distance * direction[i];
	return loss;
}

/* The gradient is in single precision, so its error grows with its size and with the direction's.
 */
static void slope_compare(const struct reference *r, const struct net *net,
                          const struct digits *set, size_t first, const double *direction,
                          size_t count)
{
	double expected = scale *
	                  (loss_moved(r, set, first, direction, count, step) -
	                   loss_moved(r, set, first, direction, count, -step)) /
	                  (2 * step);
	double got = 0, size = 0;

	for (size_t i = 0; i < count; i++) {
		got += direction[i] * (double)net->gradient[first + i];
		size += fabs(direction[i] * (double)net->gradient[first + i]);
	}
	if (!(fabs(got - expected) < 1e-5 + 1e-5 * size))
		fail_msg("%s, seed %llu: weights %zu to %zu: slope %.9g, expected %.9g",
		         r->model->name, (unsigned long long)seed, first, first + count - 1, got,
		         expected);
}

/* All weights of a kind at once, in a random direction; then some of them one by one. */
static void kind_compare(const struct reference *r, const struct net *net, const struct digits *set,
                         size_t first, size_t count)
{
	struct random random = random_of(seed, first + 10);
	double *direction = calloc(count, sizeof(double));
	uint64_t single = test_cases("weights", 90);

	assert_non_null(direction);
	for (size_t i = 0; i < count; i++)
		direction[i] = (double)random_normal(&random);
	slope_compare(r, net, set, first, direction, count);
	direction[0] = 1;
	for (uint64_t i = 0; i < single; i++)
		slope_compare(r, net, set, first + random_next(&random) % count, direction, 1);
	free(direction);
}

static void gradient_compare(const struct model *model)
{
	struct digits set = noise();
	struct reference r;
	struct net *net = pair_create(model, &r);
	struct score score = forward(model, net, &set);

	print_message("%s: seed %llu\n", model->name, (unsigned long long)seed);
	assert_true(fabs(score.loss - reference_loss(&r, &set)) < 1e-5);
	backward(model, net, 4);
	for (size_t i = 0; begins[i] < r.count; i++) {
		size_t count = begins[i + 1] - begins[i], alive = 0;

		kind_compare(&r, net, &set, begins[i], count);
		for (size_t k = 0; k < count; k++)
			alive += fabsf(net->gradient[begins[i] + k]) > 1e-4f;
		/* Zeros on both sides would compare nothing. */
		assert_in_range(alive, count / 20 + 1, count);
	}
	free(r.weights);
	model->destroy(net);
}

static void test_gradient_of_mlp(void **state)
{
	(void)state;
	gradient_compare(&model_mlp);
}

static void test_gradient_of_conv(void **state)
{
	(void)state;
	gradient_compare(&model_conv);
}

/* The same bits in any number of parts, whatever the network has computed before. */
static void test_parts_make_no_difference(void **state)
{
	static const char *const names[] = { "mlp", "conv" };
	struct digits set = noise();

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		const struct model *model = model_find(names[i]);
		struct reference r;
		struct net *net = pair_create(model, &r);
		float *whole = calloc(net->count, sizeof(float));

		assert_non_null(whole);
		forward(model, net, &set);
		backward(model, net, 1);
		memcpy(whole, net->gradient, net->count * sizeof(float));
		for (size_t parts = 2; parts <= 28; parts += 13) {
			memset(net->gradient, 0xff, net->count * sizeof(float));
			forward(model, net, &set);
			backward(model, net, parts);
			assert_memory_equal(net->gradient, whole, net->count * sizeof(float));
		}
		free(whole);
		free(r.weights);
		model->destroy(net);
	}
	assert_null(model_find("none"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gradient_of_mlp),
		cmocka_unit_test(test_gradient_of_conv),
		cmocka_unit_test(test_parts_make_no_difference),
	};
	const char *wanted = getenv("TRIB_SEED");

	if (wanted)
		seed = strtoull(wanted, NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
