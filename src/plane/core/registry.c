/* SPDX-License-Identifier: Apache-2.0 */
/* The communicators there are, who has left, who is dead. Thread 0 only: the slow path. */
#include "plane/core/internal.h"

#include "base/clock.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND NSEC_PER_SEC
#define CELLS_MIN 16u
#define CELLS_MAX (1u << 24)
#define FORMING_MAX (600 * SECOND)
#define PING_AFTER (6 * SECOND / 10) /* heartbeats come more often */
#define PING_AGGREGATOR_AFTER (SECOND / 5)
#define ABORT_FOR SECOND
#define LOOK_EVERY SECOND

struct comm *registry_find(struct aggregator *aggregator, uint16_t job,
                           const struct wire_join *join)
{
	for (unsigned id = 1; id < COMMS_MAX; id++) {
		struct comm *comm = aggregator->comms[id];

		if (comm && !comm->retired && comm->job == job && comm->key == join->key &&
		    comm->tree == join->tree && comm->generation == join->generation)
			return comm;
	}
	return NULL;
}

struct comm *registry_new(struct aggregator *aggregator, uint16_t job, const struct wire_join *join)
{
	struct comm *comm;
	unsigned id = 1;

	while (id < COMMS_MAX && aggregator->comms[id])
		id++;
	if (id == COMMS_MAX)
		return NULL;
	comm = calloc(1, sizeof(*comm));
	if (!comm)
		return NULL;
	if (!cookie_make(aggregator, job, &comm->cookie)) {
		free(comm);
		return NULL;
	}
	comm->job = job;
	comm->key = join->key;
	comm->id = (uint16_t)id;
	comm->epoch = 1;
	comm->tree = join->tree;
	comm->generation = join->generation;
	comm->size = join->size;
	comm->first = *join;
	comm->ranks = join_ranks(join);
	comm->has_parent = join->hops > 0;
	comm->created_at = aggregator->threads[0].now;
	aggregator->comms[id] = comm;
	return comm;
}

/* What a cell of the communicator takes of the aggregator's memory. */
static uint64_t cell_bytes(const struct aggregator *aggregator, const struct comm *comm)
{
	return aggregator->xdp ? sizeof(struct xdp_cell) + xdp_room(aggregator->xdp)
	                       : WIRE_HEADER + comm->payload;
}

void registry_retire(struct aggregator *aggregator, struct comm *comm)
{
	struct lane *lane = aggregator->threads[0].lanes[comm->id];

	comm->retired = true;
	if (!comm->running)
		return;
	if (comm->has_parent && atomic_load(&comm->failed) && lane && lane->comm == comm)
		parent_send_abort(&aggregator->threads[0], lane);
	aggregator->pools -= (uint64_t)comm->cells * comm->lanes * cell_bytes(aggregator, comm);
	for (unsigned i = 0; i < comm->lanes; i++)
		thread_post(&aggregator->threads[i], comm->id, NULL);
}

/*
 * What is for a group leaves by one interface: the children that are reached
 * from our address there, which most are where none was chosen before.
 */
static uint64_t group_children(const struct aggregator *aggregator, const struct comm *comm)
{
	struct udp_address from[WIRE_CHILDREN_MAX];
	uint64_t known = 0, best = 0;

	for (uint64_t left = comm->present; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctzll(left);
		const struct udp_address *to = &comm->children[i].address;

		if (to->storage.ss_family != AF_INET || udp_local(to, &from[i]) != TRIB_OK)
			continue;
		udp_set_port(&from[i], 0);
		/* Sockets are shared, and may be set to another interface. */
		if (!aggregator->group_local.length || udp_same(&aggregator->group_local, &from[i]))
			known |= dense_bit(i);
	}
	for (uint64_t left = known; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctzll(left);
		uint64_t alike = 0;

		for (uint64_t all = known; all; all &= all - 1)
			if (udp_same(&from[i], &from[__builtin_ctzll(all)]))
				alike |= all & -all;
		if (__builtin_popcountll(alike) > __builtin_popcountll(best))
			best = alike;
	}
	return best;
}

