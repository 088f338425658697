/* SPDX-License-Identifier: Apache-2.0 */
#include "glm/data/column_spread.h"

#include <math.h>
#include <string.h>

#define FLOAT_BIAS 127

/* A larger magnitude has come: the bins of smaller ones move down, and the lowest become one. */
static void bins_lower(uint32_t *bins, uint32_t by)
{
	uint32_t i, low = 0;

	if (by >= GLM_SPREAD_BINS)
		by = GLM_SPREAD_BINS - 1;
	for (i = 0; i <= by; i++)
		low += bins[i];
	memmove(bins, bins + by, (GLM_SPREAD_BINS - by) * sizeof(*bins));
	memset(bins + GLM_SPREAD_BINS - by, 0, by * sizeof(*bins));
	bins[0] = low;
}

void spread_add(struct glm_spread *spread, float value, bool first)
{
	uint32_t bits;
	int power, bin;

	memcpy(&bits, &value, sizeof(bits));
	power = (int)(bits >> 23 & 0xff) - FLOAT_BIAS;
	if (first) {
		spread->top = (int16_t)power;
		spread->whole = true;
	}
	if (power > spread->top) {
		bins_lower(spread->positive, 2u * (uint32_t)(power - spread->top));
		bins_lower(spread->negative, 2u * (uint32_t)(power - spread->top));
		spread->top = (int16_t)power;
	}
	bin = (int)GLM_SPREAD_BINS - 2 + 2 * (power - spread->top) + (int)(bits >> 22 & 1);
	bin = bin < 0 ? 0 : bin;
	if (value < 0)
		spread->negative[bin]++;
	else
		spread->positive[bin]++;
	spread->whole &= value == rintf(value);
}

void spread_bin(const struct glm_spread *spread, uint32_t bin, double *from, double *to)
{
	double power = ldexp(1, spread->top + (int)(bin / 2) + 1 - (int)GLM_SPREAD_BINS / 2);

	*from = bin % 2 ? 1.5 * power : power;
	*to = bin % 2 ? 2 * power : 1.5 * power;
	if (!bin)
		*from = 0;
}
