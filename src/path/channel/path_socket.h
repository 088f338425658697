/* SPDX-License-Identifier: Apache-2.0 */
/* path_socket: the UDP socket of one path of a channel, and the bursts that wait to leave. */
#ifndef TRIB_PATH_CHANNEL_PATH_SOCKET_H
#define TRIB_PATH_CHANNEL_PATH_SOCKET_H

#include "path/channel/channel.h"
#include "path/udp.h"

#define PATH_SOCKET_BURSTS 4u /* bursts that are handed to the kernel in one call */

struct path_socket {
	int fd; /* -1: not open */
	struct udp_tx *tx;
	uint8_t *bursts;
	unsigned used; /* bursts in the queue */
};

/* Bound to `from` (NULL: any address) and connected to `to`. */
trib_status path_socket_open(struct path_socket *socket, const struct udp_address *from,
                             const struct udp_address *to, bool shares_port);
void path_socket_close(struct path_socket *socket);
/* Bytes of data in a packet that fills the path's MTU; 0: unknown. */
uint32_t path_socket_unit(const struct path_socket *socket, const struct udp_address *to);

/* Gives the packets that have come to the channel. */
void path_socket_receive(struct path_socket *socket, struct udp_rx *rx, struct channel *channel,
                         unsigned path);
/* Sends what the channel has for this path. True: there was something. */
bool path_socket_send(struct path_socket *socket, struct channel *channel, unsigned path);

#endif
