/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/transport/lane_paths.h"

#include "base/log.h"
#include "base/settings.h"
#include "path/balance/monitor.h"
#include "path/egress.h"
#include "path/virtual/discovery.h"
#include "worker/dense/lane_count.h"
#include "worker/transport/lane_carrier.h"

#include <unistd.h>

#define FIND_NS 150000000ull     /* 150 ms: the longest search for the path of one lane */
#define BUSY_AFTER 300000000ull  /* 300 ms of silence while results are due: the path may be cut */
#define IDLE_AFTER 1300000000ull /* 1.3 s: two heartbeats were not answered */

void lane_paths_find(struct trib_comm *comm)
{
	unsigned most = comm->config.lanes ? comm->lanes_wanted : LANES_AUTO_MAX;
	struct udp_address to = comm->trunks[0].aggregator;
	struct lane_paths *paths = &comm->paths;
	struct discovery *discovery;

	paths->n = 0;
	if (comm->config.tcp || (comm->n_trunks > 1 && !comm->trunks[1].engine))
		return; /* several trees have several paths anyway */
	if (discovery_start(&to, &discovery) != TRIB_OK) {
		log_info("lanes have no paths of their own: %s", trib_last_error());
		return;
	}
	do {
		paths->paths[paths->n] = *discovery_path(discovery, paths->n);
		paths->n++;
		udp_set_port(&to, (uint16_t)(udp_port(&to) + 1)); /* that of the next lane */
	} while (paths->n < most && discovery_find(discovery, &to, FIND_NS));
	paths->found = discovery_found(discovery);
	discovery_stop(discovery);
	if (paths->n == 1 && !udp_port(&paths->paths[0].from))
		paths->n = 0; /* what the kernel would choose */
	if (!comm->config.lanes && paths->n > comm->lanes_wanted)
		comm->lanes_wanted = paths->n;
}

const struct udp_address *lane_paths_from(const struct lane *lane)
{
	const struct trib_comm *comm = lane->comm;

	return lane->trunk == &comm->trunks[0] && lane->index < comm->paths.n
	               ? &comm->paths.paths[lane->index].from
	               : NULL;
}

/* Another own address, or only another port; false: there is no router that could choose. */
static bool other_source(const struct lane *lane, struct udp_address *from)
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

static uint64_t patience(const struct lane *lane)
{
	return stream_is_idle(&lane->stream) ? IDLE_AFTER : BUSY_AFTER;
}

bool lane_paths_is_silent(const struct lane *lane, uint64_t now)
{
	return now >= lane->heard_at + patience(lane);
}

bool lane_paths_check(struct lane *lane, uint64_t now)
{
	struct udp_address from;
	char text[64];

	if (lane->n_left && lane->heard_at > lane->left_at)
		lane_paths_forget(lane); /* the aggregator knows where we are */
	if (!lane->carrier->move || lane->n_left == LANE_LEFT_MAX ||
	    !lane_paths_is_silent(lane, now) || now < lane->left_at + patience(lane))
		return false;
	lane->left_at = now;
	if (!other_source(lane, &from))
		return false;
	lane->left[lane->n_left] = lane->carrier->move(lane, &from);
	if (lane->left[lane->n_left] < 0)
		return false;
	lane->n_left++;
	lane->times_left++;
	log_info("lane %u hears nothing, and goes on from %s", lane->number,
	         udp_text(&from, text, sizeof(text)));
	return true;
}

void lane_paths_forget(struct lane *lane)
{
	while (lane->n_left)
		close(lane->left[--lane->n_left]);
}
