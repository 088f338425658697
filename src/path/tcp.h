/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcp: streams of bytes in large pieces. One buffer serves all connections of
 * a thread, so that it stays in the cache: what a piece has cut in two is kept
 * with its connection, and is put before the next piece.
 */
#ifndef TRIB_PATH_TCP_H
#define TRIB_PATH_TCP_H

#include "path/udp.h"

#include <sys/uio.h>

#define TCP_RECEIVE_BYTES (512u << 10)
#define TCP_TAIL_MAX 9000u

/* Bytes of one connection, from the start of a packet on; 64-byte aligned. */
struct tcp_rx {
	uint8_t *data;
	uint32_t bytes;
};

/* The start of a packet whose end has not come yet. */
struct tcp_tail {
	uint32_t bytes;
	uint8_t data[TCP_TAIL_MAX];
};

bool tcp_rx_init(struct tcp_rx *rx);
void tcp_rx_free(struct tcp_rx *rx);
/* How many bytes came, 0 for none, or -errno; -EPIPE: the other side has ended it. */
int tcp_receive(struct tcp_rx *rx, const struct tcp_tail *tail, int fd);
/* What is in rx from `at` on comes first the next time. */
void tcp_keep(const struct tcp_rx *rx, struct tcp_tail *tail, uint32_t at);

/* How many bytes it took, 0: it is full, or -errno. */
int64_t tcp_send(int fd, struct iovec *vectors, unsigned n);

trib_status tcp_listen(const struct udp_address *address, int *fd);
/* The next who asks, non-blocking; -errno, -EAGAIN: nobody. */
int tcp_accept(int fd, struct udp_address *peer);
/* A socket on its way to being connected, non-blocking, or -errno. */
int tcp_begin(const struct udp_address *peer);
/* Is it connected? 0, or an errno; ETIMEDOUT: not within. */
int tcp_wait(int fd, int wait_ms);
/* A connected socket, non-blocking, or -errno. */
int tcp_connect(const struct udp_address *peer, int wait_ms);

#endif
