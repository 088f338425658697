/* SPDX-License-Identifier: Apache-2.0 */
/*
 * closed_port: a host says that a peer's port is closed (ICMP port unreachable). Pure.
 *
 * Anyone can forge that message, so it is a hint and no proof. The hint starts probes: packets that
 * a living peer answers at once. If the peer is heard again, the hint was wrong. If
 * CLOSED_PROBES probes in a row stay unanswered, the peer's process has ended.
 */
#ifndef TRIB_PATH_CLOSED_PORT_H
#define TRIB_PATH_CLOSED_PORT_H

#include <stdbool.h>
#include <stdint.h>

#define CLOSED_PROBE_EVERY 20000000ull /* 20 ms between two probes, in nanoseconds */
#define CLOSED_PROBES 10u              /* unanswered: the port is closed */

struct closed_port {
	uint64_t since;     /* time of the first hint; 0: none */
	uint64_t probed_at; /* time of the last probe */
	unsigned probes;    /* probes since the first hint */
};

static inline void closed_port_hint(struct closed_port *port, uint64_t now)
{
	if (!port->since)
		*port = (struct closed_port){ .since = now };
}

/* The peer was last heard at this time. Drops a hint that is older. */
static inline void closed_port_heard(struct closed_port *port, uint64_t heard_at)
{
	if (heard_at > port->since)
		port->since = 0;
}

/* Is it time for a probe? Then the caller sends it. */
static inline bool closed_port_probes(struct closed_port *port, uint64_t now)
{
	if (!port->since || now < port->probed_at + CLOSED_PROBE_EVERY)
		return false;
	port->probed_at = now;
	port->probes++;
	return true;
}

/* Have `probes` probes stayed unanswered, the last one for long enough? */
static inline bool closed_port_is_proven(const struct closed_port *port, uint64_t now,
                                         unsigned probes)
{
	return port->since && port->probes >= probes && now >= port->probed_at + CLOSED_PROBE_EVERY;
}

#endif
