/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A residual: what rounding took from this rank's vectors of one name, to be added to the next
 * one. The communicator owns residuals; a request holds one from its start to its end.
 */
#ifndef TRIB_WORKER_COMM_RESIDUAL_H
#define TRIB_WORKER_COMM_RESIDUAL_H

#include <stdbool.h>
#include <stddef.h>

#include <tributary.h>

struct trib_comm;

struct residual {
	struct residual *next;
	bool held; /* by a request; under the communicator's lock */
	char *name;
	size_t count;
	float values[];
};

/* Finds the residual or makes it, and holds it. It takes the communicator's lock. */
trib_status residual_hold(struct trib_comm *comm, const char *name, size_t count,
                          struct residual **out);
/* Adds the residual to the vector. It stays, until the lanes write the next one over it. */
void residual_feed(const struct residual *residual, const void *vector, float *out);
/* Drops the one of this name, or all if it is NULL. It takes the communicator's lock. */
trib_status residual_drop(struct trib_comm *comm, const char *name);

#endif
