/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ibv_wr_start, ibv_wr_rdma_write and the like: a program builds requests by calls, and
 * ibv_wr_complete posts them. Here they become a list of requests for the hooked ibv_post_send.
 */
#include "tribverbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct batch {
	struct ibv_send_wr *requests;
	struct ibv_sge *pieces; /* PIECES_MAX for each request */
	uint8_t **inline_bytes;
	unsigned n, capacity;
	int error;
};

static struct batch *find(const struct ibv_qp *qp)
{
	return table_find_qp(qp)->batch;
}

static bool grow(struct batch *batch)
{
	unsigned capacity = batch->capacity ? 2 * batch->capacity : 16;
	void *requests = realloc(batch->requests, capacity * sizeof(*batch->requests));
	void *pieces, *bytes;

	if (!requests)
		return false;
	batch->requests = requests;
	pieces = realloc(batch->pieces, (size_t)capacity * PIECES_MAX * sizeof(*batch->pieces));
	if (!pieces)
		return false;
	batch->pieces = pieces;
	bytes = realloc(batch->inline_bytes, capacity * sizeof(*batch->inline_bytes));
	if (!bytes)
		return false;
	batch->inline_bytes = bytes;
	memset(batch->inline_bytes + batch->capacity, 0,
	       (capacity - batch->capacity) * sizeof(*batch->inline_bytes));
	batch->capacity = capacity;
	return true;
}

/* A new request. NULL: no memory. */
static struct ibv_send_wr *add(struct ibv_qp_ex *qp, enum ibv_wr_opcode opcode)
{
	struct batch *batch = find(&qp->qp_base);
	struct ibv_send_wr *wr;

	if (batch->n == batch->capacity && !grow(batch)) {
		batch->error = ENOMEM;
		return NULL;
	}
	wr = &batch->requests[batch->n++];
	*wr = (struct ibv_send_wr){ .wr_id = qp->wr_id,
		                    .opcode = opcode,
		                    .send_flags = qp->wr_flags };
	return wr;
}

static void api_start(struct ibv_qp_ex *qp)
{
	struct batch *batch = find(&qp->qp_base);

	batch->n = 0;
	batch->error = 0;
}

static void api_rdma(struct ibv_qp_ex *qp, enum ibv_wr_opcode opcode, uint32_t key,
                     uint64_t address, __be32 imm)
{
	struct ibv_send_wr *wr = add(qp, opcode);

	if (!wr)
		return;
	wr->wr.rdma.remote_addr = address;
	wr->wr.rdma.rkey = key;
	wr->imm_data = imm;
}

static void api_write(struct ibv_qp_ex *qp, uint32_t key, uint64_t address)
{
	api_rdma(qp, IBV_WR_RDMA_WRITE, key, address, 0);
}

static void api_write_imm(struct ibv_qp_ex *qp, uint32_t key, uint64_t address, __be32 imm)
{
	api_rdma(qp, IBV_WR_RDMA_WRITE_WITH_IMM, key, address, imm);
}

static void api_read(struct ibv_qp_ex *qp, uint32_t key, uint64_t address)
{
	api_rdma(qp, IBV_WR_RDMA_READ, key, address, 0);
}

static void api_send(struct ibv_qp_ex *qp)
{
	add(qp, IBV_WR_SEND);
}

static void api_send_imm(struct ibv_qp_ex *qp, __be32 imm)
{
	struct ibv_send_wr *wr = add(qp, IBV_WR_SEND_WITH_IMM);

	if (wr)
		wr->imm_data = imm;
}

static void api_send_inv(struct ibv_qp_ex *qp, uint32_t key)
{
	struct ibv_send_wr *wr = add(qp, IBV_WR_SEND_WITH_INV);

	if (wr)
		wr->invalidate_rkey = key;
}

static void api_local_inv(struct ibv_qp_ex *qp, uint32_t key)
{
	struct ibv_send_wr *wr = add(qp, IBV_WR_LOCAL_INV);

	if (wr)
		wr->invalidate_rkey = key;
}

static void api_bind_mw(struct ibv_qp_ex *qp, struct ibv_mw *mw, uint32_t key,
                        const struct ibv_mw_bind_info *info)
{
	struct ibv_send_wr *wr = add(qp, IBV_WR_BIND_MW);

	if (!wr)
		return;
	wr->bind_mw.mw = mw;
	wr->bind_mw.rkey = key;
	wr->bind_mw.bind_info = *info;
}

static void api_atomic(struct ibv_qp_ex *qp, enum ibv_wr_opcode opcode, uint32_t key,
                       uint64_t address, uint64_t compare_add, uint64_t swap)
{
	struct ibv_send_wr *wr = add(qp, opcode);

	if (!wr)
		return;
	wr->wr.atomic.remote_addr = address;
	wr->wr.atomic.rkey = key;
	wr->wr.atomic.compare_add = compare_add;
	wr->wr.atomic.swap = swap;
}

