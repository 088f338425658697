/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/transport/lane_paths.h"

#include "base/log.h"
#include "base/settings.h"
#include "path/egress.h"
#include "path/virtual/discovery.h"
#include "path/virtual/path_source.h"
#include "worker/dense/lane_count.h"
#include "worker/transport/lane_carrier.h"

#include <unistd.h>

#define FIND_NS 500000000ull     /* 0.5 s: the longest search for one path */
#define BUSY_AFTER 300000000ull  /* 300 ms of silence while results are due: the path may be cut */
#define IDLE_AFTER 1300000000ull /* 1.3 s: two heartbeats were not answered */
#define ALL_SILENT 4u            /* times as long, if all lanes hear nothing */
#define KEEP_NS 1000000000ull    /* 1 s: results may still come on a path that was left */

/* ---- the search ---- */

/* Lanes of small vectors need no second path. */
static unsigned count_trees(const struct trib_comm *comm)
{
	unsigned n = 0;

	for (unsigned i = 0; i < comm->n_trunks; i++)
		n += !comm->trunks[i].engine->small;
	return n;
}

/* Without routers that tell paths apart, each own address is a path: the aliases first. */
static void add_addresses(struct lane_paths *paths, const struct udp_address *to, unsigned most)
{
	struct udp_address own[PATHS_MAX];
	unsigned n = discovery_own(to, own, PATHS_MAX);

	for (paths->n = 0; paths->n < n && paths->n < most; paths->n++)
		paths->paths[paths->n] =
			(struct virtual_path){ .from = own[(paths->n + 1) % n], .to = *to };
}

/* One path for each lane of this tree, and more for other trees. */
static void search(struct lane_paths *paths, struct discovery *discovery,
                   const struct udp_address *aggregator, unsigned most)
{
	struct udp_address to = *aggregator;

	do {
		paths->paths[paths->n] = *discovery_path(discovery, paths->n);
		paths->n++;
		udp_set_port(&to, (uint16_t)(udp_port(&to) + 1)); /* that of the next lane */
	} while (paths->n < most && discovery_find(discovery, &to, FIND_NS));
	paths->found = discovery_found(discovery);
	if (paths->found == FOUND_ADDRESSES || paths->found == FOUND_MUTE)
		add_addresses(paths, aggregator, most);
}

/* The first tree whose aggregator is not behind the first router. */
static struct discovery *start(struct trib_comm *comm)
{
	struct discovery *discovery = NULL;

	for (unsigned i = 0; i < comm->n_trunks && !comm->trunks[i].engine->small; i++) {
		discovery_stop(discovery);
		if (discovery_start(&comm->trunks[i].aggregator, &discovery) != TRIB_OK) {
			log_info("lanes have no paths of their own: %s", trib_last_error());
			return NULL;
		}
		comm->paths.tree = i;
		comm->paths.found = discovery_found(discovery);
		if (comm->paths.found != FOUND_NEAR)
			break;
	}
	return discovery;
}

/* Ranks that are near an aggregator do not know how many paths the others have. */
static unsigned lanes_for(const struct lane_paths *paths, unsigned trees)
{
	return (paths->found == FOUND_NEAR ? LANES_AUTO_MAX : paths->n) / trees;
}

void lane_paths_find(struct trib_comm *comm)
{
	unsigned trees = count_trees(comm);
	unsigned most = comm->config.lanes ? comm->lanes_wanted * trees : LANES_AUTO_MAX;
	struct lane_paths *paths = &comm->paths;
	struct discovery *discovery = NULL;

	paths->n = 0;
	if (trees && !comm->config.tcp)
		discovery = start(comm);
	if (!discovery)
		return;
	search(paths, discovery, &comm->trunks[paths->tree].aggregator,
	       most < PATHS_MAX ? most : PATHS_MAX);
	discovery_stop(discovery);
	if (!comm->config.lanes && lanes_for(paths, trees) > comm->lanes_wanted)
		comm->lanes_wanted = lanes_for(paths, trees);
	if (paths->n == 1 && !udp_port(&paths->paths[0].from))
		paths->n = 0; /* what the kernel would choose */
	places_init(&paths->places, paths->n);
}

/* Lane k of the searched tree has path k; the trees behind it go on from there. */
bool lane_paths_from(struct lane *lane, struct udp_address *from)
{
	const struct trib_comm *comm = lane->comm;
	const struct lane_paths *paths = &comm->paths;
	unsigned trees = comm->n_trunks, tree = (unsigned)(lane->trunk - comm->trunks);
	unsigned after = (tree + trees - paths->tree) % trees;
	unsigned flow = after * comm->lanes_wanted + lane->index;
	const struct virtual_path *path;

	lane->path = PATHS_MAX;
	if (!paths->n || lane->engine->small)
		return false;
	path = &paths->paths[flow % paths->n];
	if (udp_same(&path->to, &lane->peer))
		*from = path->from;
	else if (paths->n == 1 || !path_source_find(&lane->peer, path, from))
		return false;
	lane->path = flow % paths->n;
	return true;
}

/* ---- silence ---- */

static uint64_t patience(const struct lane *lane)
{
	return stream_is_idle(&lane->stream) ? IDLE_AFTER : BUSY_AFTER;
}

bool lane_paths_is_silent(const struct lane *lane, uint64_t now)
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
	if (!lane_paths_is_silent(lane, now) || paths->found == FOUND_NEAR ||
	    now < lane->left_at + patience(lane))
		return false;
	return paths->n < 2 || lane->comm->own.striping.n < 2 || now < heard + patience(lane) ||
	       now >= lane->heard_at + ALL_SILENT * patience(lane);
}

bool lane_paths_is_lost(const struct lane *lane)
{
	return lane->n_left && lane->heard_at <= lane->left_at;
}

void lane_paths_forget(struct lane *lane)
{
	while (lane->n_left)
		close(lane->left[--lane->n_left]);
}

/* ---- which path a lane takes ---- */

static void put(struct lane *lane, unsigned path, uint64_t now)
{
	struct lane_paths *paths = &lane->comm->paths;

	lane->path = path;
	if (!paths->n || lane->engine->small)
		return;
	pthread_mutex_lock(&paths->lock);
	places_put(&paths->places, lane->number, path, now);
	pthread_mutex_unlock(&paths->lock);
}

void lane_paths_start(struct lane *lane, uint64_t now)
{
	put(lane, lane->path, now);
}

/* The path that is best for the lane; its own one if nothing has changed. */
static unsigned best_path(struct lane *lane, uint64_t now)
{
	struct lane_paths *paths = &lane->comm->paths;
	bool rests = stream_is_idle(&lane->stream), rated = lane->meter.rates != lane->rated;
	unsigned best = lane->path;

	if (!paths->n || lane->engine->small || (rests ? lane->rests : !rated))
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

	if (!paths->n || lane->engine->small)
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

bool lane_paths_check(struct lane *lane, uint64_t now)
{
	unsigned best;

	if (lane->n_left && !lane_paths_is_lost(lane) && now > lane->left_at + KEEP_NS)
		lane_paths_forget(lane);
	if (!lane->carrier->move || lane->n_left == LANE_LEFT_MAX)
		return false;
	best = best_path(lane, now);
	if (is_cut(lane, now))
		return escape(lane, now);
	return best != lane->path && best != PATHS_MAX && change(lane, best, now);
}
