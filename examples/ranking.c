/* SPDX-License-Identifier: Apache-2.0 */
#include "ranking.h"

#include <math.h>

/* The best items so far, the worst of them first to go: a small heap would not be faster. */
struct top {
	uint32_t items[RANKING_TOP];
	float scores[RANKING_TOP];
	int n;
};

static void top_add(struct top *top, uint32_t item, float score)
{
	int at = top->n < RANKING_TOP ? top->n++ : RANKING_TOP - 1;

	for (; at > 0 && top->scores[at - 1] < score; at--) {
		top->scores[at] = top->scores[at - 1];
		top->items[at] = top->items[at - 1];
	}
	top->scores[at] = score;
	top->items[at] = item;
}

void ranking_add(struct ranking *ranking, const struct interactions *train,
                 const struct interactions *test, uint32_t user, float *scores)
{
	size_t wanted = test->start[user + 1] - test->start[user];
	struct top top = { 0 };
	int found = 0;

	if (wanted == 0)
		return;
	for (size_t i = train->start[user]; i < train->start[user + 1]; i++)
		scores[train->item[i]] = -INFINITY;
	for (uint32_t item = 0; item < train->items; item++)
		if (top.n < RANKING_TOP || scores[item] > top.scores[RANKING_TOP - 1])
			top_add(&top, item, scores[item]);
	for (int i = 0; i < top.n; i++)
		found += interactions_has(test, user, top.items[i]);
	ranking->users++;
	ranking->recall += (double)found / (double)wanted;
	ranking->hit_rate += found > 0;
}

void ranking_mean(struct ranking *ranking)
{
	double users = ranking->users ? (double)ranking->users : 1;

	ranking->recall /= users;
	ranking->hit_rate /= users;
}
