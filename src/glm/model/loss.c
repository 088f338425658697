/* SPDX-License-Identifier: Apache-2.0 */
#include "glm/model/loss.h"

#include <stddef.h>
#include <string.h>

static const struct {
	const char *name, *other;
	double curvature;
} losses[] = {
	[GLM_LOSS_LINEAR] = { "linear", "squared", 1 },
	[GLM_LOSS_LOGISTIC] = { "logistic", "logit", 0.25 },
	[GLM_LOSS_HINGE] = { "hinge", "svm", 1 },
	[GLM_LOSS_SQUARED_HINGE] = { "squared-hinge", "squared_hinge", 2 },
};

const char *loss_name(enum glm_loss loss)
{
	return (unsigned)loss < GLM_LOSSES_N ? losses[loss].name : NULL;
}

bool loss_find(const char *name, enum glm_loss *loss)
{
	for (unsigned i = 0; i < GLM_LOSSES_N; i++)
		if (!strcmp(name, losses[i].name) || !strcmp(name, losses[i].other)) {
			*loss = (enum glm_loss)i;
			return true;
		}
	return false;
}

double loss_curvature(enum glm_loss loss)
{
	return losses[loss].curvature;
}

double loss_exp(double v)
{
	/* Added and subtracted, this constant rounds a double to an integer. */
	const double round = 6755399441055744.0;
	const double log2e = 1.4426950408889634, ln2_high = 0.693147180369123816490,
		     ln2_low = 1.90821492927058770002e-10;
	/* 1 / i! of even i, from 12! down to 2!, and of odd i, from 13! to 3!. */
	static const double even[] = { 1.0 / 479001600, 1.0 / 3628800, 1.0 / 40320,
		                       1.0 / 720,       1.0 / 24,      1.0 / 2 };
	static const double odd[] = { 1.0 / 6227020800, 1.0 / 39916800, 1.0 / 362880,
		                      1.0 / 5040,       1.0 / 120,      1.0 / 6 };
	double k, r, square, evens = 0, odds = 0, scale;
	uint64_t bits;

	if (!(v > -708))
		v = -708;
	k = v * log2e + round - round;
	r = v - k * ln2_high - k * ln2_low;
	/*
	 * Taylor's series for |r| below 0.35, from its last terms to its first. Two sums, because
	 * an operation waits for the one before; and no division, which takes as long as four
	 * others.
	 */
	square = r * r;
	for (unsigned i = 0; i < sizeof(even) / sizeof(*even); i++) {
		evens = evens * square + even[i];
		odds = odds * square + odd[i];
	}
	bits = (uint64_t)(1023 + (int64_t)k) << 52;
	memcpy(&scale, &bits, sizeof(scale));
	return (1 + (r + square * (evens + r * odds))) * scale;
}

/* log(1 + e) for e from 0 to 1. */
static double log_1p(double e)
{
	/* 1 / i of every fourth i: 27 to 3, and 25 to 1. */
	static const double high[] = { 1.0 / 27, 1.0 / 23, 1.0 / 19, 1.0 / 15,
		                       1.0 / 11, 1.0 / 7,  1.0 / 3 };
	static const double low[] = {
		1.0 / 25, 1.0 / 21, 1.0 / 17, 1.0 / 13, 1.0 / 9, 1.0 / 5, 1.0
	};
	double s = e / (2 + e), square = s * s, fourth = square * square, highs = 0, lows = 0;

	/* atanh(s), with s up to 1/3. */
	for (unsigned i = 0; i < sizeof(low) / sizeof(*low); i++) {
		highs = highs * fourth + high[i];
		lows = lows * fourth + low[i];
	}
	return 2 * s * (lows + square * highs);
}

double loss_probability(double z)
{
	double e = loss_exp(z < 0 ? z : -z);

	return z < 0 ? e / (1 + e) : 1 / (1 + e);
}

static double logistic_value(double margin)
{
	return margin < 0 ? -margin + log_1p(loss_exp(margin)) : log_1p(loss_exp(-margin));
}

double loss_value(enum glm_loss loss, double z, double y)
{
	double short_of_one = 1 - z * y;

	switch (loss) {
	case GLM_LOSS_LOGISTIC:
		return logistic_value(z * y);
	case GLM_LOSS_HINGE:
		return short_of_one > 0 ? short_of_one : 0;
	case GLM_LOSS_SQUARED_HINGE:
		return short_of_one > 0 ? short_of_one * short_of_one : 0;
	default:
		return (z - y) * (z - y) / 2;
	}
}

double loss_slope(enum glm_loss loss, double z, double y)
{
	double short_of_one = 1 - z * y;

	switch (loss) {
	case GLM_LOSS_LOGISTIC:
		return -y * loss_probability(-z * y);
	case GLM_LOSS_HINGE:
		return short_of_one > 0 ? -y : 0;
	case GLM_LOSS_SQUARED_HINGE:
		return short_of_one > 0 ? -2 * y * short_of_one : 0;
	default:
		return z - y;
	}
}
