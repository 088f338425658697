/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ecmp: which path a switch with a known hash gives a flow. Pure.
 *
 * The hash of most switches has a secret key. If the operator knows that it is the XOR of
 * addresses, ports and protocol, 16 bits at a time, then paths are computed and need no probes.
 */
#ifndef TRIB_PATH_VIRTUAL_ECMP_H
#define TRIB_PATH_VIRTUAL_ECMP_H

#include "path/udp.h"

#define ECMP_PORT_MIN 49152u /* the range for ports that nobody owns */

/* The hash of UDP datagrams from one address to another. The path is the hash modulo the paths. */
uint16_t ecmp_xor(const struct udp_address *from, const struct udp_address *to);

/*
 * A source port above or equal to `least` for which the flow takes path `path` of `paths`; 0: there
 * is none. The port of `from` does not matter.
 */
uint16_t ecmp_port(const struct udp_address *from, const struct udp_address *to, unsigned paths,
                   unsigned path, uint16_t least);

#endif