/* A group address of the communicator's own, from its random cookie. */
static void choose_group(struct aggregator *aggregator, struct comm *comm)
{
	struct sockaddr_in *group = (void *)&comm->group.storage;
	struct udp_address local;
	char interface[64];
	uint64_t children;
	unsigned mtu;

	if (!aggregator->options.multicast || __builtin_popcountll(comm->present) < 2)
		return;
	children = group_children(aggregator, comm);
	if (__builtin_popcountll(children) < 2 ||
	    udp_route(&comm->children[__builtin_ctzll(children)].address, &local, interface,
	              sizeof(interface)) != TRIB_OK)
		return;
	/* Children on this machine are reached by the loopback, a group by the interface alone. */
	mtu = udp_group_mtu(&local);
	if (mtu && mtu < udp_overhead(&local) + WIRE_HEADER + comm->payload) {
		log_info("communicator %u: no multicast: %s carries packets of %u bytes, and "
		         "fragments have %u",
		         comm->id, interface, mtu, comm->payload);
		return;
	}
	udp_set_port(&local, 0);
	aggregator->group_local = local;
	comm->grouped = children;
	group->sin_family = AF_INET;
	group->sin_addr.s_addr =
		htonl(0xef000000u | (uint32_t)(comm->cookie & 0x7fffff) | 0x400000u);
	group->sin_port = htons((uint16_t)(20000 + comm->cookie % 40000));
	comm->group.length = sizeof(*group);
	for (unsigned i = 0; i < aggregator->n_threads; i++)
		setsockopt(aggregator->threads[i].fd, IPPROTO_IP, IP_MULTICAST_IF,
		           &((const struct sockaddr_in *)&local.storage)->sin_addr,
		           sizeof(struct in_addr));
	log_info("communicator %u: results by multicast on %s to those of %u children who hear it",
	         comm->id, interface, (unsigned)__builtin_popcountll(children));
}

/*
 * What every child can bear is what all get. Where the kernel sums, so much as
 * it can sum: a longer fragment would be for user space.
 */
void registry_settle(const struct aggregator *aggregator, struct comm *comm)
{
	uint64_t limit = aggregator->options.pool_bytes;
	uint64_t left = limit > aggregator->pools ? limit - aggregator->pools : 0;

	comm->payload = WIRE_PAYLOAD_MAX;
	if (aggregator->xdp)
		comm->payload = xdp_room(aggregator->xdp);
	comm->lanes = aggregator->n_threads; /* one has a lane of a communicator at most */
	comm->pool_bytes = UINT64_MAX;
	comm->dead_after_ms = UINT32_MAX;
	for (uint64_t c = comm->present; c; c &= c - 1) {
		const struct wire_join *join = &comm->children[__builtin_ctzll(c)].join;
		uint32_t dead_after_ms = join->timeout_ms / 2 < 100 ? 100 : join->timeout_ms / 2;

		if (join->payload < comm->payload)
			comm->payload = join->payload & ~7u;
		if (join->lanes < comm->lanes)
			comm->lanes = join->lanes;
		if (join->pool_bytes < comm->pool_bytes)
			comm->pool_bytes = join->pool_bytes;
		if (dead_after_ms < comm->dead_after_ms)
			comm->dead_after_ms = dead_after_ms;
	}
	/* All of a tree have the same cells, so that nobody is ahead of anybody's window. */
	if (limit && comm->pool_bytes > left)
		comm->pool_bytes = left;
	if (!comm->parent.joined)
		return;
	comm->payload = comm->parent.payload;
	comm->lanes = comm->parent.lanes;
	if (comm->parent.dead_after_ms < comm->dead_after_ms)
		comm->dead_after_ms = comm->parent.dead_after_ms;
}

/* A newer plan runs: what the ranks had here under older ones is over. */
static void retire_older(struct aggregator *aggregator, const struct comm *comm)
{
	for (unsigned id = 1; id < COMMS_MAX; id++) {
		struct comm *old = aggregator->comms[id];

		if (old && !old->retired && old->job == comm->job && old->key == comm->key &&
		    old->generation < comm->generation)
			registry_retire(aggregator, old);
	}
}

