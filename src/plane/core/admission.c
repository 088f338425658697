/* SPDX-License-Identifier: Apache-2.0 */
/* JOIN and its answers: who is let in, who has to wait, who is refused and why. */
#include "plane/core/internal.h"

#include "base/clock.h"
#include "base/log.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SILENT_NS NSEC_PER_SEC
#define PATIENT_ASKS 8 /* to the parent, before children are told that it does not answer */

struct welcome_packet {
	struct wire_control header;
	struct wire_welcome welcome;
	uint8_t padding[WIRE_PACKET_MAX - WIRE_CONTROL - sizeof(struct wire_welcome)];
};

/* As long as the JOIN was, so that a path too narrow for it lets neither through. */
static void send_welcome(struct aggregator *aggregator, struct welcome_packet *packet,
                         uint32_t bytes, const struct udp_address *to)
{
	uint32_t least = WIRE_CONTROL + sizeof(struct wire_welcome);

	packet->header.magic = WIRE_MAGIC;
	packet->header.type = WIRE_WELCOME;
	if (bytes < least)
		bytes = least;
	thread_answer(&aggregator->threads[0], packet, bytes, to);
}

static void refuse(struct aggregator *aggregator, const struct wire_control *header, uint32_t bytes,
                   const struct udp_address *to, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

/* Which JOIN an answer is to: one process may have several under way. */
static uint64_t echo_of(const struct wire_join *join)
{
	return join->nonce & WIRE_POSITION_MASK;
}

static void refuse(struct aggregator *aggregator, const struct wire_control *header, uint32_t bytes,
                   const struct udp_address *to, const char *format, ...)
{
	struct welcome_packet packet = { .header = { .cookie = header->cookie,
		                                     .job = header->job,
		                                     .child = header->child,
		                                     .pos = echo_of(wire_payload(header)) } };
	va_list args;

	aggregator->threads[0].counters.drops[DROP_REFUSED]++;
	packet.welcome.verdict = WIRE_REFUSED;
	va_start(args, format);
	vsnprintf(packet.welcome.text, sizeof(packet.welcome.text), format, args);
	va_end(args);
	log_warn("a worker is refused: %s", packet.welcome.text);
	send_welcome(aggregator, &packet, bytes, to);
}

/* Why all children have to wait although they are in. */
static void tell_parent(const struct aggregator *aggregator, const struct comm *comm, char *text,
                        size_t size)
{
	const struct parent *parent = &comm->parent;
	uint64_t now = aggregator->threads[0].now, since = parent->heard_at;
	char address[64], own[64];

	if (parent->asking && since && now < since + SILENT_NS)
		snprintf(text, size, "%s", parent->text);
	if (!parent->asking || (since && now < since + SILENT_NS) ||
	    (!since && parent->asks < PATIENT_ASKS))
		return;
	snprintf(text, size, "the aggregator at %s, to which this one (%s) sends its sums, %s",
	         udp_text(&parent->address, address, sizeof(address)),
	         udp_text(&aggregator->options.listen, own, sizeof(own)),
	         parent->closed ? "is not running: its port is closed" : "does not answer");
}

uint64_t comm_arrived(const struct comm *comm)
{
	uint64_t ranks = comm->covered | comm->parent.present;

	for (uint64_t left = comm->forming; left; left &= left - 1)
		ranks |= comm->children[__builtin_ctzll(left)].here;
	return ranks;
}

void admission_answer(struct aggregator *aggregator, const struct comm *comm, unsigned rank)
{
	const struct child *child = &comm->children[rank];
	struct welcome_packet packet = { .header = { .cookie = child->cookie,
		                                     .job = comm->job,
		                                     .child = (uint8_t)rank,
		                                     .pos = echo_of(&child->join) } };
	struct wire_welcome *welcome = &packet.welcome;

	welcome->present = comm_arrived(comm);
	welcome->verdict = comm->running ? WIRE_JOINED : WIRE_WAIT;
	if (comm->running) {
		welcome->cookie = comm->cookie;
		welcome->cells = comm->cells;
		welcome->payload = comm->payload;
		welcome->lanes = comm->lanes;
		welcome->comm = comm->id;
		welcome->epoch = comm->epoch;
		welcome->port = aggregator->port;
		welcome->dead_after_ms = comm->dead_after_ms;
		welcome->rate = rates_first(aggregator, comm, rank);
		if (comm->grouped & dense_bit(rank)) {
			const struct sockaddr_in *group = (const void *)&comm->group.storage;

			welcome->multicast_group = group->sin_addr.s_addr;
			welcome->multicast_port = udp_port(&comm->group);
		}
	} else {
		tell_parent(aggregator, comm, welcome->text, sizeof(welcome->text));
	}
	send_welcome(aggregator, &packet, child->asked_bytes, &child->address);
}

void admission_refuse_all(struct aggregator *aggregator, struct comm *comm, const char *why)
{
	struct {
		struct wire_control header;
		struct wire_join join;
	} to = { .header = { .job = comm->job } };

	for (uint64_t left = comm->present; left; left &= left - 1) {
		const struct child *child = &comm->children[__builtin_ctzll(left)];

		to.header.cookie = child->cookie;
		to.header.child = (uint8_t)child->join.rank;
		to.join = child->join;
		refuse(aggregator, &to.header, child->asked_bytes, &child->address, "%s", why);
	}
	comm->retired = true;
}

void admission_abort_all(struct aggregator *aggregator, struct comm *comm, const char *why)
{
	for (uint64_t left = comm->present; left; left &= left - 1) {
		const struct child *child = &comm->children[__builtin_ctzll(left)];
		struct {
			struct wire_control header;
			struct wire_abort abort;
		} packet = { .header = { .magic = WIRE_MAGIC,
			                 .type = WIRE_ABORT,
			                 .cookie = child->cookie,
			                 .job = comm->job,
			                 .child = (uint8_t)child->join.rank,
			                 .pos = echo_of(&child->join) },
			     .abort = { .status = TRIB_ERR_AGGREGATOR } };

		snprintf(packet.abort.text, sizeof(packet.abort.text), "%s", why);
		thread_answer(&aggregator->threads[0], &packet, sizeof(packet), &child->address);
	}
	log_warn("job %u, communicator %u: %s", comm->job, comm->id, why);
	comm->retired = true;
}

void admission_start(struct aggregator *aggregator, struct comm *comm)
{
	char text[80];

	if (!registry_start(aggregator, comm)) {
		snprintf(text, sizeof(text), "no memory for a pool of %llu bytes",
		         (unsigned long long)comm->pool_bytes);
		admission_refuse_all(aggregator, comm, text);
		return;
	}
	for (uint64_t left = comm->present; left; left &= left - 1)
		admission_answer(aggregator, comm, (unsigned)__builtin_ctzll(left));
}

static void answer_wait(struct aggregator *aggregator, const struct wire_control *header,
                        uint32_t bytes, const struct udp_address *to, uint64_t present)
{
	struct welcome_packet packet = { .header = { .cookie = header->cookie,
		                                     .job = header->job,
		                                     .child = header->child,
		                                     .pos = echo_of(wire_payload(header)) },
		                         .welcome = { .verdict = WIRE_WAIT, .present = present } };

	send_welcome(aggregator, &packet, bytes, to);
}

bool cookie_is_good(struct aggregator *aggregator, uint16_t job, uint64_t cookie)
{
	uint64_t own = aggregator->options.cookie;
	bool good;

	pthread_mutex_lock(&aggregator->secret_lock);
	good = cookie == own && (own || !aggregator->has_secret);
	if (!good && aggregator->has_secret)
		good = cookie == secret_cookie(&aggregator->secret, job);
	pthread_mutex_unlock(&aggregator->secret_lock);
	return good;
}

/* A name from the network goes into logs and JSON. */
static void clean_name(char *name)
{
	for (; *name; name++)
		if (!isalnum((unsigned char)*name) && !strchr(".-_", *name))
			*name = '_';
}

/* What another process has made of the name that this one asks for. */
enum conflict { CONFLICT_NONE, CONFLICT_OVER, CONFLICT_WAIT, CONFLICT_HELD };

/* The child that has ranks which this one claims; or itself. */
static unsigned holder_of(const struct comm *comm, const struct wire_join *join)
{
	for (uint64_t left = comm->present; left; left &= left - 1) {
		unsigned child = (unsigned)__builtin_ctzll(left);

		if (join_covers(&comm->children[child].join) & join_covers(join))
			return child;
	}
	return join->rank;
}

/* When those whom a join would drive out last asked: who has its ranks, or all of another tree. */
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

/* Has whoever is there been heard of since this one first came? Who lives is, soon. */
static bool spoke_since(struct comm *comm, const struct wire_join *join, uint64_t spoke_at,
                        uint64_t now)
{
	if (comm->rival_nonce != join->nonce) {
		comm->rival_nonce = join->nonce;
		comm->rival_since = now;
	}
	return spoke_at > comm->rival_since;
}

static enum conflict find_conflict(const struct aggregator *aggregator, struct comm *comm,
                                   const struct wire_join *join)
{
	const struct thread *thread = &aggregator->threads[0];
	const struct lane *lane = thread->lanes[comm->id];
	const struct child *child = &comm->children[join->rank & 63];
	bool same = join_same_tree(&comm->first, join);
	uint64_t spoke_at;

	if (same && comm->present & dense_bit(join->rank) && child->join.nonce == join->nonce)
		return CONFLICT_NONE; /* it is the same one, asking again */
	if (!comm->running) {
		if (same && !(comm->covered & join_covers(join)))
			return CONFLICT_NONE;
		/* Who waits asks again and again. Who does not ask any more is gone. */
		spoke_at = last_asked(comm, join);
		if (thread->now > spoke_at + SILENT_NS)
			return CONFLICT_OVER;
		if (!same)
			return CONFLICT_HELD; /* that is no chance */
	} else {
		if (atomic_load(&comm->failed))
			return CONFLICT_OVER;
		/* The parent has to know first, or it would take the new one for a rival. */
		if (comm->gone == comm->present)
			return comm->has_parent && !comm->parent.echoed ? CONFLICT_WAIT
			                                                : CONFLICT_OVER;
		/* Others may still need results. */
		if (comm->gone || !lane || join->rank >= comm->size)
			return CONFLICT_WAIT;
		spoke_at = lane->heard_at[holder_of(comm, join)];
	}
	return spoke_since(comm, join, spoke_at, thread->now) ? CONFLICT_HELD : CONFLICT_WAIT;
}

/*
 * An aggregator below asks anew from the place where one is in: the one that
 * was let in is gone, as there is one process a port. Its ranks know nothing of
 * what the others have begun.
 */
static bool is_reborn(const struct comm *comm, const struct wire_join *join,
                      const struct udp_address *from)
{
	const struct child *child = &comm->children[join->rank & 63];

	return comm->running && join->height && comm->present & dense_bit(join->rank) &&
	       !(comm->gone & dense_bit(join->rank)) && child->join.nonce != join->nonce &&
	       child->join.pid != join->pid && !from->link && udp_same(&child->address, from);
}

/* Children of one communicator have been given different trees. */
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
	refuse(aggregator, header, bytes, from,
	       "rank %u (host %.40s) says that ranks %s come together here, with %u aggregators "
	       "above (the next: %s); %s said %s, with %u above (the next: %s)",
	       join->rank, join->host, ranks_text(join_ranks(join), ranks, sizeof(ranks)),
	       join->hops, up, other, ranks_text(comm->ranks, theirs, sizeof(theirs)),
	       comm->first.hops, their_up);
}

