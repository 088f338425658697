/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcp: byte streams, received in large chunks. All connections of a thread share one
 * receive buffer, so that it stays in the cache. If a chunk ends inside a packet, the
 * start of that packet is saved with its connection and precedes the next chunk.
 */
#ifndef TRIB_PATH_TCP_H
#define TRIB_PATH_TCP_H

#include "path/udp.h"

#include <sys/uio.h>

#define TCP_RECEIVE_BYTES (512u << 10)
#define TCP_TAIL_MAX 9000u

/* A received chunk. It starts at the start of a packet; 64-byte aligned. */
struct tcp_rx {
	uint8_t *data;
	uint32_t bytes;
};

/* The start of a packet whose end has not arrived yet. */
struct tcp_tail {
	uint32_t bytes;
	uint8_t data[TCP_TAIL_MAX];
};

/*
 * Connections of another kind, with the same functions as below: streams by RDMA (path/rdma). Their
 * descriptors can be polled for input only. Room to send counts as input, too.
 */
struct tcp_other {
	bool (*is)(int fd);
	/* Listens at the address, beside TCP. -errno: it cannot. */
	int (*listen)(const struct udp_address *address);
	int (*accept)(int fd, struct udp_address *peer);
	/* -errno: not to be used for this peer now, and TCP takes its place. */
	int (*begin)(const struct udp_address *peer);
	int (*wait)(int fd, int wait_ms);
	int64_t (*send)(int fd, const struct iovec *vectors, unsigned n);
	int (*receive)(int fd, void *memory, uint32_t room);
	void (*close)(int fd);
};

/* From now on tcp_begin_any and tcp_connect_any prefer these. */
void tcp_use(const struct tcp_other *other);
bool tcp_has_other(void);
/* Is this a connection of the other kind? */
bool tcp_is_other(int fd);
/* Listens for connections of the other kind; -1: there is none. tcp_accept takes them. */
int tcp_listen_other(const struct udp_address *address);
void tcp_close(int fd);

bool tcp_rx_init(struct tcp_rx *rx);
void tcp_rx_free(struct tcp_rx *rx);
/* Bytes received, 0: none, or -errno; -EPIPE: the peer closed the connection. */
int tcp_receive(struct tcp_rx *rx, const struct tcp_tail *tail, int fd);
/* Saves the bytes of rx from `at` on for the next chunk. */
void tcp_keep(const struct tcp_rx *rx, struct tcp_tail *tail, uint32_t at);

/* Bytes sent, 0: the socket is full, or -errno. */
int64_t tcp_send(int fd, struct iovec *vectors, unsigned n);

trib_status tcp_listen(const struct udp_address *address, int *fd);
/* A new non-blocking connection, or -errno; -EAGAIN: none waits. */
int tcp_accept(int fd, struct udp_address *peer);
/* Starts to connect. A non-blocking socket, or -errno. */
int tcp_begin(const struct udp_address *peer);
/* The same, from this own address. Packets have `most` bytes of data in both directions; 0: the
 * kernel chooses. */
int tcp_begin_from(const struct udp_address *from, const struct udp_address *peer, unsigned most);
/*
 * Many connections share the slowest link, each for a while. BBR sends at the rate that it had
 * while the others sent, too: the last connection fills 5 % of a link that is all its own. So where
 * the kernel's choice is BBR, this connection uses CUBIC.
 */
void tcp_share(int fd);
/* Waits until the socket is connected: 0 or an errno; ETIMEDOUT: not within wait_ms. */
int tcp_wait(int fd, int wait_ms);
/* A connected non-blocking socket, or -errno. */
int tcp_connect(const struct udp_address *peer, int wait_ms);
/* The same, of the other kind if there is one and the peer takes it. */
int tcp_begin_any(const struct udp_address *peer);
int tcp_connect_any(const struct udp_address *peer, int wait_ms);
/*
 * Sends (`out`) or receives all bytes, and waits as long as it takes. 0, or an errno; ETIMEDOUT:
 * not before the deadline (clock_now); ECONNRESET: the peer closed the connection.
 */
int tcp_talk(int fd, void *memory, size_t bytes, bool out, uint64_t deadline);

#endif
