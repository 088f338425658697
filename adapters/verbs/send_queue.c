/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "tribverbs.h"

#include <errno.h>
#include <string.h>

static struct posted_send *send_of(const struct link_qp *link, uint64_t request)
{
	return &link->sends[request & (link->splitter.config.capacity - 1)];
}

/* ---- from the application ---- */

static uint32_t bytes_of(const struct ibv_send_wr *wr)
{
	uint32_t bytes = 0;

	for (int i = 0; i < wr->num_sge; i++)
		bytes += wr->sg_list[i].length;
	return bytes;
}

static struct split_request request_of(const struct ibv_send_wr *wr)
{
	struct split_request request = { .op = SPLIT_OTHER,
		                         .fence = wr->send_flags & IBV_SEND_FENCE,
		                         .whole = wr->send_flags & IBV_SEND_INLINE,
		                         .length = bytes_of(wr) };

	switch (wr->opcode) {
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		request.consumes = true;
		/* fallthrough */
	case IBV_WR_RDMA_WRITE:
		request.op = SPLIT_WRITE;
		request.remote = wr->wr.rdma.remote_addr;
		break;
	case IBV_WR_RDMA_READ:
		request.op = SPLIT_READ;
		request.remote = wr->wr.rdma.remote_addr;
		request.local = wr->num_sge ? wr->sg_list[0].addr : 0;
		request.whole |= wr->num_sge != 1;
		break;
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
	case IBV_WR_SEND_WITH_INV:
		request.op = SPLIT_SEND;
		request.consumes = true;
		request.whole |= wr->opcode == IBV_WR_SEND_WITH_INV;
		break;
	default:
		break;
	}
	return request;
}

