/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/transport/lane_paths.h"

#include "base/log.h"
#include "path/virtual/discovery.h"
#include "path/virtual/path_source.h"
#include "worker/dense/lane_count.h"

#define FIND_NS 500000000ull /* 0.5 s: the longest search for one path */

/* Slot lanes carry small vectors, and need no second path. */
static unsigned count_trees(const struct trib_comm *comm)
{
	unsigned n = 0;

	for (unsigned i = 0; i < comm->n_trunks; i++)
		n += !comm->trunks[i].engine;
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

	for (unsigned i = 0; i < comm->n_trunks && !comm->trunks[i].engine; i++) {
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
	if (!comm->config.tcp)
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
	unsigned tree = (unsigned)(lane->trunk - comm->trunks);
	unsigned after = (tree + comm->n_trunks - paths->tree) % comm->n_trunks;
	unsigned flow = after * comm->lanes_wanted + lane->index;
	const struct virtual_path *path;

	lane->path = PATHS_MAX;
	if (!paths->n || lane->trunk->engine)
		return false;
	path = &paths->paths[flow % paths->n];
	if (udp_same(&path->to, &lane->peer))
		*from = path->from;
	else if (paths->n == 1 || !path_source_find(&lane->peer, path, from))
		return false;
	lane->path = flow % paths->n;
	return true;
}
