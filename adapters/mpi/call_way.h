/* SPDX-License-Identifier: Apache-2.0 */
/* Which way a call takes, from what all ranks know. Pure. */
#ifndef TRIB_ADAPTERS_MPI_CALL_WAY_H
#define TRIB_ADAPTERS_MPI_CALL_WAY_H

#include "tributary.h"

#include <stdbool.h>

/*
 * Up to so many bytes of all ranks together, each rank gets the vectors of all ranks and adds them
 * itself, with MPI's own operation. They travel as one sum of integers, in which each rank has
 * zeros in the places of the others. That takes one round, and is exact.
 */
#define GATHER_BYTES 8192u

/*
 * Without an aggregator, MPI carries vectors below this size: its own messages have a lower
 * latency.
 */
#define ALONE_BYTES (512u << 10)

enum call_way {
	WAY_MPI,    /* the MPI library */
	WAY_SUM,    /* one sum, minimum or maximum of libtributary */
	WAY_GATHER, /* all vectors to all ranks, which apply MPI's operation in the order of ranks
	             */
	WAY_SCALED, /* doubles with a scale for each element: scaled_sum.h */
};

/* The values of setting_count for SETTING_MPI_EXACT: which floats are as exact as MPI's sums. */
enum mpi_exact { EXACT_NONE, EXACT_DOUBLE, EXACT_ALL };

/* A reduction, as all ranks see it. */
struct call_shape {
	bool is_predefined; /* type and operation are MPI's own, and fit each other */
	bool has_type;      /* libtributary has the type, as `type` */
	bool has_op;        /* libtributary has the operation */
	bool is_sum;
	trib_type type;
	size_t count; /* numbers in the vector of a rank */
	size_t bytes; /* of the vector of a rank, holes between items included */
	size_t least; /* MPI carries vectors of fewer bytes */
	int ranks;
};

enum call_way call_way(const struct call_shape *shape, enum mpi_exact exact);

#endif
