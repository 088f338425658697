/* SPDX-License-Identifier: Apache-2.0 */
/* MPI_Allreduce, MPI_Reduce, MPI_Reduce_scatter and MPI_Reduce_scatter_block. */
#include "scaled_sum.h"
#include "tribmpi.h"

#include <stdlib.h>
#include <string.h>

/* Who gets the result: a root, or one of these. */
#define TO_ALL (-1)
#define TO_EACH (-2) /* each rank its part */

struct reduction {
	const char *name;
	MPI_Comm comm;
	const void *input;
	void *output; /* where this rank has a result */
	int items;    /* of the vector of a rank */
	MPI_Datatype type;
	MPI_Op op;
	int to;
	struct link *link;
	struct call_shape shape;
};

static bool gets_result(const struct reduction *r)
{
	return r->to < 0 || r->to == r->link->rank;
}

/* One call of libtributary. In place if both buffers are the same. */
static trib_status sum(const struct reduction *r, const void *input, void *output, trib_type type,
                       trib_op op)
{
	trib_comm *trib = r->link->trib;

	if (r->to == TO_ALL)
		return trib_allreduce(trib, input, output, r->shape.count, type, op);
	if (r->to == TO_EACH)
		return trib_reduce_scatter(trib, input, output,
		                           r->shape.count / (size_t)r->link->size, type, op);
	return trib_reduce(trib, input, output, r->shape.count, type, op, r->to);
}

/* As MPI_Reduce_local with MPI_SUM. `n` is in numbers. */
static void add_floats(const char *from, char *sum, size_t n)
{
	for (; n; n--, from += sizeof(float), sum += sizeof(float)) {
		float a, b;

		memcpy(&a, from, sizeof(a));
		memcpy(&b, sum, sizeof(b));
		b = a + b;
		memcpy(sum, &b, sizeof(b));
	}
}

static void add_doubles(const char *from, char *sum, size_t n)
{
	for (; n; n--, from += sizeof(double), sum += sizeof(double)) {
		double a, b;

		memcpy(&a, from, sizeof(a));
		memcpy(&b, sum, sizeof(b));
		b = a + b;
		memcpy(sum, &b, sizeof(b));
	}
}

/* For the most frequent sums, calling MPI takes longer than adding. */
static int apply(const char *from, char *sum, int count, MPI_Datatype type, MPI_Op op)
{
	if (op == MPI_SUM && type == MPI_FLOAT)
		add_floats(from, sum, (size_t)count);
	else if (op == MPI_SUM && type == MPI_DOUBLE)
		add_doubles(from, sum, (size_t)count);
	else
		return PMPI_Reduce_local(from, sum, count, type, op);
	return MPI_SUCCESS;
}

int gather_fold(const struct link *link, char *all, size_t bytes, size_t first, size_t part,
                int count, MPI_Datatype type, MPI_Op op, void *out)
{
	char *sum = all + (size_t)(link->size - 1) * bytes + first;

	for (int r = link->size - 2; r >= 0; r--)
		if (apply(all + (size_t)r * bytes + first, sum, count, type, op) != MPI_SUCCESS)
			return MPI_ERR_OTHER;
	memcpy(out, sum, part);
	return MPI_SUCCESS;
}

size_t gather_pad(const struct link *link, const void *input, size_t bytes, char *all)
{
	size_t total = bytes * (size_t)link->size, words = (total + 7) / 8;

	memset(all, 0, words * 8);
	memcpy(all + (size_t)link->rank * bytes, input, bytes);
	return words;
}

/* Short vectors: every rank gets all of them, and applies MPI's operation. */
static trib_status gather(const struct reduction *r)
{
	size_t bytes = r->shape.bytes, part = bytes;
	char all[GATHER_BYTES] __attribute__((aligned(16)));
	size_t words = gather_pad(r->link, r->input, bytes, all);
	trib_status status =
		trib_allreduce(r->link->trib, TRIB_IN_PLACE, all, words, TRIB_U64, TRIB_SUM);
	int items = r->items;

	if (status != TRIB_OK || !gets_result(r))
		return status;
	if (r->to == TO_EACH) {
		items /= r->link->size;
		part /= (size_t)r->link->size;
	}
	if (gather_fold(r->link, all, bytes, r->to == TO_EACH ? part * (size_t)r->link->rank : 0,
	                part, items, r->type, r->op, r->output) != MPI_SUCCESS)
		return trib_set_error(TRIB_ERR_ARGUMENT, "MPI_Reduce_local failed");
	return TRIB_OK;
}

