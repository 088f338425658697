/* SPDX-License-Identifier: Apache-2.0 */
/* The server of ps.c, and the message that opens a vector. */
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

void ps_socket_tune(int fd);

/* Serves `workers` connections until all are closed. 0, or 1 after saying what went wrong. */
int ps_serve(const struct sockaddr_in *self, unsigned workers);

#endif
