/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses how a lane's packets are spaced in time: by the kernel, if the interface's queue is fq;
 * else by a token bucket in this process (path/pacer.h).
 */
#include "worker/transport/lane_internal.h"

#include "base/log.h"
#include "path/egress.h"

#include <stdio.h>

/* fq holds about 100 messages of a flow. With GSO each may be large. */
#define AHEAD_BYTES (1 << 20)
#define ROOM_SHARE 4u /* at least 1/4 of a send buffer is payload; the kernel uses the rest */

/* Writes the choice and its reason to `how`. */
static void choose(struct lane *lane, char *how, size_t size)
{
	struct egress egress;

	if (lane->comm->config.tcp)
		snprintf(how, size, "a token bucket: the plane is tcp");
	else if (lane->comm->config.bucket)
		snprintf(how, size, "a token bucket, as TRIB_PACING says");
	else if (egress_find(lane->fd, &egress) != TRIB_OK)
		snprintf(how, size, "a token bucket: %s", trib_last_error());
	else if (!rtnl_is_fair(&egress.qdisc))
		snprintf(how, size, "a token bucket: the queue of %s is %s, not fq",
		         egress.interface, *egress.qdisc.kind ? egress.qdisc.kind : "unknown");
	else if (!udp_let_times(lane->fd))
		snprintf(how, size,
		         "a token bucket: the kernel has no departure times (SO_TXTIME)");
	else if (!pacer_go_ahead(&lane->pacer,
	                         udp_send_room(lane->fd, lane->gso ? AHEAD_BYTES : 0) / ROOM_SHARE,
	                         egress.qdisc.flow_limit))
		snprintf(how, size, "a token bucket: fq on %s holds only %u packets of a flow",
		         egress.interface, egress.qdisc.flow_limit);
	else
		snprintf(how, size, "the kernel: the queue of %s is fq", egress.interface);
}

void pacing_start(struct lane *lane)
{
	char how[192], rate[64] = "unlimited";

	choose(lane, how, sizeof(how));
	if (lane->pacer.rate)
		snprintf(rate, sizeof(rate), "%.1f Mbit/s", (double)lane->pacer.rate / 1e6);
	log_info("lane %u is paced by %s; at first %s", lane->number, how, rate);
}

void pacing_end(const struct lane *lane)
{
	if (!lane->pacer.naps && !lane->pacer.messages)
		return;
	log_info("lane %u has slept %llu times for its rate; %llu messages had a time to leave",
	         lane->number, (unsigned long long)lane->pacer.naps,
	         (unsigned long long)lane->pacer.messages);
}

void pacing_moved(struct lane *lane)
{
	if (lane->pacer.held && udp_let_times(lane->fd))
		udp_send_room(lane->fd, lane->gso ? AHEAD_BYTES : 0);
}