static void api_compare_swap(struct ibv_qp_ex *qp, uint32_t key, uint64_t address, uint64_t compare,
                             uint64_t swap)
{
	api_atomic(qp, IBV_WR_ATOMIC_CMP_AND_SWP, key, address, compare, swap);
}

static void api_fetch_add(struct ibv_qp_ex *qp, uint32_t key, uint64_t address, uint64_t value)
{
	api_atomic(qp, IBV_WR_ATOMIC_FETCH_AND_ADD, key, address, value, 0);
}

static void api_set_pieces(struct ibv_qp_ex *qp, size_t n, const struct ibv_sge *pieces)
{
	struct batch *batch = find(&qp->qp_base);
	unsigned last = batch->n - 1;

	if (!batch->n || n > PIECES_MAX) {
		batch->error = EINVAL;
		return;
	}
	memcpy(&batch->pieces[(size_t)last * PIECES_MAX], pieces, n * sizeof(*pieces));
	batch->requests[last].num_sge = (int)n;
}

static void api_set_piece(struct ibv_qp_ex *qp, uint32_t key, uint64_t address, uint32_t length)
{
	struct ibv_sge piece = { .addr = address, .length = length, .lkey = key };

	api_set_pieces(qp, 1, &piece);
}

/* The bytes are copied now: the program may change them before ibv_wr_complete. */
static void api_set_inline_list(struct ibv_qp_ex *qp, size_t n, const struct ibv_data_buf *list)
{
	struct batch *batch = find(&qp->qp_base);
	size_t bytes = 0;
	uint8_t *to;

	for (size_t i = 0; i < n; i++)
		bytes += list[i].length;
	if (!batch->n || !(to = realloc(batch->inline_bytes[batch->n - 1], bytes + 1))) {
		batch->error = ENOMEM;
		return;
	}
	batch->inline_bytes[batch->n - 1] = to;
	for (size_t i = 0; i < n; to += list[i++].length)
		memcpy(to, list[i].addr, list[i].length);
	batch->requests[batch->n - 1].send_flags |= IBV_SEND_INLINE;
	api_set_piece(qp, 0, (uintptr_t)batch->inline_bytes[batch->n - 1], (uint32_t)bytes);
}

static void api_set_inline(struct ibv_qp_ex *qp, void *address, size_t length)
{
	struct ibv_data_buf buffer = { .addr = address, .length = length };

	api_set_inline_list(qp, 1, &buffer);
}

static int api_complete(struct ibv_qp_ex *qp)
{
	struct batch *batch = find(&qp->qp_base);
	struct ibv_send_wr *bad;

	if (batch->error || !batch->n)
		return batch->error;
	for (unsigned i = 0; i < batch->n; i++) {
		batch->requests[i].sg_list = &batch->pieces[(size_t)i * PIECES_MAX];
		batch->requests[i].next = i + 1 < batch->n ? &batch->requests[i + 1] : NULL;
	}
	return ibv_post_send(&qp->qp_base, batch->requests, &bad);
}

static void api_abort(struct ibv_qp_ex *qp)
{
	api_start(qp);
}

void work_api_replace(struct ibv_qp *qp)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
	struct link_qp *link = table_find_qp(qp);

	if (!ex || !(link->batch = calloc(1, sizeof(*link->batch))))
		return;
	ex->wr_start = api_start;
	ex->wr_complete = api_complete;
	ex->wr_abort = api_abort;
	ex->wr_rdma_write = api_write;
	ex->wr_rdma_write_imm = api_write_imm;
	ex->wr_rdma_read = api_read;
	ex->wr_send = api_send;
	ex->wr_send_imm = api_send_imm;
	ex->wr_send_inv = api_send_inv;
	ex->wr_local_inv = api_local_inv;
	ex->wr_bind_mw = api_bind_mw;
	ex->wr_atomic_cmp_swp = api_compare_swap;
	ex->wr_atomic_fetch_add = api_fetch_add;
	ex->wr_set_sge = api_set_piece;
	ex->wr_set_sge_list = api_set_pieces;
	ex->wr_set_inline_data = api_set_inline;
	ex->wr_set_inline_data_list = api_set_inline_list;
}

void work_api_forget(struct link_qp *link)
{
	struct batch *gone = link->batch;

	if (!gone)
		return;
	for (unsigned i = 0; i < gone->capacity; i++)
		free(gone->inline_bytes[i]);
	free(gone->inline_bytes);
	free(gone->requests);
	free(gone->pieces);
	free(gone);
}
