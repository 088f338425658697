/* SPDX-License-Identifier: Apache-2.0 */
/* Joins all children of a load to an aggregator, as workers do, one after the other. */
#ifndef TRIB_BENCH_LOAD_JOIN_CHILDREN_H
#define TRIB_BENCH_LOAD_JOIN_CHILDREN_H

#include "bench/load/load.h"
#include "wire/packet.h"

#define PLANE_JOB 1
#define PLANE_COOKIE 0x7472696275746172ull

/* Opens options->fds, a socket for each lane and child on its host, and joins. */
trib_status plane_join(struct load_options *options, struct wire_welcome *welcome);
/* Sends a REPORT of a child that needs nothing below `ack`. Token 0: its address is known. */
void plane_report(int fd, bool tcp, const struct wire_welcome *welcome, unsigned child,
                  unsigned lane, uint64_t ack, uint32_t token);

#endif