/* NULL: it cannot be let in now, and has been told. */
static struct comm *admit(struct aggregator *aggregator, const struct wire_control *header,
                          uint32_t bytes, const struct udp_address *from)
{
	const struct wire_join *join = wire_payload(header);
	struct comm *comm = registry_find(aggregator, header->job, join);
	enum conflict conflict;
	char text[200];

	if (comm && !atomic_load(&comm->failed) && is_reborn(comm, join, from))
		registry_fail(comm, TRIB_ERR_AGGREGATOR, join->rank,
		              "%s has been started again, and asks anew",
		              comm_describe_child(comm, join->rank, text, sizeof(text)));
	conflict = comm ? find_conflict(aggregator, comm, join) : CONFLICT_NONE;
	if (conflict == CONFLICT_WAIT) {
		answer_wait(aggregator, header, bytes, from, 0);
		return NULL;
	}
	if (conflict == CONFLICT_HELD && comm->size != join->size) {
		refuse(aggregator, header, bytes, from,
		       "rank %u says that the job has %u ranks, others said %u", join->rank,
		       join->size, comm->size);
		return NULL;
	}
	if (conflict == CONFLICT_HELD && !join_same_tree(&comm->first, join)) {
		refuse_tree(aggregator, header, bytes, from, comm);
		return NULL;
	}
	if (conflict == CONFLICT_HELD) {
		refuse(aggregator, header, bytes, from, "%s is in already; job %u is not free",
		       comm_describe_child(comm, holder_of(comm, join), text, sizeof(text)),
		       header->job);
		return NULL;
	}
	if (conflict == CONFLICT_OVER) {
		registry_retire(aggregator, comm);
		comm = NULL;
	}
	if (!comm && !(comm = registry_new(aggregator, header->job, join)))
		refuse(aggregator, header, bytes, from,
		       "the aggregator holds %u communicators, no more fit", COMMS_MAX - 1);
	return comm;
}

