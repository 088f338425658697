/* SPDX-License-Identifier: Apache-2.0 */
#include "plane/membership/join_server.h"

#include "base/clock.h"
#include "base/peer_text.h"
#include "path/address_proof.h"
#include "plane/core/cookies.h"
#include "plane/core/failure.h"
#include "plane/core/join_check.h"
#include "plane/lane/agg_lane.h"
#include "plane/membership/comm_table.h"
#include "plane/membership/join_answer.h"
#include "plane/membership/parent_session.h"

#include <stdio.h>
#include <string.h>

#define CHILD_SILENT_NS NSEC_PER_SEC /* 1 s: a waiting child asks more often, else it is gone */

/* How a JOIN conflicts with a communicator of the same name. */
enum conflict { CONFLICT_NONE, CONFLICT_OVER, CONFLICT_WAIT, CONFLICT_HELD };

/* The child that covers ranks which this JOIN claims; if none, the rank itself. */
static unsigned holder_of(const struct comm *comm, const struct wire_join *join)
{
	for (uint64_t left = comm->present; left; left &= left - 1) {
		unsigned child = (unsigned)__builtin_ctzll(left);

		if (join_covers(&comm->children[child].join) & join_covers(join))
			return child;
	}
	return join->rank;
}

/*
 * When the children that the JOIN would replace last asked: the holder of its
 * ranks, or, if the tree differs, all children.
 */
static uint64_t last_asked(const struct comm *comm, const struct wire_join *join)
{
	uint64_t last = 0;

	if (join_same_tree(&comm->first, join))
		return comm->children[holder_of(comm, join)].asked_at;
	for (uint64_t ranks = comm->present; ranks; ranks &= ranks - 1) {
		uint64_t at = comm->children[__builtin_ctzll(ranks)].asked_at;

		last = at > last ? at : last;
	}
	return last;
}

/*
 * Has the present holder been heard since the rival first asked? A living holder soon is. All
 * ranks that want another tree, or another size, are one rival.
 */
static bool spoke_since(struct comm *comm, const struct wire_join *join, uint64_t spoke_at,
                        uint64_t now)
{
	uint64_t rival = join_same_tree(&comm->first, join) ? join->nonce : ~(uint64_t)join->size;

	if (comm->rival_nonce != rival) {
		comm->rival_nonce = rival;
		comm->rival_since = now;
	}
	return spoke_at > comm->rival_since;
}

static enum conflict find_conflict(const struct aggregator *aggregator, struct comm *comm,
                                   const struct wire_join *join)
{
	const struct thread *thread = &aggregator->threads[0];
	const struct agg_lane *lane = thread->lanes[comm->id];
	const struct child *child = &comm->children[join->rank & 63];
	bool same = join_same_tree(&comm->first, join);
	uint64_t spoke_at;

	if (same && comm->present & child_bit(join->rank) && child->join.nonce == join->nonce)
		return CONFLICT_NONE; /* the same process, asking again */
	if (!comm->running) {
		if (same && !(comm->covered & join_covers(join)))
			return CONFLICT_NONE;
		/* A waiting child asks again and again. A child that stopped asking is gone. */
		spoke_at = last_asked(comm, join);
		if (thread->now > spoke_at + CHILD_SILENT_NS)
			return CONFLICT_OVER;
	} else {
		if (atomic_load(&comm->failed))
			return CONFLICT_OVER;
		/* The parent must know first, or it would take the new communicator for a rival. */
		if (comm->gone == comm->present)
			return comm->has_parent && !comm->parent.echoed ? CONFLICT_WAIT
			                                                : CONFLICT_OVER;
		/* Other children may still need results. */
		if (comm->gone || !lane || join->rank >= comm->size)
			return CONFLICT_WAIT;
		spoke_at = lane->heard_at[holder_of(comm, join)];
	}
	return spoke_since(comm, join, spoke_at, thread->now) ? CONFLICT_HELD : CONFLICT_WAIT;
}

/*
 * An aggregator below asks again from the address of a child that has joined. There
 * is one process per port, so the old process is gone. Its ranks know nothing of
 * what the others have begun.
 */
static bool is_reborn(const struct comm *comm, const struct wire_join *join,
                      const struct udp_address *from)
{
	const struct child *child = &comm->children[join->rank & 63];

	return comm->running && join->height && comm->present & child_bit(join->rank) &&
	       !(comm->gone & child_bit(join->rank)) && child->join.nonce != join->nonce &&
	       child->join.pid != join->pid && !from->link && udp_same(&child->address, from);
}

