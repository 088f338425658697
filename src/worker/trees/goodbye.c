/* SPDX-License-Identifier: Apache-2.0 */
/* The last packets to the aggregators: BYE, or ABORT with the reason. No lane's thread runs. */
#include "worker/trees/trees.h"
#include "worker/transport/lane_carrier.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define BYE_TRIES 10

static struct wire_control address_to(const struct trib_comm *comm, const struct trunk *trunk,
                                      uint8_t type)
{
	return (struct wire_control){ .type = type,
		                      .cookie = trunk->welcome.cookie,
		                      .job = comm->config.job,
		                      .comm = trunk->welcome.comm,
		                      .epoch = trunk->welcome.epoch,
		                      .child = (uint8_t)comm->config.rank };
}

static void tell(struct trib_comm *comm, struct wire_abort abort)
{
	struct {
		struct wire_control header;
		struct wire_abort abort;
	} packet = { .abort = abort };

	for (unsigned i = 0; i < comm->n_trunks; i++) {
		struct lane *lane = comm->trunks[i].n_lanes ? comm->trunks[i].lanes[0] : NULL;
		int error;

		if (!lane || !comm->trunks[i].welcome.cookie)
			continue; /* not joined */
		packet.header = address_to(comm, &comm->trunks[i], WIRE_ABORT);
		/* If the packet is lost, the other ranks run into their own timeouts. */
		error = lane->carrier->send_one(lane, &packet, sizeof(packet));
		if (error)
			log_debug("cannot tell of a failure: %s", strerror(-error));
	}
}

static struct wire_abort describe(struct trib_comm *comm, trib_status status)
{
	struct wire_abort abort = { .rank = (uint32_t)comm->config.rank, .status = status };

	snprintf(abort.text, sizeof(abort.text), "%.*s", (int)sizeof(abort.text) - 1,
	         comm->failure);
	return abort;
}

void comm_tell_failure(struct trib_comm *comm)
{
	struct wire_abort abort;
	bool told;

	pthread_mutex_lock(&comm->lock);
	told = comm->told;
	comm->told = true;
	abort = describe(comm, comm->failed);
	pthread_mutex_unlock(&comm->lock);
	if (told)
		return;
	pthread_mutex_lock(&comm->trunks_lock); /* the turn client may be leaving a star */
	tell(comm, abort);
	pthread_mutex_unlock(&comm->trunks_lock);
}

void comm_tell_trees_lost(struct trib_comm *comm)
{
	struct wire_abort abort;

	pthread_mutex_lock(&comm->lock);
	abort = describe(comm, TRIB_ERR_AGGREGATOR);
	pthread_mutex_unlock(&comm->lock);
	tell(comm, abort);
}

/* An ABORT is as good as an echo of our BYE: there is nothing left to leave. */
static bool is_echo(const struct lane *lane, const struct wire_control *header)
{
	return header && (header->type == WIRE_BYE || header->type == WIRE_ABORT) &&
	       header->cookie == lane->trunk->welcome.cookie &&
	       header->child == lane->comm->config.rank;
}

/* Takes what has come; as lane_carrier.receive. */
static int hear_echo(struct lane *lane, bool *heard)
{
	int n = lane->carrier->receive(lane);

	for (unsigned i = 0; i < lane->batch.n; i++)
		*heard |= is_echo(lane, wire_control(lane->batch.packets[i].header));
	return n;
}

/* Removes trees from the set whose aggregator has heard the BYE, or is gone. */
static uint64_t hear_echoes(struct trib_comm *comm, uint64_t left, bool *any)
{
	for (unsigned i = 0; i < comm->n_trunks; i++) {
		struct lane *lane = comm->trunks[i].lanes[0];
		bool heard = false;
		int n = left >> i & 1 ? hear_echo(lane, &heard) : 0;

		*any |= n > 0;
		if (n < 0 || heard)
			left &= ~(1ull << i);
	}
	return left;
}

void trunk_say_bye(struct trib_comm *comm, struct trunk *trunk)
{
	struct wire_control bye = address_to(comm, trunk, WIRE_BYE);
	int error = trunk->lanes[0]->carrier->send_one(trunk->lanes[0], &bye, sizeof(bye));

	if (error)
		log_debug("good-bye to a shared aggregator: %s", strerror(-error));
}

bool trunk_hears_bye(struct trunk *trunk)
{
	struct lane *lane = trunk->lanes[0];
	bool heard = false;
	int n;

	do
		n = hear_echo(lane, &heard);
	while (n > 0 && !heard);
	return heard || (n < 0 && n != -EAGAIN);
}

_Static_assert(FOREST_TREES_MAX <= 64, "a bit for each tree");

void comm_leave(struct trib_comm *comm)
{
	uint64_t left = ~0ull >> (64 - comm->n_trunks); /* a bit for each tree: 1 to 64 */

	for (int try = 0; left && try < BYE_TRIES; try++) {
		uint64_t until = clock_now() + (20000000ull << try / 3);

		for (unsigned i = 0; i < comm->n_trunks; i++) {
			struct wire_control bye = address_to(comm, &comm->trunks[i], WIRE_BYE);
			struct lane *lane = comm->trunks[i].lanes[0];
			int error = left >> i & 1 ? lane->carrier->send_one(lane, &bye, sizeof(bye))
			                          : 0;

			if (error && error != -EAGAIN)
				left &= ~(1ull << i); /* the aggregator is gone */
		}
		while (left && clock_now() < until) {
			struct timespec nap = clock_span(200000);
			bool any = false;

			left = hear_echoes(comm, left, &any);
			if (left && !any)
				nanosleep(&nap, NULL);
		}
	}
}
