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

struct welcome_packet {
	struct wire_header header;
	struct wire_welcome welcome;
	uint8_t padding[WIRE_PAYLOAD_MAX - sizeof(struct wire_welcome)];
};

/* As long as the JOIN was, so that a path too narrow for it lets neither through. */
static void send_welcome(struct aggregator *aggregator, struct welcome_packet *packet,
                         uint32_t bytes, const struct udp_address *to)
{
	uint32_t least = WIRE_HEADER + sizeof(struct wire_welcome);

	packet->header.magic = WIRE_MAGIC;
	packet->header.type = WIRE_WELCOME;
	if (bytes < least)
		bytes = least;
	thread_answer(&aggregator->threads[0], packet, bytes, to);
}

static void refuse(struct aggregator *aggregator, const struct wire_header *header, uint32_t bytes,
                   const struct udp_address *to, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

static void refuse(struct aggregator *aggregator, const struct wire_header *header, uint32_t bytes,
                   const struct udp_address *to, const char *format, ...)
{
	struct welcome_packet packet = {
		.header = { .cookie = header->cookie, .job = header->job, .child = header->child }
	};
	va_list args;

	aggregator->threads[0].counters.drops[DROP_REFUSED]++;
	packet.welcome.verdict = WIRE_REFUSED;
	va_start(args, format);
	vsnprintf(packet.welcome.text, sizeof(packet.welcome.text), format, args);
	va_end(args);
	log_warn("a worker is refused: %s", packet.welcome.text);
	send_welcome(aggregator, &packet, bytes, to);
}

static void answer_join(struct aggregator *aggregator, const struct comm *comm, unsigned rank,
                        uint32_t bytes)
{
	struct welcome_packet packet = { .header = { .cookie = comm->children[rank].cookie,
		                                     .job = comm->job,
		                                     .child = (uint8_t)rank } };
	struct wire_welcome *welcome = &packet.welcome;

	welcome->present = comm->present;
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
		if (comm->group.length) {
			const struct sockaddr_in *group = (const void *)&comm->group.storage;

			welcome->multicast_group = group->sin_addr.s_addr;
			welcome->multicast_port = udp_port(&comm->group);
		}
	}
	send_welcome(aggregator, &packet, bytes, &comm->children[rank].address);
}

static void answer_wait(struct aggregator *aggregator, const struct wire_header *header,
                        uint32_t bytes, const struct udp_address *to)
{
	struct welcome_packet packet = {
		.header = { .cookie = header->cookie, .job = header->job, .child = header->child },
		.welcome = { .verdict = WIRE_WAIT }
	};

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

/* When those whom a join would drive out last asked: its own rank, or all where sizes differ. */
static uint64_t last_asked(const struct comm *comm, const struct wire_join *join)
{
	uint64_t last = 0;

	if (comm->size == join->size)
		return comm->children[join->rank & 63].asked_at;
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
	uint64_t spoke_at;

	if (comm->size == join->size && comm->present & dense_bit(join->rank) &&
	    child->join.nonce == join->nonce)
		return CONFLICT_NONE; /* it is the same one, asking again */
	if (!comm->running) {
		if (comm->size == join->size && !(comm->present & dense_bit(join->rank)))
			return CONFLICT_NONE;
		/* Who waits asks again and again. Who does not ask any more is gone. */
		spoke_at = last_asked(comm, join);
		if (thread->now > spoke_at + SILENT_NS)
			return CONFLICT_OVER;
		if (comm->size != join->size)
			return CONFLICT_HELD; /* that is no chance */
	} else {
		if (atomic_load(&comm->failed) ||
		    (unsigned)__builtin_popcountll(comm->gone) == comm->size)
			return CONFLICT_OVER;
		/* Others may still need results. */
		if (comm->gone || !lane || join->rank >= comm->size)
			return CONFLICT_WAIT;
		spoke_at = lane->heard_at[join->rank];
	}
	return spoke_since(comm, join, spoke_at, thread->now) ? CONFLICT_HELD : CONFLICT_WAIT;
}

/* NULL: it cannot be let in now, and has been told. */
static struct comm *admit(struct aggregator *aggregator, const struct wire_header *header,
                          uint32_t bytes, const struct udp_address *from)
{
	const struct wire_join *join = wire_payload(header);
	struct comm *comm = registry_find(aggregator, header->job, join->key);
	enum conflict conflict = comm ? find_conflict(aggregator, comm, join) : CONFLICT_NONE;
	char text[160];

	if (conflict == CONFLICT_WAIT) {
		answer_wait(aggregator, header, bytes, from);
		return NULL;
	}
	if (conflict == CONFLICT_HELD && comm->size != join->size) {
		refuse(aggregator, header, bytes, from,
		       "rank %u says that the job has %u ranks, others said %u", join->rank,
		       join->size, comm->size);
		return NULL;
	}
	if (conflict == CONFLICT_HELD) {
		refuse(aggregator, header, bytes, from, "%s is in already; job %u is not free",
		       comm_describe_rank(comm, join->rank, text, sizeof(text)), header->job);
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

static bool is_possible(struct aggregator *aggregator, const struct wire_header *header,
                        uint32_t bytes, const struct udp_address *from)
{
	const struct wire_join *join = wire_payload(header);

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
	if (join->payload < WIRE_PAYLOAD_MIN || join->lanes < 1 ||
	    join->lanes > aggregator->n_threads) {
		refuse(aggregator, header, bytes, from,
		       "rank %u asks for %u lanes and %u bytes a packet; this aggregator has %u "
		       "threads (tribd --threads) and takes %u bytes or more",
		       join->rank, join->lanes, join->payload, aggregator->n_threads,
		       WIRE_PAYLOAD_MIN);
		return false;
	}
	return true;
}

void registry_join(struct aggregator *aggregator, const struct wire_header *header, uint32_t bytes,
                   const struct udp_address *from)
{
	const struct wire_join *join = wire_payload(header);
	struct comm *comm;
	struct child *child;

	if (!is_possible(aggregator, header, bytes, from) ||
	    !(comm = admit(aggregator, header, bytes, from)))
		return;
	child = &comm->children[join->rank];
	child->asked_at = aggregator->threads[0].now;
	child->cookie = header->cookie;
	if (comm->running) {
		answer_join(aggregator, comm, join->rank, bytes);
		return;
	}
	child->join = *join;
	clean_name(child->join.host);
	child->address = *from;
	comm->present |= dense_bit(join->rank);
	if ((unsigned)__builtin_popcountll(comm->present) < comm->size) {
		answer_join(aggregator, comm, join->rank, bytes);
		return;
	}
	if (!registry_start(aggregator, comm)) {
		for (unsigned rank = 0; rank < comm->size; rank++) {
			struct wire_header to = *header;

			to.child = (uint8_t)rank;
			refuse(aggregator, &to, bytes, &comm->children[rank].address,
			       "no memory for a pool of %llu bytes",
			       (unsigned long long)comm->pool_bytes);
		}
		comm->retired = true;
		return;
	}
	for (unsigned rank = 0; rank < comm->size; rank++)
		answer_join(aggregator, comm, rank, bytes);
}
