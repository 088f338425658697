/* SPDX-License-Identifier: Apache-2.0 */
/*
 * address_proof: does a peer receive what is sent to the address that its packets name as their
 * source? Anyone can forge that address. So a server gives each host a token, and believes an
 * address when packets from there show the token. The server remembers nothing: the token follows
 * from the address and from a secret of the server's process. Pure.
 *
 * An address that has not been proven gets no more bytes than it sent, and replaces no other.
 */
#ifndef TRIB_PATH_ADDRESS_PROOF_H
#define TRIB_PATH_ADDRESS_PROOF_H

#include "base/secret.h"
#include "path/udp.h"

/* A token is the host's: a process sends from several ports. It is never 0. */
static inline uint32_t address_token(const struct secret *secret, const struct udp_address *peer)
{
	size_t size;
	const void *raw = udp_raw(peer, &size);
	uint32_t token = (uint32_t)secret_hash(secret, raw, size);

	return token ? token : 1;
}

/* A connection proves both of its ends. */
static inline bool address_is_proven(const struct secret *secret, const struct udp_address *peer,
                                     uint32_t token)
{
	return peer->link || token == address_token(secret, peer);
}

#endif