/* The request may wait, so what it points to is copied. */
void send_keep(const struct link_qp *link, struct posted_send *send, const struct ibv_send_wr *wr)
{
	uint8_t *to = send->inline_bytes;

	send->wr = *wr;
	send->wr.next = NULL;
	send->wr.sg_list = send->pieces;
	memcpy(send->pieces, wr->sg_list, (size_t)wr->num_sge * sizeof(*wr->sg_list));
	if (!(wr->send_flags & IBV_SEND_INLINE) || bytes_of(wr) > link->inline_max)
		return;
	for (int i = 0; i < wr->num_sge; i++) {
		memcpy(to, (const void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
		send->pieces[i].addr = (uintptr_t)to;
		to += wr->sg_list[i].length;
	}
}

void send_start_late(struct link_qp *link, const struct ibv_send_wr *wr)
{
	struct split_request request = request_of(wr);

	send_keep(link, send_of(link, link->splitter.posted), wr);
	splitter_post(&link->splitter, &request);
	send_pump(link);
}

int send_start(struct link_qp *link, const struct ibv_send_wr *wr)
{
	link->posting = link->splitter.posted;
	link->refused = 0;
	send_start_late(link, wr);
	link->posting = UINT64_MAX;
	return link->refused;
}

int send_bind(struct link_qp *link, struct ibv_mw *mw, const struct ibv_mw_bind *bind)
{
	struct split_request request = { .op = SPLIT_OTHER };
	uint64_t number = link->splitter.posted;
	struct ibv_mw_bind copy = *bind;
	int error;

	/* It cannot wait behind others: the driver posts it itself. */
	if (splitter_has_more(&link->splitter) || link->splitter.own_down || !work_begin(link))
		return ENOMEM;
	splitter_post(&link->splitter, &request);
	send_of(link, number)->wr = (struct ibv_send_wr){ .wr_id = bind->wr_id,
		                                          .opcode = IBV_WR_BIND_MW,
		                                          .send_flags = bind->send_flags };
	splitter_next(&link->splitter, clock_now());
	copy.wr_id = (uint64_t)ID_WHOLE << ID_KIND_SHIFT | (number & ID_VALUE);
	copy.send_flags |= IBV_SEND_SIGNALED;
	error = real.bind_mw(link->qp, mw, &copy);
	link->posted[OWN_QP] += !error;
	if (error) {
		splitter_take_back(&link->splitter, number);
		work_end(link);
	}
	return error;
}

bool send_find_receive(void *user, uint64_t receive, uint32_t length, uint64_t *remote)
{
	struct link_qp *link = user;
	uint64_t place = receive & (link->own.notes - 1);
	struct note note;

	if (!note_read(&link->rings[place], link->own.nonce, receive, &note) ||
	    note.length < length)
		return false;
	link->keys[place] = note.key;
	*remote = note.address;
	return true;
}

/* ---- to the queue pairs ---- */

/* The pieces of memory of one chunk. */
static int cut_pieces(const struct ibv_send_wr *wr, uint32_t offset, uint32_t length,
                      struct ibv_sge *out)
{
	int n = 0;

	for (int i = 0; i < wr->num_sge && length; i++) {
		struct ibv_sge piece = wr->sg_list[i];

		if (offset >= piece.length) {
			offset -= piece.length;
			continue;
		}
		piece.addr += offset;
		piece.length -= offset;
		if (piece.length > length)
			piece.length = length;
		length -= piece.length;
		offset = 0;
		out[n++] = piece;
	}
	return n;
}

static int hidden_post(struct link_qp *link, unsigned path, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	int error;

	wr->send_flags |= IBV_SEND_SIGNALED;
	error = real.post_send(link->hidden[path], wr, &bad);
	if (!error)
		link->posted[path]++;
	return error;
}

static int post_note(struct link_qp *link, const struct split_action *action)
{
	struct note note = note_make(link->peer.nonce, action->receive, 0, 0,
	                             send_of(link, action->request)->wr.num_sge
	                                     ? bytes_of(&send_of(link, action->request)->wr)
	                                     : 0);
	struct ibv_sge piece = { .addr = (uintptr_t)&note, .length = sizeof(note) };
	uint64_t place = link->peer.notes + (action->receive & (link->peer.notes - 1));
	struct ibv_send_wr wr = {
		.wr_id = (uint64_t)ID_CHUNK << ID_KIND_SHIFT | action->id,
		.sg_list = &piece,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_INLINE,
		.wr.rdma = { .remote_addr = link->peer.rings + place * sizeof(note),
		             .rkey = link->peer.key },
	};

	return hidden_post(link, action->path, &wr);
}

static int post_chunk(struct link_qp *link, const struct split_action *action)
{
	const struct posted_send *send = send_of(link, action->request);
	const struct split_entry *entry =
		&link->entries[action->request & (link->splitter.config.capacity - 1)];
	struct ibv_sge pieces[PIECES_MAX];
	bool is_send = entry->request.op == SPLIT_SEND;
	struct ibv_send_wr wr = {
		.wr_id = (uint64_t)ID_CHUNK << ID_KIND_SHIFT | action->id,
		.sg_list = pieces,
		.num_sge = cut_pieces(&send->wr, action->offset, action->length, pieces),
		.opcode = entry->request.op == SPLIT_READ ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
		.wr.rdma = { .remote_addr = entry->remote + action->offset,
		             .rkey = is_send ? link->keys[action->receive & (link->own.notes - 1)]
		                             : send->wr.wr.rdma.rkey },
	};

	return hidden_post(link, action->path, &wr);
}

static int post_own(struct link_qp *link, const struct split_action *action)
{
	struct ibv_send_wr wr = send_of(link, action->request)->wr, *bad;
	int error;

	wr.wr_id = (uint64_t)ID_WHOLE << ID_KIND_SHIFT | (action->request & ID_VALUE);
	wr.send_flags |= IBV_SEND_SIGNALED;
	if (action->kind == SPLIT_POST_END)
		wr.num_sge = 0;
	error = real.post_send(link->qp, &wr, &bad);
	link->posted[OWN_QP] += !error;
	return error;
}

/* If ibv_post_send has taken the request before, then the error is a completion. */
static void own_posted(struct link_qp *link, uint64_t request, int error)
{
	if (!error)
		return;
	if (request == link->posting && splitter_take_back(&link->splitter, request)) {
		link->refused = error;
		return;
	}
	splitter_whole_done(&link->splitter, request, IBV_WC_LOC_QP_OP_ERR);
	send_done_late(link);
}

void send_pump(struct link_qp *link)
{
	for (;;) {
		uint64_t now = clock_now();
		struct split_action action = splitter_next(&link->splitter, now);
		int error = 0;

		switch (action.kind) {
		case SPLIT_NOTHING:
			return;
		case SPLIT_POST_CHUNK:
			error = post_chunk(link, &action);
			break;
		case SPLIT_POST_NOTE:
			error = post_note(link, &action);
			break;
		default:
			own_posted(link, action.request, post_own(link, &action));
			break;
		}
		if (error) {
			splitter_chunk_lost(&link->splitter, action.id, now);
			link_path_failed(link, action.path, IBV_WC_GENERAL_ERR);
		}
	}
}

void send_done_late(struct link_qp *link)
{
	link->late = true;
	agreement_wake();
	for (unsigned i = 0; i < link->n_paths; i++) {
		if (link->splitter.up[i] && !link->probing[i]) {
			send_probe(link, i);
			break;
		}
	}
}

bool send_probe(struct link_qp *link, unsigned path)
{
	struct ibv_send_wr wr = {
		.wr_id = (uint64_t)ID_CONTROL << ID_KIND_SHIFT | CONTROL_PROBE,
		.opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = { .remote_addr = link->peer.rings, .rkey = link->peer.key },
	};

	link->probing[path] = true;
	link->probe_sent[path] = clock_now();
	return hidden_post(link, path, &wr) == 0;
}

/* ---- completions ---- */

/* Not the path is wrong, but what the application asked for. */
static bool is_wrong(enum ibv_wc_status status)
{
	return status == IBV_WC_LOC_LEN_ERR || status == IBV_WC_LOC_PROT_ERR ||
	       status == IBV_WC_LOC_ACCESS_ERR || status == IBV_WC_REM_ACCESS_ERR ||
	       status == IBV_WC_REM_OP_ERR;
}

static void chunk_completed(struct link_qp *link, unsigned path, const struct ibv_wc *wc)
{
	uint32_t id = (uint32_t)wc->wr_id;
	uint64_t now = clock_now();

	if (wc->status == IBV_WC_SUCCESS)
		splitter_chunk_done(&link->splitter, id, now);
	else if (wc->status == IBV_WC_REM_INV_REQ_ERR)
		splitter_chunk_refused(&link->splitter, id, (int)wc->status, now);
	else if (is_wrong(wc->status))
		splitter_chunk_wrong(&link->splitter, id, (int)wc->status, now);
	else
		splitter_chunk_lost(&link->splitter, id, now);
	if (wc->status != IBV_WC_SUCCESS)
		link_path_failed(link, path, wc->status);
}

static void control_completed(struct link_qp *link, unsigned path, const struct ibv_wc *wc)
{
	uint64_t now = clock_now();

	if ((wc->wr_id & ID_VALUE) == CONTROL_ADVERT) {
		link->adverts--;
	} else {
		link->probing[path] = false;
		if (wc->status == IBV_WC_SUCCESS && link->own.paths[path].phase == PACT_OPEN)
			splitter_path_up(&link->splitter, path, now, now - link->probe_sent[path]);
	}
	if (wc->status != IBV_WC_SUCCESS)
		link_path_failed(link, path, wc->status);
	receive_advertise(link);
}

void send_completed(struct link_qp *link, unsigned place, const struct ibv_wc *wc)
{
	int status;

	link->posted[place]--;
	if (place == OWN_QP) {
		if (own_is_lost(link, wc->status))
			return;
		splitter_whole_done(&link->splitter, wc->wr_id & ID_VALUE, (int)wc->status);
		if (wc->status != IBV_WC_SUCCESS)
			own_break(link, IBV_WC_WR_FLUSH_ERR);
	} else if (wc->wr_id >> ID_KIND_SHIFT == ID_CHUNK) {
		chunk_completed(link, place, wc);
	} else {
		control_completed(link, place, wc);
	}
	if (splitter_is_wrong(&link->splitter, &status))
		own_break(link, (enum ibv_wc_status)status);
	send_pump(link);
}

static enum ibv_wc_opcode opcode_of(enum ibv_wr_opcode opcode)
{
	switch (opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return IBV_WC_RDMA_WRITE;
	case IBV_WR_RDMA_READ:
		return IBV_WC_RDMA_READ;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return IBV_WC_COMP_SWAP;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return IBV_WC_FETCH_ADD;
	case IBV_WR_LOCAL_INV:
		return IBV_WC_LOCAL_INV;
	case IBV_WR_BIND_MW:
		return IBV_WC_BIND_MW;
	default:
		return IBV_WC_SEND;
	}
}

bool send_take_done(struct link_qp *link, struct ibv_wc *wc)
{
	struct split_done done;

	while (splitter_take_done(&link->splitter, &done)) {
		const struct ibv_send_wr *wr = &send_of(link, done.request)->wr;

		work_end(link);
		if (done.status == IBV_WC_SUCCESS && !link->signal_all &&
		    !(wr->send_flags & IBV_SEND_SIGNALED))
			continue;
		*wc = (struct ibv_wc){ .wr_id = wr->wr_id,
			               .status = (enum ibv_wc_status)done.status,
			               .opcode = opcode_of(wr->opcode),
			               .byte_len = bytes_of(wr),
			               .qp_num = link->qp->qp_num };
		return true;
	}
	return false;
}
