/* SPDX-License-Identifier: Apache-2.0 */
/* The place in a tree that a JOIN claims for its sender, and whether that place can exist. */
#ifndef TRIB_PLANE_CORE_JOIN_CHECK_H
#define TRIB_PLANE_CORE_JOIN_CHECK_H

#include "path/udp.h"
#include "wire/packet.h"

/* The ranks that the sender speaks for, as bits. */
uint64_t join_covers(const struct wire_join *join);
/* The ranks whose sums meet at this aggregator, as bits. */
uint64_t join_ranks(const struct wire_join *join);
/*
 * True: the claim contradicts itself, and `why` says how. The aggregator itself listens on `ports`
 * ports from `port` on.
 */
bool join_fault(uint16_t port, unsigned ports, const struct wire_join *join, char *why,
                size_t size);
bool join_same_tree(const struct wire_join *a, const struct wire_join *b);
void hop_address(const struct wire_hop *hop, struct udp_address *out);
/* "0-2,5" */
const char *ranks_text(uint64_t ranks, char *out, size_t size);

#endif