/* Two children of one communicator were given different trees. */
static void refuse_tree(struct aggregator *aggregator, const struct wire_control *header,
                        uint32_t bytes, const struct udp_address *from, const struct comm *comm)
{
	const struct wire_join *join = wire_payload(header);
	char other[200], ranks[64], theirs[64], up[64] = "none", their_up[64] = "none";
	struct udp_address address;

	if (join->hops)
		udp_text((hop_address(&join->up[0], &address), &address), up, sizeof(up));
	if (comm->first.hops)
		udp_text((hop_address(&comm->first.up[0], &address), &address), their_up,
		         sizeof(their_up));
	comm_describe_child(comm, (unsigned)__builtin_ctzll(comm->present), other, sizeof(other));
	join_refuse(
		aggregator, header, bytes, from,
		"rank %u (host %.40s) says that ranks %s come together here, with %u aggregators "
		"above (the next: %s); %s said %s, with %u above (the next: %s)",
		join->rank, join->host, ranks_text(join_ranks(join), ranks, sizeof(ranks)),
		join->hops, up, other, ranks_text(comm->ranks, theirs, sizeof(theirs)),
		comm->first.hops, their_up);
}

/* NULL: the sender cannot join now, and has been told. */
static struct comm *admit(struct aggregator *aggregator, const struct wire_control *header,
                          uint32_t bytes, const struct udp_address *from)
{
	const struct wire_join *join = wire_payload(header);
	struct comm *comm = comm_table_find(aggregator, header->job, join);
	enum conflict conflict;
	char text[200], why[COMM_WHY_MAX];

	if (comm && !atomic_load(&comm->failed) && is_reborn(comm, join, from))
		comm_set_failed(comm, TRIB_ERR_AGGREGATOR, join->rank,
		                "%s was restarted, and asks to join again",
		                comm_describe_child(comm, join->rank, text, sizeof(text)));
	conflict = comm ? find_conflict(aggregator, comm, join) : CONFLICT_NONE;
	if (conflict == CONFLICT_WAIT) {
		join_answer_wait(aggregator, header, bytes, from, 0);
		return NULL;
	}
	if (conflict == CONFLICT_HELD && comm->size != join->size) {
		join_refuse(aggregator, header, bytes, from,
		            "rank %u says that the job has %u ranks, others said %u", join->rank,
		            join->size, comm->size);
		return NULL;
	}
	if (conflict == CONFLICT_HELD && !join_same_tree(&comm->first, join)) {
		refuse_tree(aggregator, header, bytes, from, comm);
		return NULL;
	}
	if (conflict == CONFLICT_HELD) {
		join_refuse(aggregator, header, bytes, from,
		            "%s has joined already; job %u is not free",
		            comm_describe_child(comm, holder_of(comm, join), text, sizeof(text)),
		            header->job);
		return NULL;
	}
	if (conflict == CONFLICT_OVER) {
		comm_table_retire(aggregator, comm);
		comm = NULL;
	}
	if (!comm && !(comm = comm_table_new(aggregator, header->job, join, from, why)))
		join_refuse(aggregator, header, bytes, from, "%s", why);
	return comm;
}

/* True: the engine runs on a device, which has too little for so many ranks. */
static bool engine_fault(const struct aggregator *aggregator, const struct wire_join *join,
                         char *why)
{
	const struct engine *engine = aggregator_engine(aggregator, join->engine);
	uint32_t payload = join->payload & ~7u, cells = ENGINE_CELLS_MIN;

	return engine && engine->fit && !engine->fit(join->size, &payload, &cells, why);
}

/* Anyone with a cookie could else make this aggregator send to any address. */
static bool parent_is_allowed(const struct aggregator *aggregator, const struct wire_join *join,
                              char why[300])
{
	struct udp_address parent;
	char text[64];

	hop_address(&join->up[0], &parent);
	if (network_list_has(&aggregator->options.parents, &parent))
		return true;
	snprintf(why, 300,
	         "the aggregator above this one, %s, is in no network to which this one sends its "
	         "sums: name it with tribd --parents",
	         udp_text(&parent, text, sizeof(text)));
	return false;
}

