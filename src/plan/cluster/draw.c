/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/cluster/draw.h"

#include "base/random_bits.h"

#include <stdio.h>

enum links { LINKS_ALIKE, LINKS_KINDS, LINKS_UNLIKE, LINKS_N };
enum hosting { HOSTING_ALL, HOSTING_SOME, HOSTING_NONE, HOSTING_N };

static const double link_rates[] = { 1e9, 10e9, 25e9, 40e9, 100e9 };

#define LINK_RATES_N (sizeof(link_rates) / sizeof(link_rates[0]))

unsigned draw_below(uint64_t *state, unsigned n)
{
	return (unsigned)(random_next(state) % n);
}

static double draw_rate(uint64_t *state, enum links links, double common)
{
	switch (links) {
	case LINKS_KINDS:
		return link_rates[draw_below(state, LINK_RATES_N)];
	case LINKS_UNLIKE: /* 10 % to 100 % of a link is idle */
		return common * (0.1 + 0.9 * draw_below(state, 10001) / 10000);
	default:
		return common;
	}
}

static void draw_host(uint64_t *state, struct plan_host *host, enum links links, double common)
{
	host->in_bps = host->out_bps = draw_rate(state, links, common);
	if (links == LINKS_UNLIKE)
		host->out_bps = draw_rate(state, links, common);
	/* Usually enough cores for the link, sometimes few. */
	host->idle_cores =
		draw_below(state, 4) ? 16 + draw_below(state, 48) : 1 + draw_below(state, 8);
	host->memory_total = 64ull << 30;
	host->memory_used = (uint64_t)draw_below(state, 48) << 30;
	host->round_s = 0.1 + draw_below(state, 1000) / 1000.0;
}

void draw_cluster(uint64_t seed, unsigned n, struct plan_host *hosts, char (*names)[2][DRAW_NAME])
{
	uint64_t state = seed;
	enum links links = draw_below(&state, LINKS_N);
	enum hosting hosting = draw_below(&state, HOSTING_N);
	double common = link_rates[draw_below(&state, LINK_RATES_N)];
	unsigned workers = 2 + draw_below(&state, n - 1);
	bool has_switch = workers < n && !draw_below(&state, 8);
	/* One aggregator for each 63 workers: fewer could not have all of them as children. */
	unsigned enough = 1 + workers / 63, able = n - workers;

	for (unsigned i = 0; i < n; i++) {
		bool is_worker = i < workers;

		hosts[i] = (struct plan_host){ .rank = is_worker ? (int)i : -1 };
		draw_host(&state, &hosts[i], links, common);
		hosts[i].may_aggregate = !is_worker || hosting == HOSTING_ALL ||
		                         (hosting == HOSTING_SOME && draw_below(&state, 2));
		if (is_worker && !hosts[i].may_aggregate && able + workers - i <= enough)
			hosts[i].may_aggregate = true;
		able += is_worker && hosts[i].may_aggregate;
		hosts[i].is_switch = has_switch && i == workers;
		snprintf(names[i][0], DRAW_NAME, "%c%u", is_worker ? 'h' : 's',
		         is_worker ? i + 1 : i - workers + 1);
		snprintf(names[i][1], DRAW_NAME, "10.%u.%u.%u:7700", i >> 16, i >> 8 & 255,
		         i & 255);
		hosts[i].name = names[i][0];
		hosts[i].address = names[i][1];
	}
}
