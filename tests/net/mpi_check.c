/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An MPI program that compares each collective with the MPI library's own (PMPI_*), in one process:
 * types, operations, lengths, in place or not, and several communicators. Preload the adapter, and
 * its results are compared; without it, MPI is compared with itself.
 *
 *     mpi_check [--multiple] [--short] [--die RANK]
 *
 * --multiple: MPI_THREAD_MULTIPLE, so that nonblocking calls are the adapter's too. --die: this
 * rank ends in the middle. Prints "rank R: N right" or what is wrong.
 */
#include <complex.h>
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LENGTHS 5
#define LONGEST 40000
#define ROOM ((size_t)LONGEST * 16 * 8)

static const int lengths[LENGTHS] = { 1, 7, 300, 5000, LONGEST };
static char *input, *ours, *theirs;
static unsigned right, wrong;
static int n_lengths = LENGTHS;

/* ---- allocations ---- */

#define SMALL_CALLS 100
#define ALLOCATIONS 5 /* in all of them: a call uses the memory of the call before */

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
static _Thread_local unsigned allocations;

void *malloc(size_t bytes)
{
	allocations++;
	return __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
	allocations++;
	return __libc_calloc(n, bytes);
}

/* How results of a type may differ. */
enum kind { EXACT, SINGLE, DOUBLE };

struct known {
	MPI_Datatype type;
	const char *name;
	enum kind kind;
	int parts; /* numbers in an item */
};

static void report(const char *what, const char *type, int count, int size, int same)
{
	int rank;

	if (same) {
		right++;
		return;
	}
	PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (wrong++ < 20)
		printf("rank %d: WRONG %s of %d %s on %d ranks\n", rank, what, count, type, size);
}

/* Floats of several magnitudes, small integers otherwise, so that products stay in range. */
static void fill(const struct known *known, int count, int rank, unsigned seed)
{
	int size;

	PMPI_Type_size(known->type, &size);
	for (int i = 0; i < count * known->parts; i++) {
		unsigned x = (unsigned)i * 2654435761u + seed * 40503u + (unsigned)rank * 977u;
		double value = (double)(x >> 8 & 0xffff) / 65536 - 0.4;

		x ^= x >> 15;
		if (known->kind == DOUBLE)
			((double *)input)[i] = ldexp(value, (int)(x % 60) - 30);
		else if (known->kind == SINGLE)
			((float *)input)[i] = (float)value;
	}
	for (int i = 0; known->kind == EXACT && i < count * size; i++)
		input[i] = (char)((unsigned)i * 31u + seed + (unsigned)rank * 7u);
	/* MPICH 4.0 compares unsigned numbers as signed ones. */
	if (known->type == MPI_UNSIGNED || known->type == MPI_UINT64_T)
		for (int i = size - 1; i < count * size; i += size)
			input[i] &= 0x7f;
	/* Sums of short integers must not overflow: MPI leaves open what they are then. */
	for (int i = 0; size < 4 && i < count * size; i++)
		input[i] = (char)(i % size ? 0 : input[i] & 15);
}

/* Within the bound of additions in any order, or, for floats, of fixed point. */
static int is_same(const struct known *known, int count, MPI_Op op, int ranks)
{
	size_t n = (size_t)count * (size_t)known->parts;
	int size;

	PMPI_Type_size(known->type, &size);
	if (known->kind == EXACT || op == MPI_MIN || op == MPI_MAX)
		return memcmp(ours, theirs, (size_t)size * (size_t)count) == 0;
	for (size_t i = 0; i < n; i++) {
		double a = known->kind == DOUBLE ? ((double *)ours)[i] : (double)((float *)ours)[i];
		double b = known->kind == DOUBLE ? ((double *)theirs)[i]
		                                 : (double)((float *)theirs)[i];
		/* The largest addend of element i is at most 2^30 for doubles, 0.6 for floats. */
		double unit = known->kind == DOUBLE ? 0x1p-50 : 0x1p-20;

		if (fabs(a - b) > unit * ranks * fmax(fabs(b), known->kind == SINGLE ? 1 : 0) &&
		    known->kind == SINGLE)
			return 0;
		if (known->kind == DOUBLE && fabs(a - b) > unit * ranks * fabs(b) &&
		    fabs(a - b) > unit * ranks * ldexp(1, 30))
			return 0;
	}
	return 1;
}