/* All ranks are here: sizes are settled, lanes go to their threads. */
bool registry_start(struct aggregator *aggregator, struct comm *comm)
{
	struct lane *lanes[THREADS_MAX] = { NULL };
	uint64_t cells, limit = aggregator->options.pool_bytes, left, step;
	char text[64];

	registry_settle(aggregator, comm);
	retire_older(aggregator, comm);
	step = cell_bytes(aggregator, comm);
	cells = comm->pool_bytes / comm->lanes / (WIRE_HEADER + comm->payload);
	left = limit > aggregator->pools ? limit - aggregator->pools : 0;
	if (limit && cells > left / comm->lanes / step)
		cells = left / comm->lanes / step;
	comm->cells = cells < CELLS_MIN   ? CELLS_MIN
	              : cells > CELLS_MAX ? CELLS_MAX
	                                  : (uint32_t)cells;
	if (comm->has_parent && comm->parent.cells < comm->cells)
		comm->cells = comm->parent.cells;
	comm->created_at = aggregator->threads[0].now;
	choose_group(aggregator, comm);
	for (unsigned i = 0; i < comm->lanes; i++) {
		lanes[i] = lane_new(aggregator, comm, i);
		if (!lanes[i]) {
			while (i--)
				lane_free(lanes[i]);
			return false;
		}
		/* The first address of lane 0 is known already; it may be refused. */
		for (uint64_t c = comm->present; i == 0 && c; c &= c - 1) {
			unsigned child = (unsigned)__builtin_ctzll(c);

			lanes[0]->addresses[child] = comm->children[child].address;
			lanes[0]->known |= dense_bit(child);
		}
	}
	atomic_store(&comm->users, comm->lanes);
	for (unsigned i = 0; i < comm->lanes; i++) {
		rates_open(aggregator, lanes[i]);
		thread_post(&aggregator->threads[i], comm->id, lanes[i]);
	}
	comm->running = true;
	aggregator->pools += (uint64_t)comm->cells * comm->lanes * step;
	log_info(
		"job %u: communicator %u of %u ranks runs with %u children: %u lanes, %u fragments "
		"of %u bytes each%s%s",
		comm->job, comm->id, comm->size, (unsigned)__builtin_popcountll(comm->present),
		comm->lanes, comm->cells, comm->payload, comm->has_parent ? "; sums go up to " : "",
		comm->has_parent ? udp_text(&comm->parent.address, text, sizeof(text)) : "");
	return true;
}

void registry_bye(struct aggregator *aggregator, struct lane *lane,
                  const struct wire_control *header, const struct udp_address *from)
{
	struct comm *comm = lane->comm;
	struct wire_control echo = wire_answer(comm, lane, WIRE_BYE, header->child);

	if (header->child >= WIRE_CHILDREN_MAX ||
	    !(lane->dense->members & dense_bit(header->child))) {
		aggregator->threads[0].counters.drops[DROP_STRANGER]++;
		return;
	}
	echo.flags = WIRE_ECHO;
	thread_send(&aggregator->threads[0], &echo, sizeof(echo), from);
	comm->gone |= dense_bit(header->child);
	/* Only lane 0 is ours; the others see it by the mark in the communicator. */
	lane->dense->left |= dense_bit(header->child);
	rates_leave(aggregator, comm, header->child);
	dense_update_low(lane->dense);
}

/* Where a link has lost much, that may be why. */
static const char *losses_text(const struct lane *lane, unsigned child, char *out, size_t size)
{
	double share =
		lane->judged[child] ? (double)lane->missed[child] / (double)lane->judged[child] : 0;

	*out = '\0';
	if (share >= LOSSES_MAX)
		snprintf(out, size, "; its link lost %.1f %% of %llu packets before", share * 100,
		         (unsigned long long)lane->judged[child]);
	return out;
}

void registry_fail_silent(struct lane *lane, unsigned child, const char *why, uint64_t silent_ns)
{
	struct comm *comm = lane->comm;
	bool is_aggregator = comm->children[child].join.height;
	char text[200], losses[80];

	/* Where it is an aggregator that is lost, another tree may help. */
	registry_fail(comm, is_aggregator ? TRIB_ERR_AGGREGATOR : TRIB_ERR_PEER, child,
	              "%s is lost: %s, last heard of %.1f s ago%s; restart the job, or look at "
	              "that host's log for why the process ended",
	              comm_describe_child(comm, child, text, sizeof(text)), why,
	              (double)silent_ns / 1e9, losses_text(lane, child, losses, sizeof(losses)));
}

