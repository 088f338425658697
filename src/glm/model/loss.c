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
	double k, r, sum = 1, scale;
	uint64_t bits;

	if (!(v > -708))
		v = -708;
	k = v * log2e + round - round;
	r = v - k * ln2_high - k * ln2_low;
	/* Taylor's series for |r| below 0.35, from its last term to its first. */
	for (int i = 13; i > 0; i--)
		sum = 1 + sum * r / i;
	bits = (uint64_t)(1023 + (int64_t)k) << 52;
	memcpy(&scale, &bits, sizeof(scale));
	return sum * scale;
}

/* log(1 + e) for e from 0 to 1. */
static double log_1p(double e)
{
	double s = e / (2 + e), square = s * s, sum = 0;

	/* atanh(s), with s up to 1/3. */
	for (int i = 27; i > 0; i -= 2)
		sum = sum * square + 1.0 / i;
	return 2 * s * sum;
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
