/* SPDX-License-Identifier: Apache-2.0 */
#include "plane/membership/parent_session.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/peer_text.h"
#include "plane/core/failure.h"
#include "plane/core/join_check.h"
#include "plane/stream/parent_lane.h"
#include "plane/membership/comm_table.h"
#include "plane/membership/join_answer.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define ASK_EVERY TICK_NS
#define PATIENT_ASKS 8                    /* full-length JOINs, before shorter ones are tried */
#define AGAIN_ASKS 4u                     /* full-length JOINs, after a shorter one was answered */
#define LONELY_NS (2 * NSEC_PER_SEC)      /* 2 s without a JOIN of a child: no child waits */
#define TELL_AFTER (NSEC_PER_SEC / 2)     /* 500 ms: most children arrive sooner */
#define TELL_EVERY (NSEC_PER_SEC / 5)     /* 200 ms between two messages about arrived ranks */
#define PARENT_LOST_NS (2 * NSEC_PER_SEC) /* 2 s: after a longer silence the parent is lost */

struct join_packet {
	struct wire_control header;
	struct wire_join join;
	uint8_t padding[WIRE_PACKET_MAX - WIRE_CONTROL - sizeof(struct wire_join)];
};

/* The largest payload that the route to the parent carries. */
static uint32_t route_payload(const struct udp_address *peer)
{
	struct udp_options options = { .receive_bytes = 4096, .send_bytes = 4096 };
	unsigned mtu = 0, overhead = udp_overhead(peer) + WIRE_HEADER;
	bool gso;
	int fd;

	if (udp_open(NULL, peer, &options, &fd, &gso) == TRIB_OK) {
		mtu = udp_mtu(fd);
		close(fd);
	}
	if (mtu < overhead + WIRE_PAYLOAD_MIN)
		mtu = 1500;
	return (mtu - overhead) & ~7u;
}

static uint8_t height_of(const struct comm *comm)
{
	uint8_t height = 0;

	for (uint64_t left = comm->present; left; left &= left - 1) {
		uint8_t below = comm->children[__builtin_ctzll(left)].join.height;

		height = below > height ? below : height;
	}
	return height < UINT8_MAX ? height + 1 : height;
}

static void send_join(struct aggregator *aggregator, const struct comm *comm, uint32_t payload)
{
	const struct parent *parent = &comm->parent;
	bool waits = !parent->asking;
	uint32_t bytes = WIRE_HEADER + payload; /* as long as DATA will be */
	struct join_packet packet = {
		.header = { .magic = WIRE_MAGIC,
		            .type = WIRE_JOIN,
		            .cookie = comm->children[comm->first.rank].cookie,
		            .job = comm->job,
		            .child = parent->child,
		            .token = parent->token },
		.join = { .key = comm->key,
		          .pool_bytes = comm->pool_bytes,
		          .nonce = parent->nonce,
		          .covers = waits ? comm_arrived(comm) & comm->ranks : comm->ranks,
		          .ranks = comm->first.up[0].ranks,
		          .rank = parent->child,
		          .size = comm->size,
		          .payload = payload,
		          .lanes = waits ? 1 : comm->lanes,
		          .timeout_ms = 2 * comm->dead_after_ms,
		          .pid = (uint32_t)getpid(),
		          .generation = comm->generation,
		          .tree = comm->tree,
		          .hops = (uint8_t)(comm->first.hops - 1),
		          .height = height_of(comm),
		          .port = aggregator->port,
		          .waits = waits,
		          .tries = !waits && !parent->settled },
	};

	memcpy(packet.join.up, &comm->first.up[1], sizeof(packet.join.up[0]) * packet.join.hops);
	gethostname(packet.join.host, sizeof(packet.join.host) - 1);
	if (bytes < WIRE_JOIN_LEAST || aggregator->carrier->reliable)
		bytes = WIRE_JOIN_LEAST;
	thread_answer(&aggregator->threads[0], &packet, bytes, &parent->address);
}

/*
 * The payload of the next JOIN: full length. If nothing comes back, every third
 * JOIN is shorter, as with workers.
 */
