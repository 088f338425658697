/* SPDX-License-Identifier: Apache-2.0 */
/* How a child gets into its communicator: JOINs, padded to the MTU, and their answers. */
#include "sparse/child/child_internal.h"

#include "base/peer_text.h"

#include "engine/engines.h"
#include "wire/parse.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ASK_EVERY 50000000ull /* 50 ms */

struct join_form {
	struct wire_control header;
	struct wire_join join;
	uint8_t padding[WIRE_PACKET_MAX - WIRE_CONTROL - sizeof(struct wire_join)];
};

void child_ask(struct sparse_child *child, uint64_t now)
{
	const struct child_options *options = &child->options;
	uint32_t payload = length_probe_next(&child->length);
	uint32_t bytes = WIRE_HEADER + payload; /* as long as a fragment will be */
	struct join_form packet = {
		.header = { .type = WIRE_JOIN,
		            .cookie = options->cookie,
		            .job = options->job,
		            .child = (uint8_t)options->rank,
		            .token = child->token },
		.join = { .key = options->key,
		          .pool_bytes = options->pool_bytes,
		          .engine = options->engine,
		          .nonce = child->nonce,
		          .covers = 1ull << options->rank,
		          .rank = options->rank,
		          .size = options->size,
		          .payload = payload,
		          .lanes = 1,
		          .timeout_ms = (uint32_t)(options->timeout_ns / 1000000),
		          .pid = (uint32_t)getpid(),
		          .tries = !child->length.settled },
	};

	gethostname(packet.join.host, sizeof(packet.join.host) - 1);
	if (bytes < WIRE_JOIN_LEAST)
		bytes = WIRE_JOIN_LEAST;
	child_send_control(child, &packet, bytes);
	child->ask_at = now + ASK_EVERY;
}

/* Against a hostile or mistaken answer. */
static bool welcome_ok(const struct sparse_child *child, const struct wire_welcome *welcome)
{
	return welcome->engine == child->options.engine && welcome->cells >= ENGINE_CELLS_MIN &&
	       welcome->cells <= ENGINE_CELLS_MAX && welcome->payload >= WIRE_PAYLOAD_MIN &&
	       welcome->payload <= WIRE_PAYLOAD_MAX && welcome->payload % 8 == 0 &&
	       welcome->lanes == 1;
}

void child_take_welcome(struct sparse_child *child, const struct wire_welcome *welcome,
                        uint32_t bytes, uint64_t now)
{
	child->heard = true;
	child->present = welcome->present;
	peer_text(child->wait_text, sizeof(child->wait_text), welcome->text, sizeof(welcome->text));
	if (welcome->verdict == WIRE_REFUSED) {
		child_fail(child, TRIB_ERR_REFUSED, "the aggregator at %s refused child %u: %s",
		           child->address, child->options.rank, child->wait_text);
		return;
	}
	if (welcome->verdict == WIRE_PLAN) {
		child_fail(child, TRIB_ERR_CONFIG, "at %s is a controller, and no aggregator",
		           child->address);
		return;
	}
	if (length_probe_passes(&child->length, (bytes - WIRE_HEADER) & ~7u))
		child->ask_at = 0;
	if (welcome->verdict != WIRE_JOINED || !child->length.settled ||
	    !welcome_ok(child, welcome))
		return;
	child->welcome = *welcome;
	child->proof = wire_proof(welcome->cookie, child->options.job, welcome->epoch);
	child->state = CHILD_JOINED;
	child->heard_at = now;
	child->ask_at = 0; /* a heartbeat at once: the aggregator learns our address */
}

void child_give_up(struct sparse_child *child)
{
	double seconds = (double)child->options.timeout_ns / 1e9;
	unsigned missing = 0;

	if (!child->heard) {
		child_fail(child, TRIB_ERR_AGGREGATOR,
		           "no answer from the aggregator at %s within %.1f s: is tribd running "
		           "there, with the same cookie?",
		           child->address, seconds);
		return;
	}
	if (*child->wait_text) {
		child_fail(child, TRIB_ERR_AGGREGATOR,
		           "the aggregator at %s did not admit child %u within %.1f s: %s",
		           child->address, child->options.rank, seconds, child->wait_text);
		return;
	}
	while (missing < child->options.size && child->present >> missing & 1)
		missing++;
	child_fail(child, TRIB_ERR_TIMEOUT,
	           "child %u of %u did not join within %.1f s (aggregator %s, job %u)", missing,
	           child->options.size, seconds, child->address, child->options.job);
}
