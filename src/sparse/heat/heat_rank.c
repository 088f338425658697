/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/heat/heat.h"

#include <stdlib.h>

static int by_count(const void *a, const void *b)
{
	const struct heat_key *x = a, *y = b;

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return (x->key > y->key) - (x->key < y->key);
}

static uint64_t sum(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

void heat_rank(struct heat_key *keys, size_t n)
{
	if (n)
		qsort(keys, n, sizeof(*keys), by_count);
}

uint64_t heat_total(const struct heat_key *keys, size_t n)
{
	uint64_t total = 0;

	for (size_t i = 0; i < n; i++)
		total = sum(total, keys[i].count);
	return total;
}

static double share_of(uint64_t part, uint64_t total)
{
	return total ? (double)part / (double)total : 0;
}

/* The keys of one step: from `at`, up to `end`, until `share` is reached. */
static size_t step_add(const struct heat_key *ranked, size_t at, size_t end, double wanted,
                       uint64_t *taken)
{
	while (at < end && (double)*taken < wanted)
		*taken = sum(*taken, ranked[at++].count);
	return at;
}

struct heat_pick heat_pick(const struct heat_key *ranked, size_t n, uint64_t total,
                           const struct heat_limits *limits)
{
	size_t room = n < limits->rows_max ? n : limits->rows_max;
	size_t step = limits->step ? limits->step : 1;
	double wanted = (limits->share < 1 ? limits->share : 1) * (double)total;
	struct heat_pick pick = { .reason = HEAT_ALL_KEYS };
	uint64_t taken = 0;

	while (pick.n < room && (double)taken < wanted) {
		size_t end = room - pick.n < step ? room : pick.n + step;
		uint64_t with = taken;
		size_t next = step_add(ranked, pick.n, end, wanted, &with);

		/* The last step may be short, so its growth is that of a whole step. */
		if (pick.n && share_of(with - taken, total) * (double)step <
		                      limits->growth * (double)(next - pick.n)) {
			pick.reason = HEAT_TRADE_OFF;
			break;
		}
		pick.n = next;
		taken = with;
	}
	pick.share = share_of(taken, total);
	if (pick.reason == HEAT_TRADE_OFF || pick.n == n)
		return pick;
	pick.reason = (double)taken >= wanted ? HEAT_ENOUGH : HEAT_NO_ROOM;
	return pick;
}

size_t heat_sure(const struct heat_key *ranked, size_t n, double sample)
{
	size_t sure = 0;

	for (; sure < n; sure++) {
		double count = (double)ranked[sure].count;
		double above = count - (double)ranked[n - 1].count;

		if (above * above < count * (1 - sample))
			break;
	}
	return sure;
}