static uint32_t next_length(struct parent *parent)
{
	static const uint32_t shorter[] = { 4016, 1448, 1416, 1368, 1248, 1040, 528 };
	unsigned k = parent->asks < PATIENT_ASKS ? 0 : parent->asks - PATIENT_ASKS;

	if (!parent->heard_at &&
	    !parent->settled) /* a small probe: nobody may be there, or not an aggregator */
		return WIRE_JOIN_LEAST - WIRE_HEADER;
	if (!parent->settled && parent->came && parent->again++ == AGAIN_ASKS)
		parent->settled = parent->came;
	if (parent->settled)
		return parent->settled;
	if (!parent->came && parent->asks >= PATIENT_ASKS && k % 3 == 0 &&
	    shorter[k / 3 % 7] < parent->full)
		return shorter[k / 3 % 7];
	return parent->full;
}

static void ask_again(struct aggregator *aggregator, struct comm *comm)
{
	struct parent *parent = &comm->parent;
	uint32_t payload = next_length(parent);

	parent->asks++;
	parent->asked_at = aggregator->threads[0].now;
	closed_port_probes(&parent->closing, parent->asked_at);
	if (!aggregator->carrier->reach(&aggregator->threads[0], &parent->address))
		return;
	send_join(aggregator, comm, payload);
}

/* Keeps the connection of earlier messages, if there is one. False: no random numbers. */
static bool parent_open(struct comm *comm)
{
	struct parent *parent = &comm->parent, told = *parent;

	*parent = (struct parent){ .child = (uint8_t)__builtin_ctzll(comm->ranks),
		                   .present = told.present,
		                   .token = told.token,
		                   .address = told.address };
	if (!told.telling)
		hop_address(&comm->first.up[0], &parent->address);
	return getrandom(&parent->nonce, sizeof(parent->nonce), 0) == sizeof(parent->nonce);
}

void parent_ask(struct aggregator *aggregator, struct comm *comm)
{
	struct parent *parent = &comm->parent;
	uint32_t fits;
	char address[64];

	comm_table_settle(aggregator, comm);
	if (!parent_open(comm)) {
		join_refuse_all(aggregator, comm, "no random numbers");
		return;
	}
	parent->asking = true;
	parent->since = aggregator->threads[0].now;
	fits = route_payload(&parent->address);
	parent->full = comm->payload < fits ? comm->payload : fits;
	parent->settled = aggregator->carrier->reliable ? parent->full : 0;
	log_info("job %u: all children of communicator %u have joined; asking the aggregator at %s",
	         comm->job, comm->id, udp_text(&parent->address, address, sizeof(address)));
	ask_again(aggregator, comm);
}

/* Not all ranks have arrived here. Tells the parent which have, for error messages elsewhere. */
static void tell_arrived(struct aggregator *aggregator, struct comm *comm)
{
	struct parent *parent = &comm->parent;
	uint64_t now = aggregator->threads[0].now;

	if (now < comm->created_at + TELL_AFTER || now < parent->asked_at + TELL_EVERY)
		return;
	if (!parent->telling && !parent_open(comm))
		return;
	parent->telling = true;
	parent->asked_at = now;
	if (aggregator->carrier->reach(&aggregator->threads[0], &parent->address))
		send_join(aggregator, comm, WIRE_PAYLOAD_MIN);
}

/* Only with a controller: it may have other trees, so waiting for the parent is of no use. */
static bool is_lost(const struct comm *comm, uint64_t now)
{
	const struct parent *parent = &comm->parent;
	uint64_t heard = parent->heard_at > parent->since ? parent->heard_at : parent->since;

	return comm->generation && (closed_port_is_proven(&parent->closing, now, CLOSED_PROBES) ||
	                            now > heard + PARENT_LOST_NS);
}

void parent_tick_forming(struct aggregator *aggregator, struct comm *comm)
{
	uint64_t now = aggregator->threads[0].now, asked = 0;
	char why[200], address[64];

	for (uint64_t left = comm->present | comm->forming; left; left &= left - 1) {
		uint64_t at = comm->children[__builtin_ctzll(left)].asked_at;

		asked = at > asked ? at : asked;
	}
	/* No child waits any more, so the parent need not hear of us. */
	if (now > asked + LONELY_NS)
		return;
	/* Until the parent answers, it gets no more than what the children have sent. */
	if (!comm->parent.heard_at && asked < comm->parent.asked_at)
		return;
	if (!comm->parent.asking) {
		tell_arrived(aggregator, comm);
	} else if (is_lost(comm, now)) {
		snprintf(why, sizeof(why), "the aggregator at %s is lost: %s",
		         udp_text(&comm->parent.address, address, sizeof(address)),
		         comm->parent.closed ? "its port is closed" : "it does not answer");
		join_abort_all(aggregator, comm, why);
	} else if (now >= comm->parent.asked_at + ASK_EVERY) {
		ask_again(aggregator, comm);
	}
}

