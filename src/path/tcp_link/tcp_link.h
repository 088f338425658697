/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcp_link owns the TCP connection that carries the long messages of a channel: a carrier
 * (channel/channel_carrier.h). It must not choose what travels by it: the channel does that, and
 * sends short messages, and all messages over several paths, as packets.
 *
 * The kernel's TCP needs half the processor time a byte: it has no headers that a process writes,
 * its checksums are the network card's, and it receives directly into the message.
 *
 * The side that is called listens, and tells its port in a CARRIER. The side that calls connects,
 * and sends a greeting with the channel's id. Each message has a head (struct path_frame). A
 * message has arrived when the peer says so: in the head of a message of its own, or in a packet.
 * If the connection ends or stalls, its messages go again as packets, and after a while both sides
 * open another one.
 */
#ifndef TRIB_PATH_TCP_LINK_H
#define TRIB_PATH_TCP_LINK_H

#include "path/channel/channel_carrier.h"

extern const struct channel_carrier tcp_link_carrier;

#endif
