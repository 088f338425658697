/* SPDX-License-Identifier: Apache-2.0 */
#include "path/balance/places.h"
#include "base/clock.h"

#include <string.h>

void places_init(struct places *places, unsigned n_paths)
{
	memset(places, 0, sizeof(*places));
	places->n_paths = n_paths;
	for (unsigned i = 0; i < PATHS_MAX; i++)
		places->paths[i].fresh = PLACES_FRESH_MIN;
	for (unsigned i = 0; i < PLACES_FLOWS; i++)
		places->flows[i] =
			(struct places_flow){ .path = PATHS_MAX, .wait = PLACES_WAIT_MIN };
}

/* A flow has come or gone: the others get another part from now on. */
static void measure_anew(struct places *places, unsigned path, uint64_t now)
{
	for (unsigned i = 0; i < places->n_flows; i++) {
		if (places->flows[i].path != path)
			continue;
		places->flows[i].rates = 0;
		places->flows[i].since = now;
	}
}

static void leave(struct places *places, unsigned path)
{
	uint64_t *fresh = &places->paths[path].fresh;

	*fresh = *fresh < PLACES_FRESH_MAX / 2 ? 2 * *fresh : PLACES_FRESH_MAX;
}

void places_put(struct places *places, unsigned flow, unsigned path, uint64_t now)
{
	struct places_flow *own = &places->flows[flow];

	if (own->path < places->n_paths)
		leave(places, own->path);
	measure_anew(places, own->path, now);
	own->path = path;
	own->before = own->bps;
	own->bps = 0;
	if (flow >= places->n_flows)
		places->n_flows = flow + 1;
	measure_anew(places, path, now);
}

/* The path's rate is the sum of its flows' rates. A flow that has just come is not counted yet. */
static void add_up(struct places *places, unsigned path, uint64_t now)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < places->n_flows; i++)
		if (places->flows[i].path == path && places->flows[i].busy)
			sum += places->flows[i].bps;
	places->paths[path].bps = sum;
	places->paths[path].at = now;
}

/* Was it right to come here? */
static void judge_move(struct places *places, struct places_flow *own)
{
	bool helped = (double)own->bps > PLACES_WORTH * (double)own->before;
	uint64_t longer = own->wait < PLACES_WAIT_MAX / 2 ? 2 * own->wait : PLACES_WAIT_MAX;

	own->wait = helped ? PLACES_WAIT_MIN : longer;
	if (helped && own->path < places->n_paths)
		places->paths[own->path].fresh = PLACES_FRESH_MIN;
	own->before = 0;
}

void places_measured(struct places *places, unsigned flow, uint64_t bps, uint64_t now)
{
	struct places_flow *own = &places->flows[flow];

	own->busy = true;
	if (own->rates < PLACES_RATES)
		own->rates++;
	own->bps = (own->bps * (own->rates - 1) + bps) / own->rates;
	if (own->rates == PLACES_RATES && own->before)
		judge_move(places, own);
	if (own->path < places->n_paths)
		add_up(places, own->path, now);
}

void places_rest(struct places *places, unsigned flow)
{
	places->flows[flow].busy = false;
}

void places_dead(struct places *places, unsigned path, uint64_t now)
{
	places->paths[path].bps = 1;
	places->paths[path].at = now;
}

static bool is_known(const struct places *places, unsigned path, uint64_t now)
{
	return places->paths[path].bps &&
	       clock_since(now, places->paths[path].at) < places->paths[path].fresh;
}

/* Of the paths that are known; 0: none is. */
static double average(const struct places *places, uint64_t now)
{
	double sum = 0;
	unsigned n = 0;

	for (unsigned i = 0; i < places->n_paths; i++) {
		if (!is_known(places, i, now))
			continue;
		sum += (double)places->paths[i].bps;
		n++;
	}
	return n ? sum / n : 0;
}

/* What the path would give to one more flow. Flows that rest will begin again. */
static double expected(const struct places *places, unsigned path, uint64_t now)
{
	double bps = is_known(places, path, now) ? (double)places->paths[path].bps
	                                         : average(places, now);
	unsigned flows = 0;

	for (unsigned i = 0; i < places->n_flows; i++)
		flows += places->flows[i].path == path;
	return bps / (flows + 1);
}

unsigned places_best(const struct places *places, unsigned but, uint64_t now)
{
	unsigned best = PATHS_MAX;
	double most = -1;

	for (unsigned i = 0; i < places->n_paths; i++) {
		double bps = i == but ? -1 : expected(places, i, now);

		if (bps > most) {
			most = bps;
			best = i;
		}
	}
	return best;
}

static bool may_move(const struct places_flow *own, uint64_t now)
{
	if (!own->busy)
		return false;
	if (own->rates >= PLACES_LOOK && PLACES_GAIN * (double)own->bps < (double)own->before)
		return true; /* it was a mistake to come here */
	return own->rates == PLACES_RATES && clock_since(now, own->since) >= own->wait;
}

unsigned places_choose(const struct places *places, unsigned flow, uint64_t now)
{
	const struct places_flow *own = &places->flows[flow];
	unsigned best;

	if (!may_move(own, now))
		return own->path;
	best = places_best(places, own->path, now);
	if (best == PATHS_MAX || expected(places, best, now) <= PLACES_GAIN * (double)own->bps)
		return own->path;
	return best;
}
