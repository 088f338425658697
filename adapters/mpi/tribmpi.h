/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adapters/mpi owns libtribmpi-openmpi.so and libtribmpi-mpich.so: preloaded under an unmodified
 * MPI program, they carry its collectives through libtributary. What they cannot carry goes to the
 * MPI library, by its names that begin with PMPI_. The room is a user of tributary.h. It must not
 * know how sums travel.
 *
 * All ranks must take the same way for a call. So a decision depends only on what all ranks share:
 * the communicator, count, type, operation, and settings that were compared at the start. It never
 * depends on addresses.
 *
 * adapter.c has what all files share; start.c begins and ends; hello.c finds out whether all ranks
 * have the adapter; links.c has a libtributary communicator for each MPI communicator; types.c
 * knows MPI's types and operations; call_way.h (pure) chooses the way of a call; scaled_sum.h
 * (pure) sums doubles; reduce.c, move.c and nonblocking.c are the calls; fortran.c has their names
 * in Fortran.
 */
#ifndef TRIB_ADAPTERS_MPI_H
#define TRIB_ADAPTERS_MPI_H

#include "call_way.h"

#include <limits.h>
#include <mpi.h>
#include <stdatomic.h>

/* The values of setting_count for SETTING_MPI. */
enum mpi_use { MPI_USE_OFF, MPI_USE_AUTO, MPI_USE_ON };

/* What all ranks share once they have met. */
struct adapter {
	bool is_active; /* all ranks have the adapter and want it */
	uint64_t use, exact;
	size_t least;   /* bytes; MPI carries shorter calls */
	int rank, size; /* in MPI_COMM_WORLD */
	int level;      /* MPI_THREAD_SINGLE and so on */
	double timeout_s;
	_Atomic uint64_t carried, passed, bytes; /* calls that we carried, calls that MPI got */
};

extern struct adapter adapter;

/* An MPI communicator and the one of libtributary beside it. */
struct link {
	struct link *next; /* of all that are open */
	MPI_Comm comm;
	trib_comm *trib; /* NULL: its calls go to MPI */
	int rank, size;
	bool was_tried;
	void *scratch; /* memory for sums of doubles */
	size_t scratch_bytes;
	_Atomic int in_flight; /* nonblocking calls */
};

/*
 * adapter.c: waits until the launcher has read what was printed. It may lose the output of
 * processes that it ends.
 */
void adapter_flush(void);

/* hello.c: have all ranks an adapter that fits this one? False: `why` says which one has not. */
bool hello_all(char *why, size_t room);

/* links.c */
trib_status links_begin(void);
/* The link of a communicator that is not used for the first time; NULL: calls go to MPI. */
struct link *link_known(MPI_Comm comm);
/* Number of ranks of a communicator that may have a link; 0: its calls go to MPI. */
int link_size(MPI_Comm comm);
/* The link; the first call on a communicator opens it, on all its ranks. */
struct link *link_open(MPI_Comm comm);
/* Was it suitable for libtributary, so that it was tried? */
bool link_was_tried(MPI_Comm comm);
/* Memory of the link of at least so many bytes; NULL: there is none. */
void *link_scratch(struct link *link, size_t bytes);
void links_end(void);
/* Reports what libtributary says, by the communicator's error handler. */
int link_fail(MPI_Comm comm, const char *call);
/* Counts a call that we carry. */
static inline void adapter_count(size_t bytes)
{
	atomic_fetch_add_explicit(&adapter.carried, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&adapter.bytes, bytes, memory_order_relaxed);
}

static inline void adapter_pass(void)
{
	atomic_fetch_add_explicit(&adapter.passed, 1, memory_order_relaxed);
}

/* nonblocking.c: waits until no call is in flight, and ends the thread. */
void nonblocking_end(void);

/* types.c */
void types_begin(void);
/* What is summed or compared; its `count` is that of the call times numbers in an item. */
struct call_shape type_shape(MPI_Datatype type, MPI_Op op, size_t count, int ranks);
trib_op type_op(MPI_Op op);
/* A predefined type without holes: its items can be copied. */
bool type_is_plain(MPI_Datatype type);
size_t type_bytes(MPI_Datatype type, int count);

/*
 * reduce.c: writes this rank's vector to its place in `all`, which has GATHER_BYTES, and zeros to
 * the places of the others. Returns how many words of 64 bits are to be summed.
 */
size_t gather_pad(const struct link *link, const void *input, size_t bytes, char *all);
/* Sums the vectors of all ranks in `all`, `part` bytes from `first` on, into `out`. */
int gather_fold(const struct link *link, char *all, size_t bytes, size_t first, size_t part,
                int count, MPI_Datatype type, MPI_Op op, void *out);

#endif
