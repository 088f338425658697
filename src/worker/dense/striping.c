/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/dense/striping.h"

#define WEIGHTS_SUM 65536.0

static uint32_t weight(const struct striping *striping, unsigned lane)
{
	return striping->upto[lane] - (lane ? striping->upto[lane - 1] : 0);
}

/* Each place goes to the lane that is furthest behind its weight. */
static void fill_rotation(struct striping *striping)
{
	int64_t behind[LANES_MAX] = { 0 };

	for (unsigned i = 0; i < STRIPING_ROTATION; i++) {
		unsigned best = 0;

		for (unsigned lane = 0; lane < striping->n; lane++) {
			behind[lane] += weight(striping, lane);
			if (behind[lane] > behind[best])
				best = lane;
		}
		behind[best] -= striping->upto[striping->n - 1];
		striping->rotation[i] = (uint8_t)best;
	}
}

void striping_init(struct striping *striping, const double *weights, unsigned n)
{
	double sum = 0;
	uint32_t upto = 0;

	striping->n = n;
	for (unsigned i = 0; i < n; i++)
		sum += weights[i];
	for (unsigned i = 0; i < n; i++) {
		double scaled = weights[i] / sum * WEIGHTS_SUM;

		upto += scaled < 1 ? 1 : (uint32_t)scaled;
		striping->upto[i] = upto;
	}
	fill_rotation(striping);
}

static size_t count_fragments(size_t count, size_t per)
{
	return count / per + (count % per != 0);
}

unsigned striping_split(const struct striping *striping, unsigned lanes, size_t count, size_t per,
                        struct part parts[LANES_MAX])
{
	size_t fragments = count_fragments(count, per), first = 0;
	uint32_t sum = striping->upto[lanes - 1];
	unsigned n = 0;

	for (unsigned lane = 0; lane < lanes; lane++) {
		/* In two steps, so that no product overflows. */
		size_t upto = fragments / sum * striping->upto[lane] +
		              fragments % sum * striping->upto[lane] / sum;
		size_t end = upto == fragments ? count : upto * per;

		if (end == first)
			continue;
		parts[n++] = (struct part){ .lane = lane, .first = first, .count = end - first };
		first = end;
	}
	return n;
}