static bool is_possible(struct aggregator *aggregator, const struct wire_control *header,
                        uint32_t bytes, const struct udp_address *from)
{
	const struct wire_join *join = wire_payload(header);
	const struct engine *engine = aggregator_engine(aggregator, join->engine);
	char why[300];

	if (cookie_has_ended(aggregator, header->job, header->cookie)) {
		join_refuse(aggregator, header, bytes, from, "job %u has ended at its controller",
		            header->job);
		return false;
	}
	if (aggregator->carrier->needs_connection && !from->link) {
		join_refuse(aggregator, header, bytes, from, "%s",
		            aggregator->carrier->needs_connection);
		return false;
	}
	if (join->size < 1 || join->size > WIRE_CHILDREN_MAX || join->rank >= join->size) {
		join_refuse(aggregator, header, bytes, from,
		            "rank %u of %u: an aggregator takes 1 to %u ranks", join->rank,
		            join->size, WIRE_CHILDREN_MAX);
		return false;
	}
	if (join->payload < WIRE_PAYLOAD_MIN || join->lanes < 1 || join->lanes > WIRE_LANES_MAX) {
		join_refuse(
			aggregator, header, bytes, from,
			"rank %u asks for %u lanes and %u bytes a packet; this aggregator takes 1 "
			"to "
			"%u lanes and %u bytes or more",
			join->rank, join->lanes, join->payload, WIRE_LANES_MAX, WIRE_PAYLOAD_MIN);
		return false;
	}
	if (!engine || (aggregator->carrier->reliable && !engine->streams)) {
		join_refuse(aggregator, header, bytes, from,
		            "rank %u asks for engine %u, which the %s plane does not have",
		            join->rank, join->engine, aggregator->carrier->plane);
		return false;
	}
	if (!engine->streams && (join->hops || join->height)) {
		join_refuse(aggregator, header, bytes, from,
		            "rank %u asks for engine %u in a tree: only dense sums go up",
		            join->rank, join->engine);
		return false;
	}
	if (engine_fault(aggregator, join, why)) {
		join_refuse(aggregator, header, bytes, from,
		            "rank %u asks for engine %u, which the %s plane cannot run here: %s "
		            "Set TRIB_ENGINE=dense on all ranks, or use another plane",
		            join->rank, join->engine, aggregator->plane_name, why);
		return false;
	}
	if (join->hops && !parent_is_allowed(aggregator, join, why)) {
		join_refuse(aggregator, header, bytes, from, "%s", why);
		return false;
	}
	if (join_fault(aggregator->port, aggregator->n_threads, join, why, sizeof(why))) {
		join_refuse(aggregator, header, bytes, from, "%s", why);
		return false;
	}
	return true;
}

static void note_asker(struct aggregator *aggregator, struct child *child,
                       const struct wire_control *header, uint32_t bytes)
{
	child->asked_at = aggregator->threads[0].now;
	child->asked_bytes = bytes;
	child->cookie = header->cookie;
}

static void note_child(struct child *child, const struct wire_join *join,
                       const struct udp_address *from)
{
	child->join = *join;
	peer_name(child->join.host, sizeof(child->join.host), join->host, sizeof(join->host));
	child->address = *from;
}

/*
 * A child that is an aggregator waits for children of its own, and tells which
 * ranks have arrived. It does not join yet.
 */
static void hear_forming(struct aggregator *aggregator, const struct wire_control *header,
                         uint32_t bytes, const struct udp_address *from)
{
	const struct wire_join *join = wire_payload(header);
	struct comm *comm = comm_table_find(aggregator, header->job, join);
	char why[COMM_WHY_MAX];
	struct child *child;

	/* If the table is full, the child is told when it asks to join. */
	if (!comm && !(comm = comm_table_new(aggregator, header->job, join, from, why)))
		return;
	if (comm->running || comm->parent.asking || comm->present & child_bit(join->rank) ||
	    !join_same_tree(&comm->first, join))
		return;
	child = &comm->children[join->rank];
	note_asker(aggregator, child, header, bytes);
	note_child(child, join, from);
	child->here = join_covers(join);
	comm->forming |= child_bit(join->rank);
	join_answer(aggregator, comm, join->rank);
}

/* The sender tests whether an answer of this length arrives. It does not join by this JOIN. */
static void hear_try(struct aggregator *aggregator, const struct wire_control *header,
                     uint32_t bytes, const struct udp_address *from)
{
	const struct comm *comm = comm_table_find(aggregator, header->job, wire_payload(header));

	join_answer_wait(aggregator, header, bytes, from,
	                 comm && !comm->running ? comm_arrived(comm) : 0);
}

void join_take(struct aggregator *aggregator, const struct wire_control *header, uint32_t bytes,
               const struct udp_address *from)
{
	const struct wire_join *join = wire_payload(header);
	struct comm *comm;
	struct child *child;

	if (!is_possible(aggregator, header, bytes, from))
		return;
	/* Until its address is proven, the sender gets one short answer and no seat. */
	if (join->tries || !address_is_proven(&aggregator->address_secret, from, header->token)) {
		hear_try(aggregator, header, bytes, from);
		return;
	}
	if (join->waits) {
		hear_forming(aggregator, header, bytes, from);
		return;
	}
	if (!(comm = admit(aggregator, header, bytes, from)))
		return;
	child = &comm->children[join->rank];
	note_asker(aggregator, child, header, bytes);
	if (comm->running || comm->parent.asking) {
		join_answer(aggregator, comm, join->rank);
		return;
	}
	note_child(child, join, from);
	comm->forming &= ~child_bit(join->rank);
	comm->present |= child_bit(join->rank);
	comm->covered |= join_covers(join);
	if (comm->covered != comm->ranks) {
		join_answer(aggregator, comm, join->rank);
		return;
	}
	if (comm->has_parent) {
		parent_ask(aggregator, comm);
		return;
	}
	join_complete(aggregator, comm);
}
