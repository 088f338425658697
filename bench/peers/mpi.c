/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MPI_Allreduce, many MPI_Iallreduce at once, or another collective. Built once for each MPI that
 * is installed.
 */
#include "peer.h"

#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FINALIZE_S 2

static int world_barrier(void *context)
{
	(void)context;
	return MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS ? 0 : -1;
}

/* MPI has no 16-bit floats: as its users do, these are numbers of two bytes with a sum of our own.
 */
static void add_f16(void *in, void *out, int *n, MPI_Datatype *type)
{
	(void)type;
	peer_add(PEER_F16, out, in, (size_t)*n);
}

static void add_bf16(void *in, void *out, int *n, MPI_Datatype *type)
{
	(void)type;
	peer_add(PEER_BF16, out, in, (size_t)*n);
}

static MPI_Op sum_of(enum peer_type type)
{
	static MPI_Op sums[] = { [PEER_F16] = MPI_OP_NULL, [PEER_BF16] = MPI_OP_NULL };

	if (type == PEER_F32 || type == PEER_I32)
		return MPI_SUM;
	if (sums[type] == MPI_OP_NULL)
		MPI_Op_create(type == PEER_F16 ? add_f16 : add_bf16, 1, &sums[type]);
	return sums[type];
}

static MPI_Datatype element_of(enum peer_type type)
{
	return type == PEER_F32 ? MPI_FLOAT : type == PEER_I32 ? MPI_INT32_T : MPI_UINT16_T;
}

static int world_allreduce(void *context, void *data, size_t count, enum peer_type type)
{
	(void)context;
	return MPI_Allreduce(MPI_IN_PLACE, data, (int)count, element_of(type), sum_of(type),
	                     MPI_COMM_WORLD) == MPI_SUCCESS
	               ? 0
	               : -1;
}

static int world_many(void *context, void *data, size_t count, enum peer_type type, unsigned many)
{
	size_t bytes = count * peer_type_size(type);
	MPI_Request *requests = context;

	for (unsigned i = 0; i < many; i++)
		if (MPI_Iallreduce(MPI_IN_PLACE, (char *)data + i * bytes, (int)count,
		                   element_of(type), sum_of(type), MPI_COMM_WORLD,
		                   &requests[i]) != MPI_SUCCESS)
			return -1;
	return MPI_Waitall((int)many, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS ? 0 : -1;
}

/*
 * MPI has two calls for it, with algorithms of their own. The other one takes a count for each
 * rank.
 */
static int world_reduce_scatter(void *context, void *in, void *out, size_t count,
                                enum peer_type type)
{
	const char *call = getenv("PEER_MPI_CALL");
	static int *counts;
	int size;

	(void)context;
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (!call || strcmp(call, "MPI_Reduce_scatter") != 0)
		return MPI_Reduce_scatter_block(in, out, (int)count, element_of(type), sum_of(type),
		                                MPI_COMM_WORLD) == MPI_SUCCESS
		               ? 0
		               : -1;
	if (!counts)
		counts = peer_alloc((size_t)size * sizeof(*counts));
	for (int r = 0; r < size; r++)
		counts[r] = (int)count;
	return MPI_Reduce_scatter(in, out, counts, element_of(type), sum_of(type),
	                          MPI_COMM_WORLD) == MPI_SUCCESS
	               ? 0
	               : -1;
}

static int world_allgather(void *context, const void *in, void *out, size_t count,
                           enum peer_type type)
{
	(void)context;
	return MPI_Allgather(in, (int)count, element_of(type), out, (int)count, element_of(type),
	                     MPI_COMM_WORLD) == MPI_SUCCESS
	               ? 0
	               : -1;
}

static void finalize_leave(int signal_number)
{
	(void)signal_number;
	_exit(0);
}

int main(int argc, char **argv)
{
	struct peer_options options;
	struct peer peer = { .barrier = world_barrier,
		             .allreduce = world_allreduce,
		             .allreduce_many = world_many,
		             .reduce_scatter = world_reduce_scatter,
		             .allgather = world_allgather };
	double *samples, *all;

	MPI_Init(&argc, &argv);
	peer_parse(argc, argv, &options);
	if (getenv("TRIB_AGGREGATOR")) /* our adapter is preloaded */
		peer_warm_up_ways(&options);
	MPI_Comm_rank(MPI_COMM_WORLD, &peer.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &peer.size);
	peer.context = peer_alloc(options.many * sizeof(MPI_Request));
	samples = peer_alloc(options.iterations * sizeof(*samples));
	all = peer_alloc((size_t)peer.size * options.iterations * sizeof(*all));
	if (peer_measure(&peer, &options, samples))
		MPI_Abort(MPI_COMM_WORLD, 1);

	/* One rank prints for all: mpirun may mix the lines of several ranks. */
	MPI_Gather(samples, (int)options.iterations, MPI_DOUBLE, all, (int)options.iterations,
	           MPI_DOUBLE, 0, MPI_COMM_WORLD);
	for (int r = 0; r < peer.size && peer.rank == 0; r++)
		peer_print(r, all + (size_t)r * options.iterations, options.iterations);
	free(samples);
	free(all);
	free(peer.context);
	/* Everything is printed. MPICH over UCX and TCP (4.0 at least) often hangs here. */
	signal(SIGALRM, finalize_leave);
	alarm(FINALIZE_S);
	MPI_Finalize();
	return 0;
}
