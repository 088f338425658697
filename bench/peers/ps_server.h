/* SPDX-License-Identifier: Apache-2.0 */
/* The server of ps.c, alone or in a tree, and the message that opens a vector. */
#ifndef TRIB_BENCH_PS_SERVER_H
#define TRIB_BENCH_PS_SERVER_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

#define PS_WORKERS_MAX 128

/* A worker sends it before every vector; what comes back is the sum alone. */
struct ps_opening {
	uint64_t bytes;
};

/* Connects and retries for up to a minute; exits with 1 if nobody listens. */
int ps_connect(const struct sockaddr_in *to);

/*
 * Serves this number of children (workers or servers) until all have closed their
 * connections. `parent` is NULL at the root. Returns 0, or 1 after an error
 * message.
 */
int ps_serve(const struct sockaddr_in *self, const struct sockaddr_in *parent, unsigned children);

#endif