static bool is_possible(struct aggregator *aggregator, const struct wire_control *header,
                        uint32_t bytes, const struct udp_address *from)
{
	const struct wire_join *join = wire_payload(header);
	char why[300];

	if (aggregator->carrier == &carrier_tcp && !from->link) {
		refuse(aggregator, header, bytes, from,
		       "this aggregator is on the TCP plane (tribd --plane tcp): its workers need "
		       "TRIB_PLANE=tcp");
		return false;
	}
	if (join->size < 1 || join->size > WIRE_CHILDREN_MAX || join->rank >= join->size) {
		refuse(aggregator, header, bytes, from,
		       "rank %u of %u: an aggregator takes 1 to %u ranks", join->rank, join->size,
		       WIRE_CHILDREN_MAX);
		return false;
	}
	if (join->payload < WIRE_PAYLOAD_MIN || join->lanes < 1 || join->lanes > WIRE_LANES_MAX) {
		refuse(aggregator, header, bytes, from,
		       "rank %u asks for %u lanes and %u bytes a packet; this aggregator takes 1 "
		       "to "
		       "%u lanes and %u bytes or more",
		       join->rank, join->lanes, join->payload, WIRE_LANES_MAX, WIRE_PAYLOAD_MIN);
		return false;
	}
	if (join_fault(aggregator, join, why, sizeof(why))) {
		refuse(aggregator, header, bytes, from, "%s", why);
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
	clean_name(child->join.host);
	child->address = *from;
}

/* An aggregator waits for children of its own, and says who has come: no more than that. */
static void hear_forming(struct aggregator *aggregator, const struct wire_control *header,
                         uint32_t bytes, const struct udp_address *from)
{
	const struct wire_join *join = wire_payload(header);
	struct comm *comm = registry_find(aggregator, header->job, join);
	struct child *child;

	/* If there is no room, that is told when it asks to be let in. */
	if (!comm && !(comm = registry_new(aggregator, header->job, join)))
		return;
	if (comm->running || comm->parent.asking || comm->present & dense_bit(join->rank) ||
	    !join_same_tree(&comm->first, join))
		return;
	child = &comm->children[join->rank];
	note_asker(aggregator, child, header, bytes);
	note_child(child, join, from);
	child->here = join_covers(join);
	comm->forming |= dense_bit(join->rank);
	admission_answer(aggregator, comm, join->rank);
}

/* Whether so long an answer comes back is not known: nobody is let in by this one. */
static void hear_try(struct aggregator *aggregator, const struct wire_control *header,
                     uint32_t bytes, const struct udp_address *from)
{
	const struct comm *comm = registry_find(aggregator, header->job, wire_payload(header));

	answer_wait(aggregator, header, bytes, from,
	            comm && !comm->running ? comm_arrived(comm) : 0);
}

void registry_join(struct aggregator *aggregator, const struct wire_control *header, uint32_t bytes,
                   const struct udp_address *from)
{
	const struct wire_join *join = wire_payload(header);
	struct comm *comm;
	struct child *child;

	if (!is_possible(aggregator, header, bytes, from))
		return;
	if (join->tries) {
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
		admission_answer(aggregator, comm, join->rank);
		return;
	}
	note_child(child, join, from);
	comm->forming &= ~dense_bit(join->rank);
	comm->present |= dense_bit(join->rank);
	comm->covered |= join_covers(join);
	if (comm->covered != comm->ranks) {
		admission_answer(aggregator, comm, join->rank);
		return;
	}
	if (comm->has_parent) {
		parent_ask(aggregator, comm);
		return;
	}
	admission_start(aggregator, comm);
}
