/* SPDX-License-Identifier: Apache-2.0 */
/* A lane's life, whichever engine it runs. */
#include "worker/transport/lane_carrier.h"
#include "worker/transport/transport.h"

#include "base/clock.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct lane *lane_make(struct trib_comm *comm, struct trunk *trunk)
{
	struct lane *lane = calloc(1, sizeof(*lane));

	if (!lane)
		return NULL;
	lane->comm = comm;
	lane->trunk = trunk;
	lane->engine = trunk->engine;
	lane->index = trunk->n_lanes;
	lane->fd = lane->group_fd = lane->wake_fd = lane->connecting_fd = -1;
	lane->carrier = comm->config.tcp ? &lane_carrier_tcp : &lane_carrier_udp;
	lane->kept_end = &lane->kept;
	return lane;
}

trib_status lane_open(struct lane *lane)
{
	lane->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (lane->wake_fd < 0)
		return status_fail_errno("cannot open an eventfd");
	lane->buffer = aligned_alloc(64, LANE_BUFFER_PACKETS * (WIRE_PACKET_MAX + 56));
	if (!lane->buffer)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for packet buffers");
	lane->peer = lane->trunk->aggregator;
	udp_set_port(&lane->peer, (uint16_t)(udp_port(&lane->peer) + lane->index));
	return lane->carrier->open(lane);
}

trib_status lane_start(struct lane *lane)
{
	return lane->engine->start(lane);
}

void lane_stop(struct lane *lane)
{
	if (!lane->started)
		return;
	lane_wake(lane);
	pthread_join(lane->thread, NULL);
	lane->started = false;
	if (lane->engine->stopped)
		lane->engine->stopped(lane);
}

void lane_close(struct lane *lane)
{
	struct round *rounds = lane_take_posted(lane, clock_now()); /* after the thread's end */
	struct round *round;

	while ((round = round_pop(&rounds)))
		round_free(round);
	if (lane->fd >= 0)
		tcp_close(lane->fd);
	if (lane->wake_fd >= 0)
		close(lane->wake_fd);
	lane->carrier->close(lane);
	if (lane->engine->close)
		lane->engine->close(lane);
	free(lane->buffer);
	free(lane);
}
