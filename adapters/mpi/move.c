/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MPI_Bcast, MPI_Allgather and MPI_Barrier. Ranks may describe the same data by different types, so
 * only the number of bytes decides. Data with holes are packed.
 */
#include "tribmpi.h"

#include <stdlib.h>
#include <string.h>

/* Packing counts bytes in an int. Others may have to pack, if this rank does not. */
static bool can_pack(size_t bytes)
{
	return bytes <= INT_MAX;
}

/* A type of `count` items at absolute addresses, as seen from `here`. */
static MPI_Datatype type_from_here(const char *here, int count, MPI_Datatype type)
{
	MPI_Aint back = -(MPI_Aint)here;
	MPI_Datatype moved;

	PMPI_Type_create_hindexed(1, &count, &back, type, &moved);
	PMPI_Type_commit(&moved);
	return moved;
}

/* All bytes of `count` items, one after the other; from memory to `packed`, or back. */
static bool pack(void *memory, int count, MPI_Datatype type, void *packed, size_t bytes,
                 MPI_Comm comm, bool back)
{
	int position = 0;

	if (!memory) { /* MPI_BOTTOM: MPICH's MPI_Pack refuses it */
		char here;
		MPI_Datatype moved = type_from_here(&here, count, type);
		bool good = pack(&here, 1, moved, packed, bytes, comm, back);

		PMPI_Type_free(&moved);
		return good;
	}
	if (back)
		PMPI_Unpack(packed, (int)bytes, &position, memory, count, type, comm);
	else
		PMPI_Pack(memory, count, type, packed, (int)bytes, &position, comm);
	return (size_t)position == bytes;
}

static trib_status no_packing(void)
{
	return trib_set_error(TRIB_ERR_ARGUMENT, "MPI does not pack this type into its bytes, or "
	                                         "there is no memory for them");
}

static trib_status broadcast(struct link *link, void *buffer, int count, MPI_Datatype type,
                             size_t bytes, int root, MPI_Comm comm)
{
	trib_status status;
	void *packed;

	if (type_is_plain(type))
		return trib_broadcast(link->trib, buffer, bytes, TRIB_U8, root);
	packed = malloc(bytes);
	if (!packed ||
	    (link->rank == root && !pack(buffer, count, type, packed, bytes, comm, false)))
		status = no_packing();
	else
		status = trib_broadcast(link->trib, packed, bytes, TRIB_U8, root);
	if (status == TRIB_OK && link->rank != root &&
	    !pack(buffer, count, type, packed, bytes, comm, true))
		status = no_packing();
	free(packed);
	return status;
}

int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
	size_t bytes = adapter.is_active ? type_bytes(type, count) : 0;
	struct link *link = NULL;

	if (bytes && bytes >= adapter.least && can_pack(bytes))
		link = link_open(comm);

	if (!link || root < 0 || root >= link->size) {
		adapter_pass();
		return PMPI_Bcast(buffer, count, type, root, comm);
	}
	if (broadcast(link, buffer, count, type, bytes, root, comm) != TRIB_OK)
		return link_fail(comm, "MPI_Bcast");
	adapter_count(bytes);
	return MPI_SUCCESS;
}

struct gathering {
	const void *send;
	int send_count;
	MPI_Datatype send_type;
	void *recv;
	int recv_count;
	MPI_Datatype recv_type;
	MPI_Comm comm;
};

/* This rank's part of the result's memory. */
static char *own_part(const struct link *link, const struct gathering *g)
{
	MPI_Aint low = 0, extent = 0; /* may be negative */

	PMPI_Type_get_extent(g->recv_type, &low, &extent);
	return (char *)g->recv + link->rank * g->recv_count * extent;
}

/* Data with holes: packed in `all`, `bytes` of each rank. */
static trib_status gather_packed(struct link *link, const struct gathering *g, char *all,
                                 size_t bytes)
{
	bool in_place = g->send == MPI_IN_PLACE;
	char *own = all + (size_t)link->rank * bytes;
	trib_status status;

	/* The function only reads what it packs. */
	if (!pack(in_place ? own_part(link, g) : (void *)(uintptr_t)g->send,
	          in_place ? g->recv_count : g->send_count, in_place ? g->recv_type : g->send_type,
	          own, bytes, g->comm, false))
		return no_packing();
	status = trib_allgather(link->trib, TRIB_IN_PLACE, all, bytes, TRIB_U8);
	if (status == TRIB_OK && !pack(g->recv, g->recv_count * link->size, g->recv_type, all,
	                               bytes * (size_t)link->size, g->comm, true))
		status = no_packing();
	return status;
}

static trib_status gather_all(struct link *link, const struct gathering *g, size_t bytes)
{
	bool in_place = g->send == MPI_IN_PLACE;
	trib_status status;
	char *all;

	if (type_is_plain(g->recv_type) && (in_place || type_is_plain(g->send_type)))
		return trib_allgather(link->trib, in_place ? TRIB_IN_PLACE : g->send, g->recv,
		                      bytes, TRIB_U8);
	all = malloc(bytes * (size_t)link->size);
	status = all ? gather_packed(link, g, all, bytes) : no_packing();
	free(all);
	return status;
}

int MPI_Allgather(const void *send, int send_count, MPI_Datatype send_type, void *recv,
                  int recv_count, MPI_Datatype recv_type, MPI_Comm comm)
{
	struct gathering g = { send, send_count, send_type, recv, recv_count, recv_type, comm };
	size_t bytes = adapter.is_active ? type_bytes(recv_type, recv_count) : 0;
	size_t size = bytes ? (size_t)link_size(comm) : 0;
	struct link *link = NULL;

	if (size && can_pack(bytes * size) && bytes * size >= adapter.least)
		link = link_open(comm);
	if (!link) {
		adapter_pass();
		return PMPI_Allgather(send, send_count, send_type, recv, recv_count, recv_type,
		                      comm);
	}
	if (send != MPI_IN_PLACE && type_bytes(send_type, send_count) != bytes) {
		trib_set_error(TRIB_ERR_ARGUMENT,
		               "what is sent and what is received differ in length");
		return link_fail(comm, "MPI_Allgather");
	}
	if (gather_all(link, &g, bytes) != TRIB_OK)
		return link_fail(comm, "MPI_Allgather");
	adapter_count(bytes * (size_t)link->size);
	return MPI_SUCCESS;
}

int MPI_Barrier(MPI_Comm comm)
{
	struct link *link = adapter.least ? NULL : link_open(comm);

	if (!link) {
		adapter_pass();
		return PMPI_Barrier(comm);
	}
	if (trib_barrier(link->trib) != TRIB_OK)
		return link_fail(comm, "MPI_Barrier");
	adapter_count(0);
	return MPI_SUCCESS;
}
