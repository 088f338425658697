/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joining, the table of communicators and the session with a parent, as one machine: an aggregator
 * without sockets takes packets of children, strangers and parents in any order, while time passes.
 * An address that is not proven never gets more than it sent. Quotas hold. When everybody has
 * fallen silent, nothing is left.
 */
#include "base/clock.h"
#include "base/log.h"
#include "fuzz.h"
#include "loopback_list.h"
#include "path/address_proof.h"
#include "plane/lane/lane_handover.h"
#include "plane/loop/packet_dispatch.h"
#include "plane/membership/comm_table.h"
#include "plane/membership/liveness.h"
#include "wire/parse.h"

#include <string.h>

#define COOKIE 0x5eedull
#define HOSTS 4u
#define POOLS (1u << 20)

static struct aggregator aggregator;
static struct udp_address hosts[HOSTS];
static uint32_t sent; /* bytes of the packet that is being taken */
static bool proven;   /* its sender's address is */

static void on_send(struct thread *thread, const void *packet, uint32_t bytes,
                    const struct udp_address *to)
{
	(void)thread;
	(void)packet;
	(void)to;
	demand(bytes <= WIRE_PACKET_MAX && bytes % 8 == 0);
}

static void on_answer(struct thread *thread, void *packet, uint32_t bytes,
                      const struct udp_address *to)
{
	on_send(thread, packet, bytes, to);
	wire_seal(packet, bytes);
	demand(wire_parse(packet, bytes) == WIRE_SOUND);
	demand(proven || bytes <= sent);
}

static bool can_reach(struct thread *thread, struct udp_address *parent)
{
	(void)thread;
	(void)parent;
	return true;
}

static bool send_lane(struct thread *thread, struct agg_lane *lane)
{
	(void)thread;
	(void)lane;
	return true;
}

static void forget(struct thread *thread, struct agg_lane *lane)
{
	(void)thread;
	(void)lane;
}

static const struct carrier carrier = { .plane = "none",
	                                .send = on_send,
	                                .answer = on_answer,
	                                .reach = can_reach,
	                                .send_results = send_lane,
	                                .send_sums = send_lane,
	                                .forget = forget };

static void aggregator_begin(void)
{
	struct thread *thread = &aggregator.threads[0];

	memset(&aggregator, 0, sizeof(aggregator));
	aggregator.carrier = &carrier;
	aggregator.plane_name = "none";
	aggregator.options = (struct aggregator_options){ .cookie = COOKIE,
		                                          .threads = 1,
		                                          .pool_bytes = POOLS,
		                                          .parents = NETWORK_LIST_LOOPBACK };
	aggregator.n_threads = 1;
	aggregator.port = 7800;
	pthread_mutex_init(&aggregator.rates.lock, NULL);
	pthread_mutex_init(&aggregator.secret_lock, NULL);
	pthread_mutex_init(&thread->lock, NULL);
	thread->aggregator = &aggregator;
	thread->fd = thread->wake_fd = -1;
	thread->now = NSEC_PER_SEC;
	thread->unknown_left = UINT32_MAX;
	for (unsigned i = 0; i < HOSTS; i++) {
		const uint8_t raw[4] = { 127, 0, 0, (uint8_t)(i + 1) };

		udp_from_raw(raw, 4, (uint16_t)(9000 + i), &hosts[i]);
	}
}

static void tick(uint64_t ns)
{
	struct thread *thread = &aggregator.threads[0];

	thread->now += ns;
	proven = true; /* what a tick sends answers nothing */
	liveness_tick(&aggregator, 0);
	lane_handover_read(thread);
}

/* ---- packets ---- */

union packet {
	struct wire_header header;
	struct wire_control control;
	uint64_t words[WIRE_PACKET_MAX / 8];
};

static void *body_of(union packet *packet)
{
	return &packet->control + 1;
}

/* The next bytes of the input, which describe one packet. */
static const uint8_t *bytes_of(struct fuzz_input *input)
{
	static uint8_t bytes[20];

	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = fuzz_byte(input);
	return bytes;
}

/* A communicator to talk about; NULL: there is none. */
static struct comm *some_comm(unsigned skip)
{
	skip &= 3;

	for (unsigned id = 1; id < COMMS_MAX; id++)
		if (aggregator.comms[id] && !aggregator.comms[id]->retired && !skip--)
			return aggregator.comms[id];
	return NULL;
}

static uint32_t make_join(struct fuzz_input *input, union packet *packet)
{
	const uint8_t *b = bytes_of(input);
	struct wire_join *join = body_of(packet);
	uint8_t form = b[0];

	packet->control.type = WIRE_JOIN;
	packet->control.cookie = form & 1 ? COOKIE : form;
	packet->control.job = b[1] & 1;
	*join = (struct wire_join){ .key = b[2] & 3,
		                    .size = b[3] % 5,
		                    .rank = b[4] % 5,
		                    .payload = 8u * b[5],
		                    .lanes = b[6] & 3,
		                    .pool_bytes = 1ull << (b[7] & 63),
		                    .timeout_ms = 1u << (b[8] & 31),
		                    .nonce = b[9] & 3,
		                    .pid = b[10] & 1,
		                    .waits = form >> 1 & 1,
		                    .tries = form >> 2 & 1,
		                    .height = form >> 3 & 1,
		                    .engine = form >> 4 & 3,
		                    .hops = form >> 6 & 1,
		                    .covers = b[11] & 7,
		                    .ranks = b[12] & 7,
		                    .generation = b[13] & 1 };
	join->up[0] = (struct wire_hop){
		.ranks = b[14], .address = { 127, 0, 0, 9 }, .port = 7700, .family = 4
	};
	packet->control.child = (uint8_t)join->rank;
	return WIRE_JOIN_LEAST + 8u * b[15];
}

