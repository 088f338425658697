/* SPDX-License-Identifier: Apache-2.0 */
#include "plane/membership/join_answer.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/peer_text.h"
#include "path/address_proof.h"
#include "plane/lane/link_share.h"
#include "plane/membership/comm_start.h"

#include <stdarg.h>
#include <stdio.h>

#define PARENT_SILENT_NS NSEC_PER_SEC /* 1 s: a longer silence means that it does not answer */
#define PATIENT_ASKS 8 /* JOINs to the parent, before children are told of its silence */

struct welcome_packet {
	struct wire_control header;
	struct wire_welcome welcome;
	uint8_t padding[WIRE_PACKET_MAX - WIRE_CONTROL - sizeof(struct wire_welcome)];
};

/* The answer is as long as the JOIN, so a path too narrow for the JOIN blocks the answer too. */
static void send_welcome(struct aggregator *aggregator, struct welcome_packet *packet,
                         uint32_t bytes, const struct udp_address *to)
{
	uint32_t least = WIRE_CONTROL + sizeof(struct wire_welcome);

	packet->header.magic = WIRE_MAGIC;
	packet->header.type = WIRE_WELCOME;
	packet->header.token = address_token(&aggregator->address_secret, to);
	if (bytes < least)
		bytes = least;
	thread_answer(&aggregator->threads[0], packet, bytes, to);
}

/* Names the JOIN that is answered: a process may have sent several. */
static uint64_t echo_of(const struct wire_join *join)
{
	return join->nonce & WIRE_POSITION_MASK;
}

void join_tell(struct aggregator *aggregator, const struct wire_control *header, uint32_t bytes,
               const struct udp_address *to, const char *why)
{
	struct welcome_packet packet = { .header = { .cookie = header->cookie,
		                                     .job = header->job,
		                                     .child = header->child,
		                                     .pos = echo_of(wire_payload(header)) } };

	packet.welcome.verdict = WIRE_REFUSED;
	snprintf(packet.welcome.text, sizeof(packet.welcome.text), "%s", why);
	send_welcome(aggregator, &packet, bytes, to);
}

void join_refuse(struct aggregator *aggregator, const struct wire_control *header, uint32_t bytes,
                 const struct udp_address *to, const char *format, ...)
{
	char text[WIRE_TEXT_MAX], why[WIRE_TEXT_MAX];
	va_list args;

	aggregator->threads[0].counters.drops[DROP_REFUSED]++;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	peer_text(why, sizeof(why), text, sizeof(text)); /* it may quote the peer */
	log_warn("a worker is refused: %s", why);
	join_tell(aggregator, header, bytes, to, why);
}

const char *own_name(const struct aggregator *aggregator, const struct udp_address *towards,
                     char out[OWN_NAME_MAX])
{
	struct udp_address own = aggregator->options.listen, local;
	char interface[64];

	if (udp_is_any(&own) && udp_route(towards, &local, interface, sizeof(interface)) == TRIB_OK)
		own = local;
	udp_set_port(&own, aggregator->port);
	return udp_text(&own, out, OWN_NAME_MAX);
}

/* Why the children wait although all of them have joined. */
static void tell_parent(const struct aggregator *aggregator, const struct comm *comm, char *text,
                        size_t size)
{
	const struct parent *parent = &comm->parent;
	uint64_t now = aggregator->threads[0].now, since = parent->heard_at;
	char address[64], own[OWN_NAME_MAX];

	if (parent->asking && since && now < since + PARENT_SILENT_NS)
		snprintf(text, size, "%s", parent->text);
	if (!parent->asking || (since && now < since + PARENT_SILENT_NS) ||
	    (!since && parent->asks < PATIENT_ASKS))
		return;
	snprintf(text, size, "the aggregator at %s, to which this one (%s) sends its sums, %s",
	         udp_text(&parent->address, address, sizeof(address)),
	         own_name(aggregator, &parent->address, own),
	         parent->closed ? "is not running: its port is closed" : "does not answer");
}

uint64_t comm_arrived(const struct comm *comm)
{
	uint64_t ranks = comm->covered | comm->parent.present;

	for (uint64_t left = comm->forming; left; left &= left - 1)
		ranks |= comm->children[__builtin_ctzll(left)].here;
	return ranks;
}

void join_answer(struct aggregator *aggregator, const struct comm *comm, unsigned index)
{
	const struct child *child = &comm->children[index];
	struct welcome_packet packet = { .header = { .cookie = child->cookie,
		                                     .job = comm->job,
		                                     .child = (uint8_t)index,
		                                     .pos = echo_of(&child->join) } };
	struct wire_welcome *welcome = &packet.welcome;

	welcome->present = comm_arrived(comm);
	welcome->verdict = comm->running ? WIRE_JOINED : WIRE_WAIT;
	if (comm->running) {
		welcome->cookie = comm->cookie;
		welcome->cells = comm->cells;
		welcome->engine = comm->first.engine;
		welcome->layouts = comm->engine->layouts;
		welcome->payload = comm->payload;
		welcome->lanes = (uint16_t)comm->lanes;
		welcome->comm = comm->id;
		welcome->epoch = comm->epoch;
		welcome->port = aggregator->port;
		welcome->dead_after_ms = comm->dead_after_ms;
		welcome->rate = link_share_first(aggregator, comm, index);
		if (comm->grouped & child_bit(index)) {
			const struct sockaddr_in *group = (const void *)&comm->group.storage;

			welcome->multicast_group = group->sin_addr.s_addr;
			welcome->multicast_port = udp_port(&comm->group);
		}
	} else {
		tell_parent(aggregator, comm, welcome->text, sizeof(welcome->text));
	}
	send_welcome(aggregator, &packet, child->asked_bytes, &child->address);
}

void join_refuse_all(struct aggregator *aggregator, struct comm *comm, const char *why)
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
		join_refuse(aggregator, &to.header, child->asked_bytes, &child->address, "%s", why);
	}
	comm->retired = true;
}

void join_abort_all(struct aggregator *aggregator, struct comm *comm, const char *why)
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

void join_complete(struct aggregator *aggregator, struct comm *comm)
{
	char why[COMM_WHY_MAX];

	if (!comm_start(aggregator, comm, why)) {
		join_refuse_all(aggregator, comm, why);
		return;
	}
	for (uint64_t left = comm->present; left; left &= left - 1)
		join_answer(aggregator, comm, (unsigned)__builtin_ctzll(left));
}

void join_answer_wait(struct aggregator *aggregator, const struct wire_control *header,
                      uint32_t bytes, const struct udp_address *to, uint64_t present)
{
	struct welcome_packet packet = { .header = { .cookie = header->cookie,
		                                     .job = header->job,
		                                     .child = header->child,
		                                     .pos = echo_of(wire_payload(header)) },
		                         .welcome = { .verdict = WIRE_WAIT, .present = present } };

	send_welcome(aggregator, &packet, bytes, to);
}
