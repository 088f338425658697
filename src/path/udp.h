/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path owns how bytes travel: sockets, batches, pacing, limits on packets in flight. It
 * moves packets and must not look into them.
 *
 * udp: datagrams in batches. One receive may return many packets that the kernel joined
 * (UDP GRO), and one send may carry many (UDP GSO). If the kernel lacks these, recvmmsg
 * and sendmmsg still take many packets in one call.
 */
#ifndef TRIB_PATH_UDP_H
#define TRIB_PATH_UDP_H

#include "base/status.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

#define UDP_DEFAULT_PORT 7700  /* an aggregator's port */
#define UDP_MESSAGE_MAX 65536u /* bytes of a receive buffer */
#define UDP_GSO_BYTES 65000u   /* bytes of one send, below the 65,507 that UDP allows */
#define UDP_GSO_SEGMENTS 64u   /* packets of one send */

struct udp_address {
	struct sockaddr_storage storage;
	socklen_t length;
	uint64_t link; /* number of the TCP connection to this peer; 0: datagrams */
};

/* "host:port", "[v6]:port", ":port" (any address) or "host" with the default port. */
trib_status udp_resolve(const char *text, uint16_t default_port, struct udp_address *out);
void udp_set_port(struct udp_address *address, uint16_t port);
uint16_t udp_port(const struct udp_address *address);
/* The 4 or 16 bytes of the host's address, and back. */
const void *udp_raw(const struct udp_address *address, size_t *size);
void udp_from_raw(const void *raw, size_t size, uint16_t port, struct udp_address *out);
/* Is it an address that only processes of this machine can reach? */
bool udp_is_loopback(const struct udp_address *address);
bool udp_same_host(const struct udp_address *a, const struct udp_address *b);
bool udp_same(const struct udp_address *a, const struct udp_address *b);
/* Does it name no host: 0.0.0.0 or [::]? */
bool udp_is_any(const struct udp_address *address);
/* "10.0.0.1:7000" */
const char *udp_text(const struct udp_address *address, char *out, size_t size);

struct udp_options {
	bool offload;       /* ask for GSO and GRO */
	unsigned busy_poll; /* microseconds */
	int receive_bytes;  /* requested buffer size; the kernel may give less */
	int send_bytes;     /* must be below the link's queue, which drops packets otherwise */
	bool shares_port;   /* another socket that shares is bound to the same port */
};

/* A non-blocking socket, bound if `bind_to`, connected if `peer`. *gso: GSO works on it. */
trib_status udp_open(const struct udp_address *bind_to, const struct udp_address *peer,
                     const struct udp_options *options, int *fd, bool *gso);

/* A socket that receives an IPv4 multicast group on the interface with address `local`. */
trib_status udp_open_group(struct in_addr group, uint16_t port, struct in_addr local,
                           const struct udp_options *options, int *fd);

/* Turns on departure times (SO_TXTIME, CLOCK_MONOTONIC). False: the kernel refuses. */
bool udp_let_times(int fd);
/* Lets the kernel say when each message came (SO_TIMESTAMPNS). */
void udp_let_stamps(int fd);
/*
 * Asks for a send buffer of `wanted` bytes (0: leaves it as it is). Returns its size as the
 * kernel counts it, overhead included.
 */
uint32_t udp_send_room(int fd, int wanted);

/* The MTU of the path of a connected socket; 0: unknown. */
unsigned udp_mtu(int fd);
/* The MTU of the route to a peer; 0: unknown. */
unsigned udp_route_mtu(const struct udp_address *peer);
/* The MTU of the interface with this IPv4 address, for multicast sent from there. */
unsigned udp_group_mtu(const struct udp_address *local);
/* Bytes that IP and UDP headers take on the path. */
unsigned udp_overhead(const struct udp_address *address);
/* The local address of the route to a peer. */
trib_status udp_local(const struct udp_address *peer, struct udp_address *local);
/* The local address and the interface of the route to a peer. */
trib_status udp_route(const struct udp_address *peer, struct udp_address *local, char *interface,
                      size_t size);

/* A received message: packets of `segment` bytes; the last may be shorter. */
struct udp_message {
	uint8_t *data; /* 64-byte aligned */
	uint32_t bytes;
	uint32_t segment;
	uint64_t stamp; /* when it came, CLOCK_REALTIME in ns; 0: unknown (udp_let_stamps) */
	struct udp_address from;
};

/*
 * If the kernel joins packets, a call receives up to `few` messages: more would not stay in the
 * cache. If packets come singly, it receives up to UDP_RX_MANY. Without `senders` the sender's
 * address is not asked for.
 */
#define UDP_RX_MANY 32u
struct udp_rx;
struct udp_rx *udp_rx_new(unsigned few, bool senders);
void udp_rx_free(struct udp_rx *rx);
/* Messages received, 0: none, or -errno. */
int udp_receive(struct udp_rx *rx, int fd);
/* The same, but one message at most: the quickest way if no more are on their way. */
int udp_receive_one(struct udp_rx *rx, int fd);
/* The same without what the kernel says beside the bytes: packets that it has joined stay joined.
 */
int udp_receive_single(struct udp_rx *rx, int fd);
/* Did the last call fill the buffers? Then more may wait. */
bool udp_rx_was_full(const struct udp_rx *rx);
const struct udp_message *udp_message(const struct udp_rx *rx, int index);

/* A queue of messages to send. The caller owns `data` and keeps it until it is sent. */
struct udp_tx;
struct udp_tx *udp_tx_new(unsigned messages, bool gso);
void udp_tx_free(struct udp_tx *tx);
unsigned udp_tx_room(const struct udp_tx *tx);
bool udp_tx_is_empty(const struct udp_tx *tx);
/* Drops the queued messages. */
void udp_tx_clear(struct udp_tx *tx);
/* True: the kernel takes a message as a whole (GSO). False: packet by packet. */
bool udp_tx_joins(const struct udp_tx *tx);
/* Departure time of the messages added from now on, if the qdisc is fq; 0: at once. */
void udp_tx_at(struct udp_tx *tx, uint64_t time);
/* `to` NULL: the socket's peer. The queue must have room. */
void udp_tx_add(struct udp_tx *tx, const void *data, uint32_t bytes, uint32_t segment,
                const struct udp_address *to);
/* The same for packets that do not lie side by side: each starts `apart` bytes behind the last. */
void udp_tx_add_apart(struct udp_tx *tx, const void *data, uint32_t bytes, uint32_t segment,
                      uint32_t apart, const struct udp_address *to);
/*
 * The same for packets side by side, of which the first `n` have only `head` bytes there and room
 * for the rest. The rest lies in `bodies`, side by side, which is needed until the next udp_send
 * returns: what stays queued then is copied into its room.
 */
void udp_tx_add_split(struct udp_tx *tx, uint8_t *data, uint32_t bytes, uint32_t segment,
                      const uint8_t *bodies, unsigned n, uint32_t head);
/* 0: all sent; -EAGAIN: the socket is full, the rest stays queued; another -errno: one message
 * was dropped. */
int udp_send(struct udp_tx *tx, int fd);

#endif
