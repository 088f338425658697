/* SPDX-License-Identifier: Apache-2.0 */
#include "tribverbs.h"

#include <errno.h>

static struct posted_receive *receive_of(const struct link_qp *link, uint64_t number)
{
	return &link->receives[number & (link->receive_ring - 1)];
}

static void keep(struct posted_receive *receive, const struct ibv_recv_wr *wr, uint32_t least)
{
	*receive = (struct posted_receive){ .id = wr->wr_id };
	if (wr->num_sge != 1 || wr->sg_list[0].length < least ||
	    !table_find_key(wr->sg_list[0].lkey, &receive->key))
		return;
	receive->address = wr->sg_list[0].addr;
	receive->length = wr->sg_list[0].length;
}

int receive_post(struct link_qp *link, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int error = 0;

	for (; wr && !error; wr = wr->next) {
		struct ibv_recv_wr copy = *wr, *copy_bad;
		struct posted_receive *receive = receive_of(link, link->receive_posted);

		*bad = wr;
		if (link->receive_posted - link->receive_done >= link->receive_ring) {
			error = ENOMEM;
			break;
		}
		keep(receive, wr, link->splitter.config.least);
		copy.next = NULL;
		copy.wr_id =
			(uint64_t)ID_RECEIVE << ID_KIND_SHIFT | (link->receive_posted & ID_VALUE);
		error = real.post_recv(link->qp, &copy, &copy_bad);
		link->receive_posted += !error;
	}
	receive_advertise(link);
	return error;
}

void receive_completed(struct link_qp *link, struct ibv_wc *wc)
{
	uint64_t number = wc->wr_id & ID_VALUE;
	struct note note;

	wc->wr_id = receive_of(link, number)->id;
	link->receive_done = number + 1;
	if (wc->status == IBV_WC_SUCCESS && link->rings &&
	    note_read(&link->rings[link->own.notes + (number & (link->own.notes - 1))],
	              link->own.nonce, number, &note))
		wc->byte_len = note.length;
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
