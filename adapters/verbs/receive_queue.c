/* SPDX-License-Identifier: Apache-2.0 */
#include "tribverbs.h"

#include <errno.h>
#include <string.h>

static struct posted_receive *receive_of(const struct link_qp *link, uint64_t number)
{
	return &link->receives[number & (link->receive_ring - 1)];
}

static struct ibv_sge *pieces_of(const struct link_qp *link, uint64_t number)
{
	return &link->receive_pieces[(number & (link->receive_ring - 1)) *
	                             link->receive_pieces_max];
}

static void keep(struct link_qp *link, const struct ibv_recv_wr *wr)
{
	struct posted_receive *receive = receive_of(link, link->receive_posted);
	uint32_t least = link->splitter.config.least;

	*receive = (struct posted_receive){ .id = wr->wr_id, .n_pieces = wr->num_sge };
	memcpy(pieces_of(link, link->receive_posted), wr->sg_list,
	       (size_t)wr->num_sge * sizeof(*wr->sg_list));
	if (wr->num_sge != 1 || wr->sg_list[0].length < least ||
	    !table_find_key(wr->sg_list[0].lkey, &receive->key))
		return;
	receive->address = wr->sg_list[0].addr;
	receive->length = wr->sg_list[0].length;
}

static int post_own(struct link_qp *link, uint64_t number)
{
	struct ibv_recv_wr wr = { .wr_id = (uint64_t)ID_RECEIVE << ID_KIND_SHIFT | number,
		                  .sg_list = pieces_of(link, number),
		                  .num_sge = receive_of(link, number)->n_pieces },
			   *bad;
	int error = real.post_recv(link->qp, &wr, &bad);

	link->receive_held += !error;
	return error;
}

int receive_post(struct link_qp *link, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int error = 0;

	for (; wr && !error; wr = wr->next) {
		*bad = wr;
		if (wr->num_sge < 0 || (uint32_t)wr->num_sge > link->receive_pieces_max)
			error = EINVAL;
		else if (link->receive_posted - link->receive_done >= link->receive_ring)
			error = ENOMEM;
		if (error)
			break;
		keep(link, wr);
		if (link->own.app.phase != PACT_FAILED)
			error = post_own(link, link->receive_posted);
		link->receive_posted += !error;
	}
	receive_advertise(link);
	return error;
}

bool receive_post_again(struct link_qp *link)
{
	bool well = true;

	for (uint64_t i = link->receive_done; i < link->receive_posted && well; i++)
		well = post_own(link, i) == 0;
	link->receive_lost = 0;
	return well;
}

/*
 * A QP with requests that flushes a receive has failed. The completion of a request, which may be
 * in another CQ, tells whether it has failed for good.
 */
static bool is_lost(const struct link_qp *link, const struct ibv_wc *wc)
{
	return wc->status == IBV_WC_WR_FLUSH_ERR && !link->splitter.broken &&
	       link->mode == LINK_MULTI &&
	       (link->own.app.phase == PACT_FAILED || link->posted[OWN_QP]);
}

bool receive_take_lost(struct link_qp *link, struct ibv_wc *wc)
{
	if (!link->splitter.broken || !link->receive_lost)
		return false;
	link->receive_lost--;
	*wc = (struct ibv_wc){ .wr_id = receive_of(link, link->receive_done++)->id,
		               .status = IBV_WC_WR_FLUSH_ERR,
		               .opcode = IBV_WC_RECV,
		               .qp_num = link->qp->qp_num };
	return true;
}

bool receive_completed(struct link_qp *link, struct ibv_wc *wc)
{
	uint64_t number = wc->wr_id & ID_VALUE;
	struct note note;

	link->receive_held--;
	if (is_lost(link, wc)) {
		link->receive_lost++;
		return false;
	}
	wc->wr_id = receive_of(link, number)->id;
	link->receive_done = number + 1;
	if (wc->status == IBV_WC_SUCCESS && link->rings &&
	    note_read(&link->rings[link->own.notes + (number & (link->own.notes - 1))],
	              link->own.nonce, number, &note))
		wc->byte_len = note.length;
	return true;
}

static int advertise(struct link_qp *link, uint64_t number)
{
	const struct posted_receive *receive = receive_of(link, number);
	struct note note = note_make(link->peer.nonce, number, receive->address, receive->key,
	                             receive->length);
	struct ibv_sge piece = { .addr = (uintptr_t)&note, .length = sizeof(note) };
	uint64_t place = number & (link->peer.notes - 1);
	struct ibv_send_wr wr = {
		.wr_id = (uint64_t)ID_CONTROL << ID_KIND_SHIFT | CONTROL_ADVERT,
		.sg_list = &piece,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = link->peer.rings + place * sizeof(note),
		             .rkey = link->peer.key },
	}, *bad;
	int error = real.post_send(link->hidden[link->advert_path], &wr, &bad);

	if (!error) {
		link->posted[link->advert_path]++;
		link->adverts++;
	}
	return error;
}

static int lowest_path(const struct splitter *splitter)
{
	for (unsigned i = 0; i < splitter->n_paths; i++)
		if (splitter->up[i])
			return (int)i;
	return -1;
}

/* All notes take one path, so that an older one never overwrites a newer one. */
void receive_advertise(struct link_qp *link)
{
	if (link->mode != LINK_MULTI)
		return;
	if (link->advert_path < 0 && link->advertised == UINT64_MAX) {
		link->advert_path = lowest_path(&link->splitter);
		if (link->advert_path >= 0)
			link->advertised = link->receive_done;
	}
	if (link->advert_path < 0 || !link->splitter.up[link->advert_path])
		return;
	if (link->advertised < link->receive_done)
		link->advertised = link->receive_done;
	for (; link->advertised < link->receive_posted && link->adverts < ADVERTS_MAX;
	     link->advertised++) {
		if (receive_of(link, link->advertised)->length && advertise(link, link->advertised))
			break;
	}
}

void receive_advertise_again(struct link_qp *link)
{
	link->advert_path = -1;
	link->advertised = UINT64_MAX;
	receive_advertise(link);
}
