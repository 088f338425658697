/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path: how the bytes get there: sockets, batches, pacing. It moves packets
 * and does not look into them.
 *
 * udp: datagrams in batches. One receive may give many packets joined by the
 * kernel (UDP GRO), one send may carry many (UDP GSO); where the kernel lacks
 * these, recvmmsg and sendmmsg still take many in a call.
 */
#ifndef TRIB_PATH_UDP_H
#define TRIB_PATH_UDP_H

#include "base/status.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

#define UDP_DEFAULT_PORT 7700  /* of an aggregator */
#define UDP_MESSAGE_MAX 65536u /* a receive buffer */
#define UDP_GSO_BYTES 65000u   /* one send, below the 65,507 that fit */
#define UDP_GSO_SEGMENTS 64u

struct udp_address {
	struct sockaddr_storage storage;
	socklen_t length;
	uint64_t link; /* the connection that has it at its other end; 0: none, a datagram */
};

/* "host:port", "[v6]:port", ":port" (any address) or "host" with the default port. */
trib_status udp_resolve(const char *text, uint16_t default_port, struct udp_address *out);
void udp_set_port(struct udp_address *address, uint16_t port);
uint16_t udp_port(const struct udp_address *address);
/* The 4 or 16 bytes of the host's address, and an address made of such. */
const void *udp_raw(const struct udp_address *address, size_t *size);
void udp_from_raw(const void *raw, size_t size, uint16_t port, struct udp_address *out);
bool udp_same(const struct udp_address *a, const struct udp_address *b);
/* "10.0.0.1:7000" */
const char *udp_text(const struct udp_address *address, char *out, size_t size);

struct udp_options {
	bool offload;       /* ask for GSO and GRO */
	unsigned busy_poll; /* microseconds */
	int receive_bytes;  /* buffers wanted; the kernel may give less */
	int send_bytes;     /* smaller than the queue of the link, or that one drops */
};

/* A non-blocking socket, bound if `bind_to`, connected if `peer`. Says in *gso if it may join. */
trib_status udp_open(const struct udp_address *bind_to, const struct udp_address *peer,
                     const struct udp_options *options, int *fd, bool *gso);

/* A socket that receives what is sent to an IPv4 group, on the interface of address `local`. */
trib_status udp_open_group(struct in_addr group, uint16_t port, struct in_addr local,
                           const struct udp_options *options, int *fd);

/* May packets of the socket carry the time when they are to leave, by CLOCK_MONOTONIC? */
bool udp_let_times(int fd);
/*
 * Asks for a send buffer of so many bytes (0: leaves it), and says how many it has now, as
 * the kernel counts: with all that surrounds them.
 */
uint32_t udp_send_room(int fd, int wanted);

/* The MTU of the path of a connected socket; 0: unknown. */
unsigned udp_mtu(int fd);
/* The same of the interface that has this IPv4 address, for what is sent to groups from there. */
unsigned udp_group_mtu(const struct udp_address *local);
/* Bytes that IP and UDP headers take on the path. */
unsigned udp_overhead(const struct udp_address *address);
/* The local address towards a peer, */
trib_status udp_local(const struct udp_address *peer, struct udp_address *local);
/* and the name of its interface. */
trib_status udp_route(const struct udp_address *peer, struct udp_address *local, char *interface,
                      size_t size);

/* Received messages: each holds packets of `segment` bytes, the last may be shorter. */
struct udp_message {
	uint8_t *data; /* 64-byte aligned */
	uint32_t bytes;
	uint32_t segment;
	struct udp_address from;
};

/*
 * A call takes up to `few` messages where the kernel joins packets, as more would not stay in a
 * cache, and up to UDP_RX_MANY where they come singly. Without `senders` nobody asks whom they
 * are from, and the kernel need not say it.
 */
#define UDP_RX_MANY 32u
struct udp_rx;
struct udp_rx *udp_rx_new(unsigned few, bool senders);
void udp_rx_free(struct udp_rx *rx);
/* How many messages came, 0 for none, or -errno. */
int udp_receive(struct udp_rx *rx, int fd);
/* Did the last call give all that it could take? There may be more then. */
bool udp_rx_was_full(const struct udp_rx *rx);
const struct udp_message *udp_message(const struct udp_rx *rx, int index);

/* Messages to send: `data` stays the caller's and must stay until sent. */
struct udp_tx;
struct udp_tx *udp_tx_new(unsigned messages, bool gso);
void udp_tx_free(struct udp_tx *tx);
unsigned udp_tx_room(const struct udp_tx *tx);
bool udp_tx_is_empty(const struct udp_tx *tx);
/* Forgets what waits. */
void udp_tx_clear(struct udp_tx *tx);
/* Does a message go to the kernel in one piece? Else each of its packets does. */
bool udp_tx_joins(const struct udp_tx *tx);
/* What is added from now on leaves at this time, if the queue heeds that (egress.h); 0: at once. */
void udp_tx_at(struct udp_tx *tx, uint64_t time);
/* `to` NULL: the socket's peer. Only into a tx that has room. */
void udp_tx_add(struct udp_tx *tx, const void *data, uint32_t bytes, uint32_t segment,
                const struct udp_address *to);
/* 0: all sent; -EAGAIN: the rest waits; another -errno: one message was given up. */
int udp_send(struct udp_tx *tx, int fd);

#endif
