/* SPDX-License-Identifier: Apache-2.0 */
/* A communicator fails once. The first cause stays, and every child gets it. */
#ifndef TRIB_PLANE_CORE_FAILURE_H
#define TRIB_PLANE_CORE_FAILURE_H

#include "plane/core/agg_comm.h"

/* Any thread may call it. `child` is the child at fault. */
void comm_set_failed(struct comm *comm, trib_status status, unsigned child, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* "rank 2 (host h3, 10.0.0.3:4711, pid 99)"; for an aggregator, its address and ranks. */
const char *comm_describe_child(const struct comm *comm, unsigned child, char *out, size_t size);

#endif
