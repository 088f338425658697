/* SPDX-License-Identifier: Apache-2.0 */
#include "path/balance/monitor.h"
#include "base/clock.h"

#define QUEUED_NS 200000ull   /* 0.2 ms, and a quarter of the least round trip: more is a queue */
#define STALE_NS 100000000ull /* 100 ms: an older round trip says nothing about now */

static uint64_t most(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* The least of two values that may be unknown (0). */
static uint64_t least(uint64_t a, uint64_t b)
{
	return a && (!b || a < b) ? a : b;
}

void monitor_init(struct monitor *monitor, unsigned n, uint64_t now)
{
	*monitor = (struct monitor){ .kind = MONITOR_SMOOTH };
	for (unsigned i = 0; i < n; i++)
		monitor_add(monitor, now);
}

unsigned monitor_add(struct monitor *monitor, uint64_t now)
{
	if (monitor->n == PATHS_MAX)
		return PATHS_MAX;
	monitor->paths[monitor->n] =
		(struct path_estimate){ .since = now, .judged = now, .paused = true };
	return monitor->n++;
}

/* ---- bandwidth ---- */

/* Otherwise the interval says only that the path carries that much or more. */
static bool is_full_rate(const struct path_estimate *path)
{
	return path->queued && !path->paused;
}

static void smooth_take(struct path_estimate *path, uint64_t bps)
{
	if (!path->bps)
		path->bps = bps;
	else if (is_full_rate(path) || bps > path->bps)
		path->bps = (uint64_t)(0.75 * (double)path->bps + 0.25 * (double)bps);
}

static void peak_take(struct path_estimate *path, uint64_t bps)
{
	uint64_t peak = 0;

	if (!is_full_rate(path) && bps < path->bps)
		return;
	path->peaks[path->n_peaks++ % MONITOR_PEAKS] = bps;
	for (unsigned i = 0; i < MONITOR_PEAKS && i < path->n_peaks; i++)
		peak = most(peak, path->peaks[i]);
	path->bps = peak;
}

/* The rate of one interval. */
static void (*const take_rate[])(struct path_estimate *path, uint64_t bps) = {
	[MONITOR_SMOOTH] = smooth_take,
	[MONITOR_PEAK] = peak_take,
};

static void interval_begin(struct path_estimate *path, uint64_t now)
{
	path->since = now;
	path->taken = 0;
	path->queued = false;
	path->paused = !path->in_flight;
}

/* A burst that filled the path's queue gives a rate, although it was short. */
static bool burst_ends(const struct path_estimate *path, uint64_t span)
{
	return !path->in_flight && path->queued && !path->paused && span >= MONITOR_SPAN_NS / 4;
}

/* An interval runs from one acknowledgement to another: the second confirms what came since. */
static void take_bytes(const struct monitor *monitor, struct path_estimate *path, uint64_t now,
                       uint32_t bytes)
{
	uint64_t span = clock_since(now, path->since);

	path->taken += bytes;
	if ((span >= MONITOR_SPAN_NS && span >= 2 * path->rtt_ns) || burst_ends(path, span)) {
		if (path->taken)
			take_rate[monitor->kind](
				path, (uint64_t)((double)path->taken * 8e9 / (double)span));
		interval_begin(path, now);
	}
	path->paused = path->paused || !path->in_flight;
}

/* ---- loss and congestion ---- */

static void judge(struct path_estimate *path, uint64_t now)
{
	uint64_t queue = clock_since(path->rtt_ns, path->least_rtt_ns);
	double sum = (double)path->arrived + (double)path->missed;

	if (sum > 0 && clock_since(now, path->judged) >= MONITOR_SPAN_NS) {
		path->loss = 0.75 * path->loss + 0.25 * (double)path->missed / sum;
		path->arrived = path->missed = 0;
		path->judged = now;
	}
	if (path->state != PATH_GOOD && path->state != PATH_CONGESTED)
		return;
	if (queue > MONITOR_QUEUE_NS || path->loss > MONITOR_HEAVY_LOSS)
		path->state = PATH_CONGESTED;
	else if (queue < MONITOR_QUEUE_NS / 2 && path->loss < MONITOR_HEAVY_LOSS / 2)
		path->state = PATH_GOOD;
}

/* ---- latency ---- */

static void take_rtt(struct path_estimate *path, uint64_t now, uint64_t rtt)
{
	if (clock_since(now, path->least_since) > MONITOR_LEAST_NS) {
		path->least_before_ns = path->least_now_ns;
		path->least_now_ns = 0;
		path->least_since = now;
	}
	path->least_now_ns = least(path->least_now_ns, rtt);
	path->least_rtt_ns = least(path->least_now_ns, path->least_before_ns);
	if (!path->rtt_ns || clock_since(now, path->heard) > STALE_NS)
		path->rtt_ns = rtt;
	else
		path->rtt_ns = path->rtt_ns - path->rtt_ns / 8 + rtt / 8;
	if (rtt > path->least_rtt_ns + path->least_rtt_ns / 4 + QUEUED_NS)
		path->queued = true;
}

/* ---- events ---- */

static void settle(struct path_estimate *path, uint32_t bytes)
{
	path->in_flight -= bytes < path->in_flight ? bytes : path->in_flight;
}

/* A path that is back may have changed: what was known about it is forgotten. */
static void revive(struct path_estimate *path)
{
	if (path->state == PATH_DEAD) {
		path->bps = path->rtt_ns = path->least_now_ns = path->least_before_ns = 0;
		path->n_peaks = 0;
		path->arrived = path->missed = 0;
		path->loss = 0;
	}
	if (path->state == PATH_DEAD || path->state == PATH_UNKNOWN)
		path->state = PATH_GOOD;
	path->silences = 0;
}

void monitor_sent(struct monitor *monitor, unsigned i, uint64_t now, uint32_t bytes)
{
	struct path_estimate *path = &monitor->paths[i];

	if (!path->in_flight && clock_since(now, path->since) > MONITOR_SPAN_NS)
		interval_begin(path, now); /* the path was idle */
	path->in_flight += bytes;
	path->used = now;
}

void monitor_acked(struct monitor *monitor, unsigned i, uint64_t now, uint32_t bytes, uint64_t rtt)
{
	struct path_estimate *path = &monitor->paths[i];

	revive(path);
	if (rtt)
		take_rtt(path, now, rtt);
	path->heard = now;
	path->delivered += bytes;
	path->arrived += bytes;
	settle(path, bytes);
	take_bytes(monitor, path, now, bytes);
	judge(path, now);
}

void monitor_lost(struct monitor *monitor, unsigned i, uint64_t now, uint32_t bytes)
{
	struct path_estimate *path = &monitor->paths[i];

	path->lost += bytes;
	path->missed += bytes;
	settle(path, bytes);
	judge(path, now);
}

void monitor_silent(struct monitor *monitor, unsigned i, uint64_t now)
{
	struct path_estimate *path = &monitor->paths[i];

	(void)now;
	if (++path->silences < MONITOR_SILENCES)
		return;
	path->state = PATH_DEAD;
	path->in_flight = 0;
}

/* ---- probes ---- */

bool monitor_wants_probe(const struct monitor *monitor, unsigned i, uint64_t now)
{
	const struct path_estimate *path = &monitor->paths[i];
	uint64_t active = most(path->probed, most(path->used, path->heard));

	if (path->state == PATH_DEAD || path->state == PATH_UNKNOWN)
		return !path->probed || clock_since(now, path->probed) >= MONITOR_DEAD_PROBE_NS;
	return monitor->n > 1 && clock_since(now, active) >= MONITOR_IDLE_PROBE_NS;
}

void monitor_probed(struct monitor *monitor, unsigned i, uint64_t now)
{
	monitor->paths[i].probed = now;
}

const char *path_state_name(enum path_state state)
{
	static const char *const names[] = { "unknown", "good", "congested", "dead" };

	return names[state];
}
