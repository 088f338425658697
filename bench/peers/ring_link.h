/* SPDX-License-Identifier: Apache-2.0 */
/* ring_link: the two connections of a rank in the ring. */
#ifndef TRIB_BENCH_RING_LINK_H
#define TRIB_BENCH_RING_LINK_H

struct ring_link {
	int next, previous; /* nonblocking; sends to `next`, receives from `previous` */
};

/* `hosts`: "address:port" for every rank. Waits up to a minute for the others. */
int ring_link_open(struct ring_link *link, const char *hosts, int rank, int size);

#endif