/* The parent's answer to a communicator that asks it. */
static uint32_t make_welcome(struct fuzz_input *input, union packet *packet)
{
	const uint8_t *b = bytes_of(input);
	struct wire_welcome *welcome = body_of(packet);
	const struct comm *comm = some_comm(b[19]);

	packet->control.type = WIRE_WELCOME;
	*welcome = (struct wire_welcome){ .cookie = b[0],
		                          .verdict = b[1] & 3,
		                          .cells = b[2],
		                          .payload = 8u * b[3],
		                          .lanes = b[4] & 3,
		                          .comm = b[5],
		                          .epoch = b[6],
		                          .dead_after_ms = 1u << (b[7] & 31) };
	memset(welcome->text, b[8], WIRE_TEXT_MAX - 1);
	if (welcome->verdict == WIRE_PLAN)
		welcome->text[WIRE_TEXT_MAX - 1] = 'x'; /* a plan's text goes on behind */
	if (comm) {
		packet->control.cookie = comm->children[comm->first.rank & 63].cookie;
		packet->control.job = comm->job;
		packet->control.child = comm->parent.child;
		packet->control.pos = comm->parent.nonce & WIRE_POSITION_MASK;
	}
	return WIRE_JOIN_LEAST + 8u * (1 + b[9]);
}

/* What a child says, or somebody in its name. */
static uint32_t make_word(struct fuzz_input *input, union packet *packet)
{
	const uint8_t *b = bytes_of(input);
	static const uint8_t types[] = { WIRE_REPORT, WIRE_BYE, WIRE_ABORT, WIRE_QUERY };
	static const uint32_t bytes[] = { WIRE_CONTROL + sizeof(struct wire_report), WIRE_CONTROL,
		                          WIRE_CONTROL + sizeof(struct wire_abort),
		                          WIRE_QUERY_BYTES };
	const struct comm *comm = some_comm(b[19]);
	uint8_t which = b[0] & 3;

	packet->control.type = types[which];
	packet->control.child = b[1];
	packet->control.cookie = COOKIE;
	if (which == 0)
		*(struct wire_report *)body_of(packet) =
			(struct wire_report){ .serial = b[2], .stamp = 1, .bits = 4u * b[3] };
	if (which == 2) {
		struct wire_abort *abort = body_of(packet);

		abort->status = -(int)(b[4] & 31);
		memset(abort->text, b[5], WIRE_TEXT_MAX - 1);
	}
	if (comm && which != 3) {
		packet->control.cookie = b[6] & 1 ? comm->cookie : COOKIE;
		packet->control.job = comm->job;
		packet->control.comm = comm->id;
		packet->control.epoch = comm->epoch;
	}
	return bytes[which];
}

static void take(struct fuzz_input *input, uint8_t kind)
{
	static union packet packet;
	const struct udp_address *from = &hosts[fuzz_byte(input) % HOSTS];
	uint32_t token = address_token(&aggregator.address_secret, from);

	memset(&packet, 0, sizeof(packet));
	sent = kind == 0   ? make_join(input, &packet)
	       : kind == 1 ? make_welcome(input, &packet)
	                   : make_word(input, &packet);
	proven = fuzz_byte(input) & 1;
	packet.control.token = proven ? token : 0;
	proven |= packet.header.type != WIRE_JOIN && packet.header.type != WIRE_QUERY;
	wire_seal(&packet, sent);
	packet_take(&aggregator.threads[0], &packet.header, sent, wire_parse(&packet, sent), from);
	lane_handover_read(&aggregator.threads[0]);
}

static void check_table(void)
{
	uint64_t pools = 0;

	for (unsigned id = 1; id < COMMS_MAX; id++) {
		const struct comm *comm = aggregator.comms[id];

		if (!comm)
			continue;
		demand(comm->id == id && comm->dead_after_ms <= DEAD_AFTER_MAX);
		if (comm->running && !comm->retired)
			pools += comm_table_pool_bytes(comm);
	}
	demand(pools == aggregator.pools);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = { data, data + size };

	log_set_level(LOG_ERROR);
	aggregator_begin();
	while (input.at < input.end) {
		uint8_t kind = fuzz_byte(&input) % 4;

		if (kind == 3)
			tick((uint64_t)(fuzz_byte(&input) + 1) * 10000000);
		else
			take(&input, kind);
		check_table();
	}
	/* Everybody is silent. */
	for (unsigned i = 0; i < 8; i++)
		tick(2ull * DEAD_AFTER_MAX * 1000000);
	for (unsigned id = 1; id < COMMS_MAX; id++)
		demand(!aggregator.comms[id]);
	demand(!aggregator.pools);
	return 0;
}