/* Guards against a hostile or mistaken WELCOME. */
static bool welcome_ok(const struct comm *comm, const struct wire_welcome *welcome)
{
	return welcome->cells >= 2 && welcome->payload >= WIRE_PAYLOAD_MIN &&
	       welcome->payload <= comm->payload && welcome->payload % 8 == 0 &&
	       welcome->lanes >= 1 && welcome->lanes <= comm->lanes && welcome->comm < COMMS_MAX;
}

static void take_terms(struct comm *comm, const struct wire_welcome *welcome)
{
	struct parent *parent = &comm->parent;

	parent->joined = true;
	parent->asking = false;
	parent->payload = welcome->payload;
	parent->lanes = welcome->lanes;
	parent->cells = welcome->cells;
	parent->dead_after_ms = welcome->dead_after_ms ? welcome->dead_after_ms : 100;
	parent->cookie = welcome->cookie;
	parent->comm = welcome->comm;
	parent->epoch = welcome->epoch;
	parent->rate = welcome->rate;
	if (welcome->multicast_port && parent->address.storage.ss_family == AF_INET)
		udp_from_raw(&welcome->multicast_group, 4, welcome->multicast_port, &parent->group);
}

/* The communicator that has asked with this nonce, or NULL. */
static struct comm *find_asking(struct aggregator *aggregator, const struct wire_control *header)
{
	for (unsigned id = 1; id < COMMS_MAX; id++) {
		struct comm *comm = aggregator->comms[id];

		if (comm && !comm->retired && !comm->running &&
		    (comm->parent.asking || comm->parent.telling) && comm->job == header->job &&
		    comm->parent.child == header->child &&
		    (comm->parent.nonce & WIRE_POSITION_MASK) == header->pos)
			return comm;
	}
	return NULL;
}

/* A packet with this payload made the round trip. True: it is time to ask again. */
static bool note_passes(struct parent *parent, uint32_t payload)
{
	bool first = !parent->came;

	if (payload <= WIRE_JOIN_LEAST - WIRE_HEADER) { /* the small probe: now in full length */
		parent->asks = 0;
		return !parent->settled;
	}
	if (payload > parent->full)
		payload = parent->full;
	if (parent->settled || payload <= parent->came)
		return false;
	parent->came = payload;
	if (payload == parent->full)
		parent->settled = payload;
	return first || parent->settled;
}

bool parent_take_welcome(struct aggregator *aggregator, const struct wire_control *header,
                         uint32_t bytes)
{
	const struct wire_welcome *welcome = wire_payload(header);
	struct comm *comm = find_asking(aggregator, header);
	char address[64], why[WIRE_TEXT_MAX], text[WIRE_TEXT_MAX];
	struct parent *parent;
	bool asks;

	if (!comm || header->cookie != comm->children[comm->first.rank].cookie)
		return false;
	parent = &comm->parent;
	parent->heard_at = aggregator->threads[0].now;
	parent->token = header->token;
	parent->closed = false;
	parent->closing.since = 0;
	parent->present = welcome->present;
	if (!parent->asking) /* the parent was only told which ranks have arrived */
		return true;
	asks = note_passes(parent, (bytes - WIRE_HEADER) & ~7u);
	if (welcome->verdict == WIRE_REFUSED) {
		snprintf(why, sizeof(why), "the aggregator at %s refused: %.300s",
		         udp_text(&parent->address, address, sizeof(address)),
		         peer_text(text, sizeof(text), welcome->text, sizeof(welcome->text)));
		join_refuse_all(aggregator, comm, why);
	} else if (welcome->verdict == WIRE_JOINED && welcome_ok(comm, welcome)) {
		take_terms(comm, welcome);
		join_complete(aggregator, comm);
	} else if (*welcome->text) {
		/* The parent waits for its own parent. The children are told the reason. */
		peer_text(parent->text, sizeof(parent->text), welcome->text, sizeof(welcome->text));
	} else if (asks) {
		ask_again(aggregator, comm); /* now to join, or in full length */
	}
	return true;
}

bool parent_is_known(const struct aggregator *aggregator, const struct wire_control *header,
                     const struct udp_address *from)
{
	for (unsigned id = 1; id < COMMS_MAX; id++) {
		const struct comm *comm = aggregator->comms[id];

		if (!comm || comm->retired || comm->job != header->job)
			continue;
		if (comm->parent.asking
		            ? udp_same(&comm->parent.address, from)
		            : comm->parent.joined && comm->parent.cookie == header->cookie)
			return true;
	}
	return false;
}