static void check_children(struct thread *thread, struct lane *lane, uint64_t gap)
{
	struct comm *comm = lane->comm;
	uint64_t dead_after = (uint64_t)comm->dead_after_ms * 1000000;

	for (uint64_t left = comm->present & ~comm->gone; left; left &= left - 1) {
		unsigned rank = (unsigned)__builtin_ctzll(left);
		/* Its workers know soon that it is lost; those elsewhere in the tree only by us. */
		uint64_t silent, patience = comm->children[rank].join.height ? PING_AGGREGATOR_AFTER
		                                                             : PING_AFTER;

		lane->heard_at[rank] += gap; /* we were stopped, not they */
		silent = clock_since(thread->now, lane->heard_at[rank]);
		if (silent > dead_after) {
			registry_fail_silent(lane, rank, "nothing has come from it", silent);
		} else if (silent > patience) {
			/* If its process is gone, the kernel there will say so. */
			struct wire_control ping = wire_answer(comm, lane, WIRE_BYE, WIRE_ALL);

			thread_send(thread, &ping, sizeof(ping), &lane->addresses[rank]);
		}
	}
}

static void tick_failed(struct thread *thread, struct lane *lane)
{
	struct comm *comm = lane->comm;

	if (!comm->failed_at)
		comm->failed_at = thread->now;
	if (thread->now > comm->failed_at + ABORT_FOR)
		return;
	for (uint64_t left = comm->present & ~comm->gone; left; left &= left - 1)
		lane_send_abort(thread, lane, (unsigned)__builtin_ctzll(left));
	if (comm->has_parent)
		parent_send_abort(thread, lane);
}

/* Has everyone left, and does everyone know? */
static bool is_over(struct thread *thread, struct lane *lane)
{
	struct comm *comm = lane->comm;

	if (comm->gone != comm->present)
		return false;
	return !comm->has_parent || atomic_load(&comm->failed) || parent_leave(thread, lane);
}

void registry_tick(struct aggregator *aggregator, uint64_t gap)
{
	struct thread *thread = &aggregator->threads[0];

	stats_serve(aggregator);
	leaves_serve(aggregator);
	if (aggregator->xdp && thread->now >= aggregator->look_at) {
		aggregator->look_at = thread->now + LOOK_EVERY;
		xdp_look(aggregator->xdp);
	}
	for (unsigned id = 1; id < COMMS_MAX; id++) {
		struct comm *comm = aggregator->comms[id];
		struct lane *lane = thread->lanes[id];
		uint64_t linger;

		if (!comm)
			continue;
		if (comm->retired) {
			if (atomic_load(&comm->users) == 0) {
				free(comm);
				aggregator->comms[id] = NULL;
			}
			continue;
		}
		if (!comm->running) {
			if (thread->now > comm->created_at + FORMING_MAX)
				comm->retired = true;
			else if (comm->has_parent)
				parent_tick_forming(aggregator, comm);
			continue;
		}
		if (!lane || lane->comm != comm)
			continue;
		linger = (uint64_t)comm->dead_after_ms * 1000000 + ABORT_FOR;
		if (atomic_load(&comm->failed))
			tick_failed(thread, lane);
		else
			check_children(thread, lane, gap);
		if (comm->has_parent && !atomic_load(&comm->failed))
			parent_check(thread, lane, gap);
		if (is_over(thread, lane) ||
		    (comm->failed_at && thread->now > comm->failed_at + linger))
			registry_retire(aggregator, comm);
	}
}

void registry_refused(struct aggregator *aggregator, const struct udp_address *address)
{
	struct thread *thread = &aggregator->threads[0];

	for (unsigned id = 1; id < COMMS_MAX; id++) {
		struct lane *lane = thread->lanes[id];

		if (!lane || atomic_load(&lane->comm->failed))
			continue;
		for (uint64_t left = lane->comm->present & ~lane->comm->gone; left;
		     left &= left - 1) {
			unsigned child = (unsigned)__builtin_ctzll(left);

			if (udp_same(&lane->addresses[child], address))
				registry_fail_silent(
					lane, child, "its port is closed, so its process has ended",
					clock_since(thread->now, lane->heard_at[child]));
		}
	}
	parent_refused(aggregator, address);
}

void registry_free(struct aggregator *aggregator)
{
	for (unsigned id = 0; id < COMMS_MAX; id++)
		free(aggregator->comms[id]);
}
