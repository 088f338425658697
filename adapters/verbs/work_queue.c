/* SPDX-License-Identifier: Apache-2.0 */
/* How several threads share the send queue of a link: see src/path/verbs/work_ring.h. */
#include "tribverbs.h"

#include <errno.h>
#include <stdlib.h>

static void release_sends(struct posted_send *sends, uint32_t capacity)
{
	for (uint32_t i = 0; sends && i < capacity; i++) {
		free(sends[i].pieces);
		free(sends[i].inline_bytes);
	}
	free(sends);
}

static struct posted_send *allocate_sends(const struct link_qp *link, uint32_t capacity)
{
	struct posted_send *sends = calloc(capacity, sizeof(*sends));

	for (uint32_t i = 0; sends && i < capacity; i++) {
		sends[i].pieces = calloc(link->pieces_max + 1, sizeof(struct ibv_sge));
		sends[i].inline_bytes = calloc(1, link->inline_max + 1);
		if (!sends[i].pieces || !sends[i].inline_bytes) {
			release_sends(sends, capacity);
			return NULL;
		}
	}
	return sends;
}

bool work_allocate(struct link_qp *link, uint32_t capacity)
{
	link->sends = allocate_sends(link, capacity);
	link->waiting_sends = allocate_sends(link, capacity);
	link->waiting_turns = calloc(capacity, sizeof(*link->waiting_turns));
	if (link->waiting_turns)
		work_ring_init(&link->waiting, link->waiting_turns, capacity);
	return link->sends && link->waiting_sends && link->waiting_turns;
}

void work_release(struct link_qp *link, uint32_t capacity)
{
	release_sends(link->sends, capacity);
	release_sends(link->waiting_sends, capacity);
	free(link->waiting_turns);
}

bool work_begin(struct link_qp *link)
{
	if (atomic_fetch_add(&link->unfinished, 1) < link->send_max)
		return true;
	work_end(link);
	return false;
}

void work_end(struct link_qp *link)
{
	atomic_fetch_sub(&link->unfinished, 1);
}

static void take_waiting(struct link_qp *link)
{
	uint64_t entry;

	while (work_ring_next(&link->waiting, &entry)) {
		send_start_late(link,
		                &link->waiting_sends[entry & (link->waiting.capacity - 1)].wr);
		work_ring_take(&link->waiting, entry);
	}
}

void work_reset(struct link_qp *link)
{
	uint64_t entry;

	while (work_ring_next(&link->waiting, &entry))
		work_ring_take(&link->waiting, entry);
	atomic_store(&link->unfinished, 0);
}

void link_lock(struct link_qp *link)
{
	pthread_mutex_lock(&link->lock);
}

void link_unlock(struct link_qp *link)
{
	do {
		take_waiting(link);
		pthread_mutex_unlock(&link->lock);
	} while (work_ring_calls(&link->waiting) && pthread_mutex_trylock(&link->lock) == 0);
}

static int leave(struct link_qp *link, const struct ibv_send_wr *wr)
{
	uint64_t entry;

	if (!work_ring_claim(&link->waiting, &entry))
		return ENOMEM;
	send_keep(link, &link->waiting_sends[entry & (link->waiting.capacity - 1)], wr);
	work_ring_add(&link->waiting, entry);
	return 0;
}

/* `post`: what to do with each request. */
static int post_each(struct link_qp *link, struct ibv_send_wr *wr, struct ibv_send_wr **bad,
                     int (*post)(struct link_qp *, const struct ibv_send_wr *))
{
	int error = 0;

	for (; wr && !error; wr = wr->next) {
		*bad = wr;
		if (wr->num_sge < 0 || (uint32_t)wr->num_sge > link->pieces_max)
			return EINVAL;
		if (!work_begin(link))
			return ENOMEM;
		error = post(link, wr);
		if (error)
			work_end(link);
	}
	return error;
}

int work_post(struct link_qp *link, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	int error;

	if (pthread_mutex_trylock(&link->lock) != 0) {
		error = post_each(link, wr, bad, leave);
		if (work_ring_calls(&link->waiting) && pthread_mutex_trylock(&link->lock) == 0)
			link_unlock(link);
		return error;
	}
	take_waiting(link);
	error = post_each(link, wr, bad, work_ring_is_empty(&link->waiting) ? send_start : leave);
	link_unlock(link);
	return error;
}
