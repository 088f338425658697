/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/shares.h"

#define WEIGHTS_SUM 65536.0
#define SMALL 2u /* fragments a lane: below that a vector is not worth splitting */

static uint32_t weight(const struct shares *shares, unsigned lane)
{
	return shares->upto[lane] - (lane ? shares->upto[lane - 1] : 0);
}

/* Each turn goes to the lane that is furthest behind its weight. */
static void fill_turns(struct shares *shares)
{
	int64_t behind[LANES_MAX] = { 0 };

	for (unsigned turn = 0; turn < SHARES_TURNS; turn++) {
		unsigned best = 0;

		for (unsigned lane = 0; lane < shares->n; lane++) {
			behind[lane] += weight(shares, lane);
			if (behind[lane] > behind[best])
				best = lane;
		}
		behind[best] -= shares->upto[shares->n - 1];
		shares->turns[turn] = (uint8_t)best;
	}
}

void shares_init(struct shares *shares, const double *weights, unsigned n)
{
	double sum = 0;
	uint32_t upto = 0;

	shares->n = n;
	for (unsigned i = 0; i < n; i++)
		sum += weights[i];
	for (unsigned i = 0; i < n; i++) {
		double scaled = weights[i] / sum * WEIGHTS_SUM;

		upto += scaled < 1 ? 1 : (uint32_t)scaled;
		shares->upto[i] = upto;
	}
	fill_turns(shares);
}

static size_t count_fragments(size_t count, size_t per)
{
	return count / per + (count % per != 0);
}

bool shares_is_small(const struct shares *shares, size_t count, size_t per)
{
	return count_fragments(count, per) < SMALL * shares->n;
}

unsigned shares_split(const struct shares *shares, size_t count, size_t per,
                      struct part parts[LANES_MAX])
{
	size_t fragments = count_fragments(count, per), first = 0;
	uint32_t sum = shares->upto[shares->n - 1];
	unsigned n = 0;

	for (unsigned lane = 0; lane < shares->n; lane++) {
		/* In two steps, so that no product overflows. */
		size_t upto = fragments / sum * shares->upto[lane] +
		              fragments % sum * shares->upto[lane] / sum;
		size_t end = upto == fragments ? count : upto * per;

		if (end == first)
			continue;
		parts[n++] = (struct part){ .lane = lane, .first = first, .count = end - first };
		first = end;
	}
	return n;
}
