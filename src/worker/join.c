/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joining: ask, in any order of processes, until the aggregator has all ranks
 * or the deadline is there. A JOIN is padded to the path's MTU and so is its
 * answer: what gets through fits. Where nothing so long does, shorter ones
 * are tried. On a connection that is the kernel's business; fragments are as
 * long as datagrams would be, so that results have the same bits.
 */
#include "worker/comm.h"

#include "base/clock.h"
#include "base/log.h"
#include "wire/parse.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define ASK_EVERY_MS 50
#define PATIENT_ASKS 8 /* in full length, before shorter ones are tried */

struct join_packet {
	struct wire_header header;
	struct wire_join join;
	uint8_t padding[WIRE_PAYLOAD_MAX - sizeof(struct wire_join)];
};

static uint32_t payload_for(unsigned mtu, const struct udp_address *peer)
{
	unsigned overhead = udp_overhead(peer) + WIRE_HEADER;
	uint32_t payload = mtu > overhead ? (mtu - overhead) & ~7u : 0;

	return payload > WIRE_PAYLOAD_MAX ? WIRE_PAYLOAD_MAX : payload;
}

static void ask(struct trib_comm *comm, uint32_t payload, uint64_t nonce)
{
	const struct comm_config *config = &comm->config;
	struct lane *lane = &comm->lanes[0];
	uint32_t bytes = payload;
	int error;
	struct join_packet packet = {
		.header = { .type = WIRE_JOIN,
		            .cookie = config->cookie,
		            .job = config->job,
		            .child = (uint8_t)config->rank },
		.join = { .key = config->key,
		          .pool_bytes = config->pool_bytes,
		          .nonce = nonce,
		          .rank = (uint32_t)config->rank,
		          .size = (uint32_t)config->size,
		          .payload = payload,
		          .lanes = config->lanes,
		          .timeout_ms = (uint32_t)(config->timeout_s * 1000),
		          .pid = (uint32_t)getpid(),
		          .ranks = config->ranks,
		          .hops = (uint8_t)config->hops },
	};

	memcpy(packet.join.up, config->up, sizeof(config->up));
	gethostname(packet.join.host, sizeof(packet.join.host) - 1);
	if (bytes < sizeof(packet.join) || config->tcp)
		bytes = sizeof(packet.join);
	error = lane->way->send_one(lane, &packet, WIRE_HEADER + bytes);
	if (error)
		log_debug("join of %u bytes: %s", payload, strerror(-error));
}

struct hearing {
	struct wire_welcome welcome;
	uint32_t bytes; /* of the packet; 0: none has come */
};

static void take_welcome(struct lane *lane, const struct wire_header *header, uint32_t bytes,
                         bool by_group, void *context)
{
	const struct comm_config *config = &lane->comm->config;
	struct hearing *hearing = context;

	(void)by_group;
	if (hearing->bytes || header->type != WIRE_WELCOME || header->cookie != config->cookie ||
	    header->job != config->job || header->child != config->rank)
		return;
	hearing->welcome = *(const struct wire_welcome *)wire_payload(header);
	hearing->bytes = bytes;
}

/* The answer to us, if one comes within the wait. */
static bool hear(struct trib_comm *comm, int wait_ms, struct hearing *hearing)
{
	struct lane *lane = &comm->lanes[0];
	uint64_t until = clock_now() + (uint64_t)wait_ms * 1000000;

	for (hearing->bytes = 0;;) {
		struct pollfd wait = { .fd = lane->fd, .events = POLLIN };
		uint64_t now = clock_now();

		if (now >= until || poll(&wait, 1, (int)((until - now) / 1000000) + 1) <= 0)
			return false;
		while (lane->way->receive(lane, take_welcome, hearing) > 0)
			if (hearing->bytes)
				return true;
	}
}

static trib_status give_up(const struct trib_comm *comm, bool heard,
                           const struct wire_welcome *welcome)
{
	uint64_t all = comm->config.size == 64 ? ~0ull : (1ull << comm->config.size) - 1;
	char ranks[200], address[64];

	udp_text(&comm->config.aggregator, address, sizeof(address));
	if (comm->lanes[0].unreached)
		return status_fail(TRIB_ERR_AGGREGATOR,
		                   "no connection to the aggregator at %s within %.1f s: %s; is "
		                   "tribd running there, with --plane tcp?",
		                   address, comm->config.timeout_s,
		                   strerror(comm->lanes[0].unreached));
	if (!heard)
		return status_fail(
			TRIB_ERR_AGGREGATOR,
			"no answer from the aggregator at %s within %.1f s: is tribd "
			"running there, with the same TRIB_COOKIE?%s (trib check "
			"--aggregator %s)",
			address, comm->config.timeout_s,
			strncmp(address, "127.", 4) ? "" : " That address is this machine itself.",
			address);
	if (*welcome->text) /* it is not a rank that is missing */
		return status_fail(TRIB_ERR_AGGREGATOR,
		                   "the aggregator at %s did not let us in within %.1f s: %s",
		                   address, comm->config.timeout_s, welcome->text);
	comm_list_ranks(all & ~welcome->present, ranks, sizeof(ranks));
	return status_fail(TRIB_ERR_TIMEOUT,
	                   "rank %s of %d did not join within %.1f s (aggregator %s, job %u)",
	                   ranks, comm->config.size, comm->config.timeout_s, address,
	                   comm->config.job);
}

