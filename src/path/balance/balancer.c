/* SPDX-License-Identifier: Apache-2.0 */
#include "path/balance/balancer.h"

/* A chunk looks for a path. */
struct choice {
	const struct monitor *monitor;
	bool open[PATHS_MAX]; /* the path may take the chunk */
	uint32_t bytes;
	uint64_t now;
};

void balancer_init(struct balancer *balancer, enum balancer_kind kind)
{
	*balancer = (struct balancer){ .kind = kind, .current = PATHS_MAX };
}

static bool answers(const struct path_estimate *path)
{
	return path->state == PATH_GOOD || path->state == PATH_CONGESTED;
}

/* Which paths may take the chunk. False: none. */
static bool open_paths(struct choice *choice, const uint32_t room[])
{
	const struct monitor *monitor = choice->monitor;
	bool known = false, any = false;

	for (unsigned i = 0; i < monitor->n; i++)
		known = known || answers(&monitor->paths[i]);
	for (unsigned i = 0; i < monitor->n; i++) {
		const struct path_estimate *path = &monitor->paths[i];

		choice->open[i] = room[i] >= choice->bytes &&
		                  (known ? answers(path) : path->state == PATH_UNKNOWN);
		any = any || choice->open[i];
	}
	return any;
}

static unsigned next_in_turn(struct balancer *balancer, const struct choice *choice)
{
	unsigned i = balancer->current;

	do
		i = i + 1 < choice->monitor->n ? i + 1 : 0;
	while (!choice->open[i]);
	return i;
}

static unsigned least_latency(struct balancer *balancer, const struct choice *choice)
{
	const struct path_estimate *paths = choice->monitor->paths;
	unsigned best = PATHS_MAX;

	(void)balancer;
	for (unsigned i = 0; i < choice->monitor->n; i++)
		if (choice->open[i] && (best == PATHS_MAX || paths[i].rtt_ns < paths[best].rtt_ns))
			best = i;
	return best;
}

/* Paths of unknown bandwidth count like the mean of the others. */
static double mean_bps(const struct choice *choice)
{
	const struct path_estimate *paths = choice->monitor->paths;
	double sum = 0;
	unsigned n = 0;

	for (unsigned i = 0; i < choice->monitor->n; i++) {
		if (choice->open[i] && paths[i].bps) {
			sum += (double)paths[i].bps;
			n++;
		}
	}
	return n ? sum / n : 1;
}

static double weight(const struct path_estimate *path, double mean)
{
	double bps = path->bps ? (double)path->bps : mean;

	return path->state == PATH_CONGESTED ? bps / 2 : bps;
}

/*
 * Deficit round robin: each chunk earns all open paths their part of its bytes, and costs the path
 * that takes it all of them. The path that is owed most takes the chunk.
 */
static unsigned by_bandwidth(struct balancer *balancer, const struct choice *choice)
{
	const struct path_estimate *paths = choice->monitor->paths;
	double mean = mean_bps(choice), sum = 0;
	unsigned best = PATHS_MAX;

	for (unsigned i = 0; i < choice->monitor->n; i++)
		sum += choice->open[i] ? weight(&paths[i], mean) : 0;
	for (unsigned i = 0; i < choice->monitor->n; i++) {
		if (!choice->open[i])
			continue;
		balancer->credit[i] += choice->bytes * weight(&paths[i], mean) / sum;
		if (best == PATHS_MAX || balancer->credit[i] > balancer->credit[best])
			best = i;
	}
	if (best < PATHS_MAX)
		balancer->credit[best] -= choice->bytes;
	return best;
}

/* The time by which a chunk on another path could overtake or trail those on the current one. */
static uint64_t latency_difference(const struct choice *choice, unsigned current)
{
	const struct path_estimate *paths = choice->monitor->paths;
	uint64_t own = paths[current].rtt_ns, difference = 0;

	for (unsigned i = 0; i < choice->monitor->n; i++) {
		uint64_t other = paths[i].rtt_ns, apart = other > own ? other - own : own - other;

		if (choice->open[i] && apart > difference)
			difference = apart;
	}
	return difference;
}

static unsigned by_flowlet(struct balancer *balancer, const struct choice *choice)
{
	unsigned current = balancer->current;

	if (current < choice->monitor->n && choice->open[current] &&
	    choice->now - balancer->last <= latency_difference(choice, current))
		return current;
	return by_bandwidth(balancer, choice);
}

static unsigned (*const choosers[BALANCE_KINDS])(struct balancer *balancer,
                                                 const struct choice *choice) = {
	[BALANCE_ROUND_ROBIN] = next_in_turn,
	[BALANCE_BANDWIDTH] = by_bandwidth,
	[BALANCE_LATENCY] = least_latency,
	[BALANCE_FLOWLET] = by_flowlet,
};

int balancer_choose(struct balancer *balancer, const struct monitor *monitor, const uint32_t room[],
                    uint32_t bytes, uint64_t message, uint64_t now)
{
	struct choice choice = { .monitor = monitor, .bytes = bytes, .now = now };

	if (!open_paths(&choice, room))
		return -1;
	if (message <= BALANCE_SMALL && balancer->kind != BALANCE_ROUND_ROBIN)
		return (int)least_latency(balancer, &choice);
	balancer->current = choosers[balancer->kind](balancer, &choice);
	balancer->last = now;
	return (int)balancer->current;
}
