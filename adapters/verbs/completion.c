/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "tribverbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 16

/* False: no memory. */
static bool grow(struct shared_cq *cq)
{
	unsigned capacity = cq->capacity ? 2 * cq->capacity : 64;
	struct ibv_wc *ready = malloc(capacity * sizeof(*ready));

	if (!ready)
		return false;
	for (unsigned i = 0; i < cq->n; i++)
		ready[i] = cq->ready[(cq->first + i) % cq->capacity];
	free(cq->ready);
	cq->ready = ready;
	cq->capacity = capacity;
	cq->first = 0;
	return true;
}

static void push(struct shared_cq *cq, const struct ibv_wc *wc)
{
	if (cq->n == cq->capacity && !grow(cq)) {
		log_error("no memory for a completion");
		abort(); /* a lost completion would be a hang */
	}
	cq->ready[(cq->first + cq->n++) % cq->capacity] = *wc;
}

static int take(struct shared_cq *cq, int n, struct ibv_wc *wc)
{
	int taken = 0;

	for (; taken < n && cq->n; cq->n--) {
		wc[taken++] = cq->ready[cq->first];
		cq->first = (cq->first + 1) % cq->capacity;
	}
	return taken;
}

static void handle(struct shared_cq *cq, struct ibv_wc *wc)
{
	struct ibv_wc done;
	const struct seat *seat = table_find_number(cq->cq->context, wc->qp_num);
	struct link_qp *link = seat->link;

	if (!link) {
		if (seat->place == OTHER_QP)
			push(cq, wc);
		return;
	}
	link_lock(link);
	if (wc->wr_id >> ID_KIND_SHIFT == ID_RECEIVE) {
		if (receive_completed(link, wc))
			push(cq, wc);
	} else {
		send_completed(link, seat->place, wc);
		while (send_take_done(link, &done))
			push(cq, &done);
	}
	link_unlock(link);
}

/* Takes up to BATCH completions of the real CQ. Returns how many; negative: an error. */
static int gather(struct shared_cq *cq)
{
	struct ibv_wc wc[BATCH];
	int n = real.poll_cq(cq->cq, BATCH, wc);

	if (n <= 0)
		return n;
	for (int i = 0; i < n; i++)
		handle(cq, &wc[i]);
	return n;
}

int cq_poll(struct ibv_cq *ibv_cq, int n, struct ibv_wc *wc)
{
	struct shared_cq *cq = table_find_cq(ibv_cq);
	int taken, got = 1;

	if (!cq)
		return real.poll_cq(ibv_cq, n, wc);
	pthread_mutex_lock(&cq->lock);
	atomic_fetch_add_explicit(&cq->polls, 1, memory_order_relaxed);
	taken = take(cq, n, wc);
	while (taken < n && got > 0) {
		got = gather(cq);
		taken += take(cq, n - taken, wc + taken);
	}
	pthread_mutex_unlock(&cq->lock);
	return got < 0 && !taken ? got : taken;
}

void cq_progress(struct shared_cq *cq)
{
	unsigned polls = atomic_load_explicit(&cq->polls, memory_order_relaxed);

	if (polls != cq->seen_polls) {
		cq->seen_polls = polls;
		return;
	}
	pthread_mutex_lock(&cq->lock);
	while (gather(cq) > 0)
		;
	pthread_mutex_unlock(&cq->lock);
}

void cq_take_late(struct link_qp *link)
{
	struct ibv_wc wc;

	pthread_mutex_lock(&link->send_cq->lock);
	link_lock(link);
	while (send_take_done(link, &wc))
		push(link->send_cq, &wc);
	link->late = false;
	link_unlock(link);
	pthread_mutex_unlock(&link->send_cq->lock);
	pthread_mutex_lock(&link->receive_cq->lock);
	link_lock(link);
	while (receive_take_lost(link, &wc))
		push(link->receive_cq, &wc);
	link_unlock(link);
	pthread_mutex_unlock(&link->receive_cq->lock);
}
