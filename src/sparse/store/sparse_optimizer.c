/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/store/sparse_optimizer.h"

#include "base/random_bits.h"

#include <math.h>

uint32_t optimizer_state_floats(const struct sparse_table_options *options)
{
	switch (options->optimizer) {
	case SPARSE_MOMENTUM:
	case SPARSE_ADAGRAD:
		return options->width;
	case SPARSE_ADAM:
		return 2 * options->width + 2;
	default:
		return 0;
	}
}

void optimizer_state_begin(const struct sparse_table_options *options, float *state)
{
	uint32_t n = optimizer_state_floats(options);

	for (uint32_t i = 0; i < n; i++)
		state[i] = 0;
	if (options->optimizer == SPARSE_ADAM)
		state[n - 2] = state[n - 1] = 1;
}

static void sgd_apply(const struct sparse_table_options *options, float *w, const float *g)
{
	float rate = (float)options->rate;

	for (uint32_t i = 0; i < options->width; i++)
		w[i] -= rate * g[i];
}

static void momentum_apply(const struct sparse_table_options *options, float *w, float *v,
                           const float *g)
{
	float rate = (float)options->rate, momentum = (float)options->momentum;

	for (uint32_t i = 0; i < options->width; i++) {
		v[i] = momentum * v[i] + g[i];
		w[i] -= rate * v[i];
	}
}

static void adagrad_apply(const struct sparse_table_options *options, float *w, float *a,
                          const float *g)
{
	float rate = (float)options->rate, epsilon = (float)options->epsilon;

	for (uint32_t i = 0; i < options->width; i++) {
		a[i] += g[i] * g[i];
		w[i] -= rate * g[i] / (sqrtf(a[i]) + epsilon);
	}
}

static void adam_apply(const struct sparse_table_options *options, float *w, float *state,
                       const float *g)
{
	float rate = (float)options->rate, epsilon = (float)options->epsilon;
	float beta1 = (float)options->beta1, beta2 = (float)options->beta2;
	float *m = state, *v = state + options->width, *powers = v + options->width;
	float rest1, rest2;

	powers[0] *= beta1;
	powers[1] *= beta2;
	rest1 = 1 - powers[0];
	rest2 = 1 - powers[1];
	for (uint32_t i = 0; i < options->width; i++) {
		m[i] = beta1 * m[i] + (1 - beta1) * g[i];
		v[i] = beta2 * v[i] + (1 - beta2) * (g[i] * g[i]);
		w[i] -= rate * (m[i] / rest1) / (sqrtf(v[i] / rest2) + epsilon);
	}
}

void optimizer_apply(const struct sparse_table_options *options, float *values, float *state,
                     const float *gradient)
{
	switch (options->optimizer) {
	case SPARSE_MOMENTUM:
		momentum_apply(options, values, state, gradient);
		break;
	case SPARSE_ADAGRAD:
		adagrad_apply(options, values, state, gradient);
		break;
	case SPARSE_ADAM:
		adam_apply(options, values, state, gradient);
		break;
	default:
		sgd_apply(options, values, gradient);
	}
}

void optimizer_values_begin(const struct sparse_table_options *options, uint64_t key, float *values)
{
	uint64_t start = bits_mix(bits_mix(options->seed + RANDOM_STEP) ^ key);
	float init = (float)options->init;

	for (uint32_t i = 0; i < options->width; i++) {
		/* 24 bits: the float in [-1, 1) is exact. */
		uint32_t bits = (uint32_t)(bits_mix(start + i * RANDOM_STEP) >> 40);

		values[i] = init ? init * ((float)bits / 8388608.0f - 1) : 0;
	}
}