/* TRIB_IN_PROGRESS: some numbers have no scale, and MPI has to sum. All ranks find the same. */
static trib_status scaled(const struct reduction *r)
{
	size_t n = r->shape.count, first = 0;
	int64_t *integers = link_scratch(r->link, n * (sizeof(*integers) + 1));
	uint8_t *classes;
	unsigned ranks = (unsigned)r->link->size;
	trib_status status;

	if (!integers)
		return TRIB_ERR_NO_MEMORY;
	classes = (uint8_t *)(integers + n);
	scaled_classes(r->input, n, classes);
	status = trib_allreduce(r->link->trib, TRIB_IN_PLACE, classes, n, TRIB_U8, TRIB_MAX);
	if (status != TRIB_OK)
		return status;
	if (!scaled_is_possible(classes, n))
		return TRIB_IN_PROGRESS;
	scaled_encode(r->input, classes, n, ranks, integers);
	status = sum(r, integers, integers, TRIB_I64, TRIB_SUM);
	if (status != TRIB_OK || !gets_result(r))
		return status;
	if (r->to == TO_EACH) {
		n /= ranks;
		first = n * (size_t)r->link->rank;
	}
	scaled_decode(integers, classes + first, n, ranks, r->output);
	return TRIB_OK;
}

/* TRIB_IN_PROGRESS: MPI has to carry it. */
static trib_status carry(struct reduction *r)
{
	enum call_way way;

	/* Calls that MPI carries open no communicator. */
	if (r->items > 0 && (!adapter.least || type_bytes(r->type, r->items) >= adapter.least))
		r->link = link_open(r->comm);
	if (!r->link || r->to >= r->link->size)
		return TRIB_IN_PROGRESS;
	r->shape = type_shape(r->type, r->op, (size_t)r->items, r->link->size);
	way = call_way(&r->shape, (enum mpi_exact)adapter.exact);
	if (way == WAY_SUM)
		return sum(r, r->input, gets_result(r) ? r->output : NULL, r->shape.type,
		           type_op(r->op));
	if (way == WAY_GATHER)
		return gather(r);
	return way == WAY_SCALED ? scaled(r) : TRIB_IN_PROGRESS;
}

/* True: the call has ended, with *code. */
static bool carried(struct reduction *r, int *code)
{
	trib_status status = adapter.is_active ? carry(r) : TRIB_IN_PROGRESS;

	*code = MPI_SUCCESS;
	if (status == TRIB_OK) {
		adapter_count(r->shape.bytes);
		return true;
	}
	if (status == TRIB_IN_PROGRESS) {
		adapter_pass();
		return false;
	}
	*code = link_fail(r->comm, r->name);
	return true;
}

int MPI_Allreduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm)
{
	struct reduction r = { .name = "MPI_Allreduce",
		               .comm = comm,
		               .input = send == MPI_IN_PLACE ? recv : send,
		               .output = recv,
		               .items = count,
		               .type = type,
		               .op = op,
		               .to = TO_ALL };
	int code;

	return carried(&r, &code) ? code : PMPI_Allreduce(send, recv, count, type, op, comm);
}

int MPI_Reduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, int root,
               MPI_Comm comm)
{
	struct reduction r = { .name = "MPI_Reduce",
		               .comm = comm,
		               .input = send == MPI_IN_PLACE ? recv : send,
		               .output = recv,
		               .items = root >= 0 ? count : 0,
		               .type = type,
		               .op = op,
		               .to = root };
	int code;

	return carried(&r, &code) ? code : PMPI_Reduce(send, recv, count, type, op, root, comm);
}

/* Each rank gets `count` items of the sum; 0: MPI has to carry it. */
static bool scattered(const char *name, const void *send, void *recv, int count, MPI_Datatype type,
                      MPI_Op op, MPI_Comm comm, int *code)
{
	int size = link_size(comm);
	struct reduction r = { .name = name,
		               .comm = comm,
		               .input = send == MPI_IN_PLACE ? recv : send,
		               .output = recv,
		               .items = size && count <= INT_MAX / size ? count * size : 0,
		               .type = type,
		               .op = op,
		               .to = TO_EACH };

	return carried(&r, code);
}

int MPI_Reduce_scatter_block(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
                             MPI_Comm comm)
{
	int code;

	if (scattered("MPI_Reduce_scatter_block", send, recv, count, type, op, comm, &code))
		return code;
	return PMPI_Reduce_scatter_block(send, recv, count, type, op, comm);
}

/* Parts of the same length are what libtributary has. All ranks give the same counts. 0: others. */
static int length_of_parts(const int *counts, int n)
{
	for (int i = 1; i < n; i++)
		if (counts[i] != counts[0])
			return 0;
	return n && counts[0] > 0 ? counts[0] : 0;
}

int MPI_Reduce_scatter(const void *send, void *recv, const int counts[], MPI_Datatype type,
                       MPI_Op op, MPI_Comm comm)
{
	int part = counts ? length_of_parts(counts, link_size(comm)) : 0, code;

	if (scattered("MPI_Reduce_scatter", send, recv, part, type, op, comm, &code))
		return code;
	return PMPI_Reduce_scatter(send, recv, counts, type, op, comm);
}
