/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joining: ask, in any order of processes, until the aggregator has all ranks
 * or the deadline is there. A JOIN is padded to the path's MTU and so is its
 * answer: what gets through fits. Where nothing so long does, shorter ones
 * are tried.
 */
#include "worker/comm.h"

#include "base/clock.h"
#include "base/log.h"
#include "wire/parse.h"

#include <errno.h>
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
		          .pid = (uint32_t)getpid() },
	};

	gethostname(packet.join.host, sizeof(packet.join.host) - 1);
	wire_seal(&packet, WIRE_HEADER + payload);
	if (send(comm->lanes[0].fd, &packet, WIRE_HEADER + payload, 0) < 0)
		log_debug("join of %u bytes: %s", payload, strerror(errno));
}

/* The answer to us, if one comes within the wait. */
static bool hear(struct trib_comm *comm, int wait_ms, struct wire_welcome *welcome, uint32_t *bytes)
{
	struct pollfd wait = { .fd = comm->lanes[0].fd, .events = POLLIN };
	uint64_t until = clock_now() + (uint64_t)wait_ms * 1000000;

	for (;;) {
		uint64_t now = clock_now();
		int n;

		if (now >= until || poll(&wait, 1, (int)((until - now) / 1000000) + 1) <= 0)
			return false;
		while ((n = udp_receive(comm->lanes[0].rx, comm->lanes[0].fd)) > 0) {
			for (int i = 0; i < n; i++) {
				const struct udp_message *m = udp_message(comm->lanes[0].rx, i);
				const struct wire_header *header = (const void *)m->data;

				if (wire_parse(m->data, m->segment) != WIRE_SOUND ||
				    header->type != WIRE_WELCOME ||
				    header->cookie != comm->config.cookie ||
				    header->job != comm->config.job ||
				    header->child != comm->config.rank)
					continue;
				*welcome = *(const struct wire_welcome *)wire_payload(header);
				*bytes = m->segment;
				return true;
			}
		}
	}
}

static trib_status give_up(const struct trib_comm *comm, bool heard, uint64_t present)
{
	uint64_t all = comm->config.size == 64 ? ~0ull : (1ull << comm->config.size) - 1;
	char ranks[200], address[64];

	udp_text(&comm->config.aggregator, address, sizeof(address));
	if (!heard)
		return status_fail(
			TRIB_ERR_AGGREGATOR,
			"no answer from the aggregator at %s within %.1f s: is tribd "
			"running there, with the same TRIB_COOKIE?%s (trib check "
			"--aggregator %s)",
			address, comm->config.timeout_s,
			strncmp(address, "127.", 4) ? "" : " That address is this machine itself.",
			address);
	comm_list_ranks(all & ~present, ranks, sizeof(ranks));
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

trib_status comm_join(struct trib_comm *comm, uint64_t deadline)
{
	static const uint32_t shorter[] = { 4000, 1432, 1400, 1352, 1232, 1024, 512 };
	struct udp_address *peer = &comm->config.aggregator, local;
	unsigned mtu = comm->config.mtu ? comm->config.mtu : udp_mtu(comm->lanes[0].fd);
	uint32_t full = payload_for(mtu ? mtu : 1500, peer), settled = 0, bytes;
	struct wire_welcome welcome = { 0 };
	bool heard = false;
	uint64_t nonce;
	char interface[64], one[64], two[64];

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
		ask(comm, payload, nonce);
		if (!hear(comm, ASK_EVERY_MS, &welcome, &bytes))
			continue;
		heard = true;
		if (welcome.verdict == WIRE_REFUSED)
			return status_fail(TRIB_ERR_REFUSED,
			                   "the aggregator at %s refused rank %d: %s", one,
			                   comm->config.rank, welcome.text);
		/* As long as both were: an answer may be to an earlier, shorter question. */
		if (bytes - WIRE_HEADER < payload)
			payload = (bytes - WIRE_HEADER) & ~7u;
		if (payload > settled)
			settled = payload;
		if (welcome.verdict == WIRE_JOINED && welcome_ok(comm, &welcome)) {
			if (settled < full)
				log_warn("packets of %u bytes do not reach %s although the MTU is "
				         "%u: %u are used",
				         full, one, mtu, settled);
			comm->welcome = welcome;
			return TRIB_OK;
		}
	}
	return give_up(comm, heard, welcome.present);
}