bool parent_take_abort(struct aggregator *aggregator, const struct wire_control *header)
{
	const struct wire_abort *abort = wire_payload(header);
	char text[WIRE_TEXT_MAX];
	struct comm *comm = find_asking(aggregator, header);

	if (!comm || !comm->parent.asking ||
	    header->cookie != comm->children[comm->first.rank].cookie)
		return false;
	join_abort_all(aggregator, comm,
	               peer_text(text, sizeof(text), abort->text, sizeof(abort->text)));
	return true;
}

/* ---- while it runs ---- */

static void fail_lost(struct comm *comm, const char *why, uint64_t silent_ns)
{
	char address[64];

	comm_set_failed(comm, TRIB_ERR_AGGREGATOR, comm->parent.child,
	                "the aggregator at %s is lost: %s, last heard of %.1f s ago",
	                udp_text(&comm->parent.address, address, sizeof(address)), why,
	                (double)silent_ns / 1e9);
}

static void parent_seems_closed(struct parent *parent, uint64_t now)
{
	parent->closed = true;
	closed_port_hint(&parent->closing, now);
}

void parent_hung_up(struct thread *thread, uint64_t link)
{
	struct aggregator *aggregator = thread->aggregator;

	for (unsigned id = 1; id < thread->ids; id++) {
		struct agg_lane *lane = thread->lanes[id];

		if (lane && lane->comm->has_parent && lane->parent.link == link &&
		    !atomic_load(&lane->comm->failed) && !lane->comm->parent.echoed)
			fail_lost(lane->comm, "its connection is closed, so its process has ended",
			          clock_since(thread->now, lane->parent_heard_at));
	}
	for (unsigned id = 1; thread->index == 0 && id < COMMS_MAX; id++) {
		struct comm *comm = aggregator->comms[id];

		if (comm && (comm->parent.asking || comm->parent.telling) && !comm->running &&
		    comm->parent.address.link == link) {
			parent_seems_closed(&comm->parent, thread->now);
			comm->parent.address.link = 0;
		}
	}
}

void parent_check(struct thread *thread, struct agg_lane *lane, uint64_t gap)
{
	struct comm *comm = lane->comm;
	uint64_t dead_after = (uint64_t)comm->dead_after_ms * 1000000, silent;

	lane->parent_heard_at += gap; /* this process stood still, not the parent */
	silent = clock_since(thread->now, lane->parent_heard_at);
	closed_port_heard(&lane->parent_closed, lane->parent_heard_at);
	if (closed_port_is_proven(&lane->parent_closed, thread->now, CLOSED_PROBES))
		fail_lost(comm, "its port is closed, so its process has ended", silent);
	else if (silent > dead_after)
		fail_lost(comm, "nothing has come from it", silent);
	else if (closed_port_probes(&lane->parent_closed, thread->now))
		parent_lane_report_now(thread, lane);
}

bool parent_leave(struct thread *thread, struct agg_lane *lane)
{
	struct comm *comm = lane->comm;
	uint64_t patience = (uint64_t)comm->dead_after_ms * 1000000;
	struct wire_control bye = parent_lane_header(lane, WIRE_BYE);

	if (comm->parent.echoed)
		return true;
	if (!comm->parent.bye_since)
		comm->parent.bye_since = thread->now;
	if (thread->now > comm->parent.bye_since + patience)
		return true; /* it will notice our silence */
	if (atomic_load(&comm->idle_lanes) == (1u << comm->lanes) - 1)
		thread_send(thread, &bye, sizeof(bye), &lane->parent);
	return false;
}

void parent_port_closed(struct aggregator *aggregator, const struct udp_address *address)
{
	struct thread *thread = &aggregator->threads[0];

	for (unsigned id = 1; id < COMMS_MAX; id++) {
		struct comm *comm = aggregator->comms[id];
		struct agg_lane *lane = thread->lanes[id];

		if (!comm || comm->retired || !comm->has_parent ||
		    !udp_same(&comm->parent.address, address))
			continue;
		if (comm->parent.asking) {
			parent_seems_closed(&comm->parent, thread->now);
		} else if (lane && lane->comm == comm && !atomic_load(&comm->failed) &&
		           !comm->parent.echoed) {
			closed_port_hint(&lane->parent_closed, thread->now);
		}
	}
}
