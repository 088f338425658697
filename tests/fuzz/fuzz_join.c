/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers to a rank's JOIN. The input is a list of packets, each after a byte that says how it is
 * prepared (as it is, or with the right magic number, job, rank and cookie, since a fuzzer finds
 * none of these) and a byte that gives its length. What the rank sends is sound. It joins only
 * within what it asked for, and an error has clean words.
 */
#include "base/log.h"
#include "fuzz.h"
#include "worker/transport/lane_carrier.h"
#include "worker/transport/lane_engine_table.h"
#include "worker/trees/trees.h"
#include "wire/brief.h"
#include "wire/parse.h"

#include <errno.h>
#include <string.h>

#define COOKIE 0x5eedull
#define JOB 3
#define RANK 1
#define LANES 4u
#define STEPS 64u

enum { SEALED = 1, OURS = 2, LAST = 4, CLOSED = 8, LONG = 16 }; /* of the first byte */

static struct fuzz_input input;
static struct trib_comm comm;
static struct trunk trunk;
static struct lane lane;
static _Alignas(8) uint8_t packet[WIRE_PACKET_MAX];

static bool reach(struct lane *it, int wait_ms)
{
	(void)it;
	(void)wait_ms;
	return true;
}

static int send_one(struct lane *it, void *sent, uint32_t bytes)
{
	(void)it;
	demand(bytes <= WIRE_PACKET_MAX);
	wire_seal(sent, bytes);
	demand(wire_parse(sent, bytes) == WIRE_SOUND);
	return 0;
}

/* Makes a packet that may concern this rank. */
static void prepare(uint8_t how, size_t bytes)
{
	struct wire_control *control = (void *)packet;

	if (bytes < WIRE_CONTROL)
		return;
	if (how & OURS) {
		control->type = how & LONG ? WIRE_WELCOME : control->type % WIRE_TYPES_END;
		control->cookie = trunk.welcome.cookie ? trunk.welcome.cookie : COOKIE;
		control->job = JOB;
		control->child = RANK;
	}
	wire_seal(packet, bytes);
}

static int receive(struct lane *it)
{
	struct lane_batch *batch = &it->batch;
	uint8_t how = fuzz_byte(&input);
	size_t bytes = fuzz_byte(&input) * 8u, given = (size_t)(input.end - input.at);

	batch->n = 0;
	if (input.at == input.end)
		return 0;
	if (how & LONG)
		bytes += WIRE_JOIN_LEAST;
	bytes = bytes < sizeof(packet) ? bytes : sizeof(packet);
	given = given < bytes ? given : bytes;
	memset(packet, 0, bytes);
	memcpy(packet, input.at, given);
	input.at += given;
	if (how & SEALED)
		prepare(how, bytes);
	if (wire_parse(packet, bytes) == WIRE_SOUND) {
		batch->packets[0].header = (void *)packet;
		batch->packets[0].bytes = (uint32_t)bytes;
		batch->n = 1;
	}
	if (how & CLOSED)
		return -ECONNREFUSED;
	return !(how & LAST);
}

static const struct lane_carrier carrier = { .reach = reach,
	                                     .receive = receive,
	                                     .send_one = send_one };

static void begin(uint8_t how)
{
	memset(&comm, 0, sizeof(comm));
	memset(&trunk, 0, sizeof(trunk));
	memset(&lane, 0, sizeof(lane));
	comm.lanes_wanted = LANES;
	comm.config = (struct comm_config){ .job = JOB,
		                            .rank = RANK,
		                            .size = 2,
		                            .cookie = COOKIE,
		                            .timeout_s = 1,
		                            .mtu = 1500,
		                            .slots = 16,
		                            .tcp = how & 1 };
	demand(udp_resolve("127.0.0.1:9", 0, &trunk.aggregator) == TRIB_OK);
	comm.config.controller.length = how & 2 ? trunk.aggregator.length : 0;
	trunk.engine = lane_engine_find(how & 4 ? ENGINE_SLOT : ENGINE_DENSE);
	trunk.n_lanes = 1;
	trunk.lanes[0] = &lane;
	lane.comm = &comm;
	lane.trunk = &trunk;
	lane.carrier = &carrier;
}

static void look_at(trib_status status)
{
	const struct wire_welcome *welcome = &trunk.welcome;

	if (status == TRIB_OK) {
		demand(welcome->verdict == WIRE_JOINED && welcome->cookie);
		demand(welcome->cells >= 2 && welcome->dead_after_ms);
		demand(welcome->lanes >= 1 && welcome->lanes <= LANES);
		demand(welcome->payload >= WIRE_PAYLOAD_MIN && welcome->payload <= 1500 &&
		       welcome->payload % 8 == 0);
		demand(welcome->engine == trunk.engine->number);
	} else {
		demand(!welcome->cookie || status < 0);
	}
	for (const char *at = trib_last_error(); status < 0 && *at; at++)
		demand(*at >= ' ' && *at <= '~');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct join_attempt *attempt;
	trib_status status = TRIB_IN_PROGRESS;
	uint64_t wake;

	log_set_level(LOG_ERROR);
	input = (struct fuzz_input){ data, data + size };
	begin(fuzz_byte(&input));
	demand(join_begin(&comm, &trunk, 1, &attempt) == TRIB_OK);
	/* A joined rank still hears of an ABORT. */
	for (unsigned i = 0; i < STEPS && status >= 0 && input.at < input.end; i++) {
		status = join_step(attempt, UINT64_MAX, &wake);
		look_at(status);
	}
	free(attempt);
	return 0;
}