static void same_start(size_t bytes)
{
	memset(ours, 0x5a, bytes);
	memset(theirs, 0x5a, bytes);
}

static void reductions(MPI_Comm comm, const struct known *known, MPI_Op op, const char *name,
                       int count, int in_place, int nonblocking)
{
	int rank, size, root, item;
	size_t bytes;
	MPI_Request request;
	char what[64];

	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	PMPI_Type_size(known->type, &item);
	bytes = (size_t)item * (size_t)count * (size_t)size;
	root = count % size;
	if (bytes > ROOM)
		return;
	fill(known, count * size, rank, (unsigned)count);
	snprintf(what, sizeof(what), "allreduce %s%s%s", name, in_place ? " in place" : "",
	         nonblocking ? ", nonblocking" : "");
	same_start(bytes);
	if (in_place)
		memcpy(ours, input, bytes);
	if (nonblocking) {
		MPI_Iallreduce(in_place ? MPI_IN_PLACE : input, ours, count, known->type, op, comm,
		               &request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	} else {
		MPI_Allreduce(in_place ? MPI_IN_PLACE : input, ours, count, known->type, op, comm);
	}
	PMPI_Allreduce(input, theirs, count, known->type, op, comm);
	report(what, known->name, count, size, is_same(known, count, op, size));

	snprintf(what, sizeof(what), "reduce %s", name);
	same_start(bytes);
	if (in_place && rank == root)
		memcpy(ours, input, bytes);
	if (nonblocking) {
		MPI_Ireduce(in_place && rank == root ? MPI_IN_PLACE : input, ours, count,
		            known->type, op, root, comm, &request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	} else {
		MPI_Reduce(in_place && rank == root ? MPI_IN_PLACE : input, ours, count,
		           known->type, op, root, comm);
	}
	PMPI_Reduce(input, theirs, count, known->type, op, root, comm);
	report(what, known->name, count, size, rank != root || is_same(known, count, op, size));

	snprintf(what, sizeof(what), "reduce_scatter_block %s", name);
	same_start(bytes);
	if (in_place)
		memcpy(ours, input, bytes);
	MPI_Reduce_scatter_block(in_place ? MPI_IN_PLACE : input, ours, count, known->type, op,
	                         comm);
	PMPI_Reduce_scatter_block(input, theirs, count, known->type, op, comm);
	report(what, known->name, count, size, is_same(known, count, op, size));
}

/* Parts that are equal, and parts that differ. */
static void scatters(MPI_Comm comm, const struct known *known)
{
	int rank, size, counts[64];

	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	for (int differ = 0; differ < 2; differ++) {
		for (int r = 0; r < size; r++)
			counts[r] = 20 + differ * r;
		fill(known, 20 * size + size * size, rank, 5);
		same_start(4096);
		MPI_Reduce_scatter(input, ours, counts, known->type, MPI_SUM, comm);
		PMPI_Reduce_scatter(input, theirs, counts, known->type, MPI_SUM, comm);
		report("reduce_scatter", known->name, counts[rank], size,
		       is_same(known, counts[rank], MPI_SUM, size));
	}
}

static void moves(MPI_Comm comm, const struct known *known, int count, int nonblocking)
{
	int rank, size, root, item;
	MPI_Datatype column;
	MPI_Request request;
	size_t bytes;

	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	PMPI_Type_size(known->type, &item);
	root = (count + 1) % size;
	bytes = (size_t)item * (size_t)count;
	if (bytes * (size_t)size * 2 > ROOM)
		return;
	fill(known, count, rank, (unsigned)count);
	same_start(bytes * (size_t)size * 2);
	memcpy(ours, input, bytes);
	memcpy(theirs, input, bytes);
	if (nonblocking) {
		MPI_Ibcast(ours, count, known->type, root, comm, &request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	} else {
		MPI_Bcast(ours, count, known->type, root, comm);
	}
	PMPI_Bcast(theirs, count, known->type, root, comm);
	report("bcast", known->name, count, size, memcmp(ours, theirs, bytes) == 0);

	/* The root sends items side by side, the others receive every second place. */
	MPI_Type_vector(count, 1, 2, known->type, &column);
	MPI_Type_commit(&column);
	same_start(2 * bytes);
	memcpy(ours, input, bytes);
	memcpy(theirs, input, bytes);
	if (rank == root) {
		MPI_Bcast(ours, count, known->type, root, comm);
		PMPI_Bcast(theirs, count, known->type, root, comm);
	} else {
		MPI_Bcast(ours, 1, column, root, comm);
		PMPI_Bcast(theirs, 1, column, root, comm);
	}
	report("bcast with holes", known->name, count, size, memcmp(ours, theirs, 2 * bytes) == 0);

	same_start(bytes * (size_t)size * 2);
	if (nonblocking) {
		MPI_Iallgather(input, count, known->type, ours, count, known->type, comm, &request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	} else {
		MPI_Allgather(input, count, known->type, ours, count, known->type, comm);
	}
	PMPI_Allgather(input, count, known->type, theirs, count, known->type, comm);
	report("allgather", known->name, count, size,
	       memcmp(ours, theirs, bytes * (size_t)size) == 0);

	same_start(bytes * (size_t)size * 2);
	MPI_Allgather(input, count, known->type, ours, 1, column, comm);
	PMPI_Allgather(input, count, known->type, theirs, 1, column, comm);
	report("allgather with holes", known->name, count, size,
	       memcmp(ours, theirs, bytes * (size_t)size * 2) == 0);
	MPI_Type_free(&column);

	same_start(bytes * (size_t)size);
	memcpy(ours + (size_t)rank * bytes, input, bytes);
	MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, ours, count, known->type, comm);
	PMPI_Allgather(input, count, known->type, theirs, count, known->type, comm);
	report("allgather in place", known->name, count, size,
	       memcmp(ours, theirs, bytes * (size_t)size) == 0);
}

/* Operations on types that libtributary does not have, and a user's own. */
static void user_add(void *in, void *out, int *n, MPI_Datatype *type)
{
	(void)type;
	for (int i = 0; i < *n; i++)
		((int *)out)[i] += 2 * ((int *)in)[i];
}

static void odd_calls(MPI_Comm comm)
{
	const struct known shorts = { MPI_SHORT, "MPI_SHORT", EXACT, 1 };
	const struct known pairs = { MPI_2INT, "MPI_2INT", EXACT, 1 };
	const struct known ints = { MPI_INT, "MPI_INT", EXACT, 1 };
	MPI_Request request;
	MPI_Op own;
	int done = 0;

	for (int l = 0; l < n_lengths; l++) {
		reductions(comm, &shorts, MPI_SUM, "sum", lengths[l], 0, 0);
		reductions(comm, &pairs, MPI_MAXLOC, "maxloc", lengths[l], 0, 0);
		reductions(comm, &ints, MPI_BXOR, "bxor", lengths[l], 1, 0);
		reductions(comm, &ints, MPI_PROD, "prod", lengths[l], 0, 0);
	}
	MPI_Op_create(user_add, 0, &own);
	reductions(comm, &ints, own, "user's", 33, 0, 0);
	MPI_Op_free(&own);
	MPI_Barrier(comm);
	MPI_Ibarrier(comm, &request);
	while (!done)
		MPI_Test(&request, &done, MPI_STATUS_IGNORE);
}

/* Absolute addresses, and a null request beside calls that run. */
static void odd_arguments(MPI_Comm comm)
{
	int rank, size, values[2], sum = 0, length = 2;
	MPI_Request requests[4] = { MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL,
		                    MPI_REQUEST_NULL };
	MPI_Datatype absolute;
	MPI_Aint address;

	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	values[0] = rank + 5;
	values[1] = -rank;
	MPI_Get_address(values, &address);
	MPI_Type_create_hindexed(1, &length, &address, MPI_INT, &absolute);
	MPI_Type_commit(&absolute);
	MPI_Bcast(MPI_BOTTOM, 1, absolute, size - 1, comm);
	MPI_Type_free(&absolute);
	report("bcast of absolute addresses", "MPI_INT", 2, size,
	       values[0] == size + 4 && values[1] == 1 - size);
	if (rank == 0)
		usleep(100000); /* the others wait */
	MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm, &requests[1]);
	MPI_Ibarrier(comm, &requests[2]);
	MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
	report("wait for all, and for null", "MPI_INT", 1, size, sum == size * (size - 1) / 2);
}

#ifndef OPEN_MPI /* 4.1 fails itself */
/* The parts of ranks lie in memory from the last one to the first. */
static void backwards(MPI_Comm comm)
{
	int rank, size, all[64] = { 0 }, same = 1;
	MPI_Datatype back;

	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	MPI_Type_create_resized(MPI_INT, 0, -(MPI_Aint)sizeof(int), &back);
	MPI_Type_commit(&back);
	all[size - 1 - rank] = rank + 1;
	MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all + size - 1, 1, back, comm);
	MPI_Type_free(&back);
	for (int r = 0; r < size; r++)
		same = same && all[size - 1 - r] == r + 1;
	report("allgather in place, backwards", "MPI_INT", 1, size, same);
}
#endif

/* Numbers that have no scale, and sums to which only one rank adds. */
static void special_doubles(MPI_Comm comm)
{
	const struct known known = { MPI_DOUBLE, "MPI_DOUBLE", DOUBLE, 1 };
	double *in = (double *)input, *got = (double *)ours, *want = (double *)theirs;
	int rank, size, same = 1;

	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	fill(&known, LONGEST, rank, 1);
	if (rank == 0) {
		in[3] = 1e300;
		in[5] = 4e-320;
		in[7] = INFINITY;
		in[9] = NAN;
	}
	MPI_Allreduce(in, got, LONGEST, MPI_DOUBLE, MPI_SUM, comm);
	PMPI_Allreduce(in, want, LONGEST, MPI_DOUBLE, MPI_SUM, comm);
	report("allreduce of special numbers", "MPI_DOUBLE", LONGEST, size,
	       isinf(got[7]) && isnan(got[9]) && got[3] == want[3] && got[5] == want[5]);
	fill(&known, LONGEST, rank, 2);
	for (int i = 0; i < LONGEST; i++)
		if (i % size != rank)
			in[i] = 0;
	MPI_Allreduce(in, got, LONGEST, MPI_DOUBLE, MPI_SUM, comm);
	for (int i = rank; i < LONGEST; i += size)
		same = same && got[i] == in[i];
	report("allreduce with one addend", "MPI_DOUBLE", LONGEST, size, same);
}

/* Rank 0 is in the collective while it sends; rank 1 calls it when it has all of the message. */
static void message_beside(int rank, int size)
{
	MPI_Request request;
	int sum = 0;

	memset(input, 7, ROOM);
	memset(theirs, 0, ROOM);
	if (rank == 1)
		MPI_Recv(theirs, (int)ROOM, MPI_CHAR, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (rank == 0) {
		MPI_Isend(input, (int)ROOM, MPI_CHAR, 1, 5, MPI_COMM_WORLD, &request);
		MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	} else {
		MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	}
	report("allreduce beside a message", "MPI_INT", 1, size,
	       sum == size * (size - 1) / 2 && (rank != 1 || memcmp(input, theirs, ROOM) == 0));
}

/* Neither the adapter nor the library needs new memory for a small sum. */
static void small_calls(int size)
{
#ifdef OPEN_MPI
	MPI_Datatype type = MPI_FLOAT;
#else
	MPI_Datatype type = MPI_INT; /* MPICH itself needs memory to add floats */
#endif
	const char *use = getenv("TRIB_MPI");
	unsigned before;

	memset(ours, 0, 8);
	before = allocations;
	for (int i = 0; i < SMALL_CALLS; i++)
		MPI_Allreduce(MPI_IN_PLACE, ours, 2, type, MPI_SUM, MPI_COMM_WORLD);
	if (getenv("TRIB_AGGREGATOR") && use && !strcmp(use, "on")) /* MPI carries none of them */
		report("memory of small allreduces", "numbers", 2, size,
		       before && allocations - before <= ALLOCATIONS);
}

static void check_all(MPI_Comm comm, int nonblocking)
{
	const struct known all[] = {
		{ MPI_INT, "MPI_INT", EXACT, 1 },
		{ MPI_UNSIGNED, "MPI_UNSIGNED", EXACT, 1 },
		{ MPI_LONG, "MPI_LONG", EXACT, 1 },
		{ MPI_UINT64_T, "MPI_UINT64_T", EXACT, 1 },
		{ MPI_SIGNED_CHAR, "MPI_SIGNED_CHAR", EXACT, 1 },
		{ MPI_UNSIGNED_CHAR, "MPI_UNSIGNED_CHAR", EXACT, 1 },
		{ MPI_FLOAT, "MPI_FLOAT", SINGLE, 1 },
		{ MPI_DOUBLE, "MPI_DOUBLE", DOUBLE, 1 },
		{ MPI_C_DOUBLE_COMPLEX, "MPI_C_DOUBLE_COMPLEX", DOUBLE, 2 },
	};
	const MPI_Op ops[] = { MPI_SUM, MPI_MIN, MPI_MAX };
	const char *const names[] = { "sum", "min", "max" };

	for (size_t t = 0; t < sizeof(all) / sizeof(*all); t++)
		for (int l = 0; l < n_lengths; l++) {
			for (int o = 0; o < (all[t].parts > 1 ? 1 : 3); o++)
				reductions(comm, &all[t], ops[o], names[o], lengths[l], (l + o) % 2,
				           nonblocking);
			moves(comm, &all[t], lengths[l], nonblocking);
			if (l == 0)
				scatters(comm, &all[t]);
		}
	odd_calls(comm);
	odd_arguments(comm);
#ifndef OPEN_MPI
	backwards(comm);
#endif
	special_doubles(comm);
}

static void other_communicators(int rank, int size)
{
	MPI_Comm dup, half, pair, inter;
	int one = 1, sum = 0;

	MPI_Comm_dup(MPI_COMM_WORLD, &dup);
	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
	n_lengths = 3;
	check_all(half, 0);
	check_all(dup, 0);
	MPI_Comm_free(&half);
	/* Many that come and go, used a little. */
	for (int i = 0; i < 10; i++) {
		MPI_Comm_split(dup, rank < 2 ? 0 : MPI_UNDEFINED, 0, &pair);
		if (pair == MPI_COMM_NULL)
			continue;
		MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, pair);
		report("allreduce on a pair", "MPI_INT", 1, 2, sum == 2);
		MPI_Comm_free(&pair);
	}
	if (size >= 2) {
		MPI_Comm_split(dup, rank % 2, 0, &half);
		MPI_Intercomm_create(half, 0, dup, (rank + 1) % 2, 7, &inter);
		MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter);
		report("allreduce between two groups", "MPI_INT", 1, size,
		       sum == (rank % 2 ? (size + 1) / 2 : size / 2));
		MPI_Comm_free(&inter);
		MPI_Comm_free(&half);
	}
	MPI_Comm_free(&dup);
}

int main(int argc, char **argv)
{
	int rank, size, provided = MPI_THREAD_SINGLE, multiple = 0, die = -1;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--multiple"))
			multiple = 1;
		else if (!strcmp(argv[i], "--short"))
			n_lengths = 3;
		else if (!strcmp(argv[i], "--die") && i + 1 < argc)
			die = atoi(argv[++i]);
	}
	if (multiple)
		MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	else
		MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	input = calloc(2, ROOM);
	ours = calloc(2, ROOM);
	theirs = calloc(2, ROOM);
	if (!input || !ours || !theirs)
		return 1;
	check_all(MPI_COMM_WORLD, provided == MPI_THREAD_MULTIPLE);
	if (rank == die)
		_exit(3);
	if (die >= 0) /* the adapter finds out; MPI's own calls may wait for ever */
		MPI_Allreduce(input, ours, 100, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	message_beside(rank, size);
	small_calls(size);
	other_communicators(rank, size);
	printf("rank %d: %u right%s\n", rank, right, wrong ? ", but some are wrong" : "");
	free(input);
	free(ours);
	free(theirs);
	MPI_Finalize();
	return wrong != 0;
}
