/* SPDX-License-Identifier: Apache-2.0 */
/* The two connections that a rank of the ring has. */
#ifndef TRIB_BENCH_RING_LINK_H
#define TRIB_BENCH_RING_LINK_H

struct ring_link {
	int next, previous; /* nonblocking; next is sent to, previous received from */
};

/* `hosts` lists "address:port" for every rank. Waits up to a minute for the others. */
int ring_link_open(struct ring_link *link, const char *hosts, int rank, int size);

#endif
