/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How an agent asks another one for a link probe. The agent that is asked speaks first: it sends
 * eight random bytes on each connection. The request repeats them, so a recorded request
 * is worth nothing.
 */
#ifndef TRIB_CONTROL_AGENT_PROBE_ASK_H
#define TRIB_CONTROL_AGENT_PROBE_ASK_H

#include "base/secret.h"
#include "control/transport/node_report.h"

#include <stddef.h>
#include <string.h>

#define PROBE_ASK_MAGIC 0x32474154u /* "TAG2" */

/* The first bytes of each connection, from the agent that asks. */
struct probe_ask {
	uint32_t magic, flows;
	uint64_t enough_bps, nonce;
	uint64_t challenge; /* as it was received on this connection */
	char from[TREE_NAME_MAX];
	uint64_t proof; /* keyed hash of all fields before */
};

_Static_assert(sizeof(struct probe_ask) == 104, "as it is sent");

static inline void probe_ask_seal(struct probe_ask *ask, const struct secret *secret)
{
	ask->proof = secret_hash(secret, ask, offsetof(struct probe_ask, proof));
}

/* Was it made with the secret, for this connection? */
static inline bool probe_ask_is_good(const struct probe_ask *ask, const struct secret *secret,
                                     uint64_t challenge)
{
	return ask->magic == PROBE_ASK_MAGIC && ask->challenge == challenge &&
	       ask->proof == secret_hash(secret, ask, offsetof(struct probe_ask, proof)) &&
	       memchr(ask->from, 0, sizeof(ask->from)) && name_is_good(ask->from);
}

#endif