/* Against a hostile or mistaken answer. */
static bool welcome_ok(const struct trib_comm *comm, const struct wire_welcome *welcome)
{
	return welcome->cells >= 2 && welcome->payload >= WIRE_PAYLOAD_MIN &&
	       welcome->payload <= WIRE_PAYLOAD_MAX && welcome->payload % 8 == 0 &&
	       welcome->lanes >= 1 && welcome->lanes <= comm->config.lanes;
}

/* Of the route, as a socket for datagrams sees it; 0: unknown. */
static unsigned route_mtu(const struct udp_address *peer)
{
	struct udp_options options = { .receive_bytes = 4096, .send_bytes = 4096 };
	unsigned mtu;
	bool gso;
	int fd;

	if (udp_open(NULL, peer, &options, &fd, &gso) != TRIB_OK)
		return 0;
	mtu = udp_mtu(fd);
	close(fd);
	return mtu;
}

trib_status comm_join(struct trib_comm *comm, uint64_t deadline)
{
	static const uint32_t shorter[] = { 4000, 1432, 1400, 1352, 1232, 1024, 512 };
	struct udp_address *peer = &comm->config.aggregator, local;
	struct lane *lane = &comm->lanes[0];
	unsigned route = route_mtu(peer), mtu = comm->config.mtu ? comm->config.mtu : route;
	uint32_t full, settled;
	struct hearing hearing = { 0 };
	const struct wire_welcome *welcome = &hearing.welcome;
	bool heard = false;
	uint64_t nonce;
	char interface[64], one[64], two[64];

	if (comm->config.tcp && route && route < mtu)
		mtu = route; /* datagrams would find out by trying */
	full = payload_for(mtu ? mtu : 1500, peer);
	settled = comm->config.tcp ? full : 0;
	if (getrandom(&nonce, sizeof(nonce), 0) != sizeof(nonce))
		return status_fail_errno("no random numbers");
	if (udp_route(peer, &local, interface, sizeof(interface)) != TRIB_OK)
		return TRIB_ERR_SYSTEM;
	if (full < WIRE_PAYLOAD_MIN)
		return status_fail(TRIB_ERR_CONFIG, "an MTU of %u is too small", mtu);
	/* Which way it goes is the first question when something is slow: once a job, say it. */
	log_line(comm->config.rank == 0 && !comm->config.key ? LOG_NOTICE : LOG_INFO,
	         "to the aggregator %s by interface %s, address %s, MTU %u",
	         udp_text(peer, one, sizeof(one)), interface, udp_text(&local, two, sizeof(two)),
	         mtu);
	for (unsigned asks = 0; clock_now() < deadline; asks++) {
		uint32_t payload = settled ? settled : full;
		unsigned k = asks < PATIENT_ASKS ? 0 : asks - PATIENT_ASKS;

		/* Every third time a shorter one, as long as nothing has come. */
		if (!settled && asks >= PATIENT_ASKS && k % 3 == 0)
			payload = shorter[k / 3 % (sizeof(shorter) / sizeof(shorter[0]))];
		if (payload > full)
			continue;
		if (!lane->way->reach(lane, ASK_EVERY_MS))
			continue;
		ask(comm, payload, nonce);
		if (!hear(comm, ASK_EVERY_MS, &hearing))
			continue;
		heard = true;
		if (welcome->verdict == WIRE_REFUSED)
			return status_fail(TRIB_ERR_REFUSED,
			                   "the aggregator at %s refused rank %d: %s", one,
			                   comm->config.rank, welcome->text);
		/* As long as both were: an answer may be to an earlier, shorter question. */
		if (hearing.bytes - WIRE_HEADER < payload && !comm->config.tcp)
			payload = (hearing.bytes - WIRE_HEADER) & ~7u;
		if (payload > settled)
			settled = payload;
		if (welcome->verdict == WIRE_JOINED && welcome_ok(comm, welcome)) {
			if (settled < full)
				log_warn("packets of %u bytes do not reach %s although the MTU is "
				         "%u: %u are used",
				         full, one, mtu, settled);
			comm->welcome = *welcome;
			return TRIB_OK;
		}
	}
	return give_up(comm, heard, welcome);
}
