/* SPDX-License-Identifier: Apache-2.0 */
/* bootstrap: ranks exchange a few bytes over TCP, through rank 0, as NCCL's bootstrap does. */
#ifndef TRIB_BENCH_BOOTSTRAP_H
#define TRIB_BENCH_BOOTSTRAP_H

#include <netinet/in.h>
#include <stddef.h>

#define BOOTSTRAP_RANKS_MAX 64

struct bootstrap {
	int rank, size;
	int fds[BOOTSTRAP_RANKS_MAX]; /* rank 0: of each other rank; others: fds[0], to rank 0 */
};

/* Rank 0 listens at the address. Waits up to a minute for the others. 0: done; -1: printed why. */
int bootstrap_open(struct bootstrap *bootstrap, const struct sockaddr_in *at, int rank, int size);
/* Gives all ranks the `bytes` of each, in order of rank. It is also a barrier. */
int bootstrap_gather(void *bootstrap, const void *mine, void *all, size_t bytes);
void bootstrap_close(struct bootstrap *bootstrap);

#endif
