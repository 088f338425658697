/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/transport/lane_paths.h"

#include "base/log.h"
#include "base/settings.h"
#include "path/egress.h"
#include "path/virtual/discovery.h"
#include "path/virtual/path_source.h"
#include "worker/transport/lane_carrier.h"

#include <unistd.h>

#define BUSY_AFTER 300000000ull  /* 300 ms of silence while results are due: the path may be cut */
#define IDLE_AFTER 1300000000ull /* 1.3 s: two heartbeats were not answered */
#define ALL_SILENT 4u            /* times as long, if all lanes hear nothing */
#define KEEP_NS 1000000000ull    /* 1 s: results may still come on a path that was left */

static uint64_t patience(const struct lane *lane)
{
	return stream_is_idle(&lane->stream) ? IDLE_AFTER : BUSY_AFTER;
}

bool lane_moves_is_silent(const struct lane *lane, uint64_t now)
{
	return now >= lane->heard_at + patience(lane);
}

/*
 * If other lanes hear an aggregator, then this one's path is cut. If none does, the aggregator may
 * only be late: all have patience. An aggregator behind the first router has no other path.
 */
static bool is_cut(struct lane *lane, uint64_t now)
{
	struct lane_paths *paths = &lane->comm->paths;
	uint64_t heard = atomic_load_explicit(&paths->heard_at, memory_order_relaxed);

	if (lane->heard_at > heard)
		atomic_store_explicit(&paths->heard_at, heard = lane->heard_at,
		                      memory_order_relaxed);
	if (!lane_moves_is_silent(lane, now) || paths->found == FOUND_NEAR ||
	    now < lane->left_at + patience(lane))
		return false;
	return paths->n < 2 || now < heard + patience(lane) ||
	       now >= lane->heard_at + ALL_SILENT * patience(lane);
}

bool lane_moves_is_lost(const struct lane *lane)
{
	return lane->n_left && lane->heard_at <= lane->left_at;
}

void lane_moves_forget(struct lane *lane)
{
	while (lane->n_left)
		close(lane->left[--lane->n_left]);
}

/* ---- which path ---- */

static void put(struct lane *lane, unsigned path, uint64_t now)
{
	struct lane_paths *paths = &lane->comm->paths;

	lane->path = path;
	if (!paths->n || lane->trunk->engine)
		return;
	pthread_mutex_lock(&paths->lock);
	places_put(&paths->places, lane->number, path, now);
	pthread_mutex_unlock(&paths->lock);
}

void lane_moves_start(struct lane *lane, uint64_t now)
{
	put(lane, lane->path, now);
}

/* The path that is best for the lane; its own one if nothing has changed. */
static unsigned best_path(struct lane *lane, uint64_t now)
{
	struct lane_paths *paths = &lane->comm->paths;
	bool rests = stream_is_idle(&lane->stream), rated = lane->meter.rates != lane->rated;
	unsigned best = lane->path;

	if (!paths->n || lane->trunk->engine || (rests ? lane->rests : !rated))
		return best;
	lane->rests = rests;
	lane->rated = lane->meter.rates;
	pthread_mutex_lock(&paths->lock);
	if (rests) {
		places_rest(&paths->places, lane->number);
	} else {
		places_measured(&paths->places, lane->number, lane->meter.bps, now);
		best = places_choose(&paths->places, lane->number, now);
	}
	pthread_mutex_unlock(&paths->lock);
	return best;
}

/* The path beside the lane's own, which is dead. */
static unsigned next_path(struct lane *lane, uint64_t now)
{
	struct lane_paths *paths = &lane->comm->paths;
	unsigned best;

	if (!paths->n || lane->trunk->engine)
		return PATHS_MAX;
	pthread_mutex_lock(&paths->lock);
	if (lane->path < paths->n)
		places_dead(&paths->places, lane->path, now);
	best = places_best(&paths->places, lane->path, now);
	pthread_mutex_unlock(&paths->lock);
	return best;
}

/* Another own address, or only another port; false: there is no router that could choose. */
static bool any_source(const struct lane *lane, struct udp_address *from)
{
	struct udp_address own[PATHS_MAX];
	unsigned most, n = discovery_own(&lane->peer, own, PATHS_MAX);
	enum path_search search;
	struct rtnl_route route;

	if (!n || setting_paths(&search, &most) != TRIB_OK || search == PATHS_OFF ||
	    egress_route(&own[0], &lane->peer, &route) != TRIB_OK || !route.gateway_size)
		return false;
	*from = own[(lane->index + 1 + lane->n_left) % n];
	return true;
}

/* ---- moving ---- */

static bool move(struct lane *lane, const struct udp_address *from, unsigned path, uint64_t now)
{
	int left = lane->carrier->move(lane, from);

	if (left < 0)
		return false;
	lane->left[lane->n_left++] = left;
	lane->left_at = now;
	lane->times_left++;
	put(lane, path, now);
	lane->meter = (struct meter){ .rates = lane->meter.rates };
	stream_new_path(&lane->stream, lane->stream.by_delay);
	return true;
}

/* The aggregator is silent. */
static bool escape(struct lane *lane, uint64_t now)
{
	unsigned path = next_path(lane, now);
	struct udp_address from;
	char text[64];

	lane->left_at = now;
	if (path == PATHS_MAX ||
	    !path_source_find(&lane->peer, &lane->comm->paths.paths[path], &from)) {
		path = PATHS_MAX;
		if (!any_source(lane, &from))
			return false;
	}
	if (!move(lane, &from, path, now))
		return false;
	log_info("lane %u hears nothing, and goes on from %s", lane->number,
	         udp_text(&from, text, sizeof(text)));
	return true;
}

/* Another path carries more. If it cannot be reached, the lane tries again later. */
static bool change(struct lane *lane, unsigned path, uint64_t now)
{
	uint64_t bps = lane->meter.bps;
	struct udp_address from;
	char text[64];

	if (!path_source_find(&lane->peer, &lane->comm->paths.paths[path], &from) ||
	    !move(lane, &from, path, now)) {
		put(lane, lane->path, now);
		return false;
	}
	log_info("lane %u has %.0f Mb/s, and goes on from %s, on path %u", lane->number,
	         (double)bps / 1e6, udp_text(&from, text, sizeof(text)), path);
	return true;
}

bool lane_moves_check(struct lane *lane, uint64_t now)
{
	unsigned best;

	if (lane->n_left && !lane_moves_is_lost(lane) && now > lane->left_at + KEEP_NS)
		lane_moves_forget(lane);
	if (!lane->carrier->move || lane->n_left == LANE_LEFT_MAX)
		return false;
	best = best_path(lane, now);
	if (is_cut(lane, now))
		return escape(lane, now);
	return best != lane->path && best != PATHS_MAX && change(lane, best, now);
}
