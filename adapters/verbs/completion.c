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
	unsigned place;
	struct link_qp *link = table_hold_number(cq->cq->context, wc->qp_num, &place);

	if (!link) {
		if (place == OTHER_QP)
			push(cq, wc);
		return;
	}
	pthread_mutex_lock(&link->lock);
	if (wc->wr_id >> ID_KIND_SHIFT == ID_RECEIVE) {
		receive_completed(link, wc);
		push(cq, wc);
	} else {
		send_completed(link, place, wc);
		while (send_take_done(link, &done))
			push(cq, &done);
	}
	pthread_mutex_unlock(&link->lock);
	atomic_fetch_sub(&link->users, 1);
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
	pthread_mutex_lock(&link->lock);
	while (send_take_done(link, &wc))
		push(link->send_cq, &wc);
	link->late = false;
	pthread_mutex_unlock(&link->lock);
	pthread_mutex_unlock(&link->send_cq->lock);
}
