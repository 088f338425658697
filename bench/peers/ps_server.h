/* SPDX-License-Identifier: Apache-2.0 */
/* The server of ps.c, alone or in a tree of them, and the message that opens a vector. */
#ifndef TRIB_BENCH_PS_SERVER_H
#define TRIB_BENCH_PS_SERVER_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

#define PS_WORKERS_MAX 128

/* Before every vector, from a worker; what comes back is the sum alone. */
struct ps_opening {
	uint64_t bytes;
};

/* Connects, and waits up to a minute for who listens there; exits with 1 where nobody does. */
int ps_connect(const struct sockaddr_in *to);

/*
 * Serves so many children, workers or servers, until all have closed their
 * connections; `parent` is NULL at the root. 0, or 1 after saying what went wrong.
 */
int ps_serve(const struct sockaddr_in *self, const struct sockaddr_in *parent, unsigned children);

#endif
