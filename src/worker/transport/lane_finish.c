/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a round. The user gets the buffers back when the last round of a request finishes.
 * If other ranks may still need a large part of it, the round is held for a moment: mostly all
 * ranks have finished by then, and nothing has to be copied aside (comm/ledger.h).
 *
 * When a lane's thread ends, so do all of the lane's rounds.
 */
#include "worker/transport/lane_internal.h"

#include "base/clock.h"

#include <stdlib.h>

#define HOLD_BYTES (1u << 20)          /* 1 MiB: copying less takes no longer than waiting */
#define HOLD_BYTES_A_NS 4u             /* bytes per nanosecond: speed of a copy, at most */
#define HOLD_MIN (NSEC_PER_SEC / 1000) /* 1 ms: shortest time that a round is held */

static void let_finish(struct lane *lane, struct round *round)
{
	if (round->place.ledger && !ledger_keep(lane, round))
		comm_fail(lane->comm, TRIB_ERR_NO_MEMORY, LANE_NO_MEMORY);
	if (round->owner)
		request_round_finished(round->owner);
}

void lane_on_finished(void *context, struct round *round)
{
	struct lane *lane = context;
	size_t unsure = round->place.ledger ? ledger_unsure(lane, round) : 0;

	if (unsure <= HOLD_BYTES) {
		let_finish(lane, round);
		return;
	}
	/* Not longer than a copy would take. */
	round->held_until = clock_now() + HOLD_MIN + unsure / HOLD_BYTES_A_NS;
	round->held_next = lane->finishing;
	lane->finishing = round;
}

/* The next round takes the memory over. */
static void spare(struct lane *lane, struct round *round)
{
	round_clear(round);
	round = atomic_exchange_explicit(&lane->comm->spare_round, round, memory_order_acq_rel);
	if (round)
		free(round);
}

void lane_on_over(void *context, struct round *round)
{
	if (round->held_until)
		round->over = true;
	else
		spare(context, round);
}

void lane_finish_held(struct lane *lane, uint64_t now)
{
	struct round **link = &lane->finishing, *round;

	while ((round = *link)) {
		if (now < round->held_until && ledger_unsure(lane, round) > HOLD_BYTES) {
			link = &round->held_next;
			continue;
		}
		*link = round->held_next;
		round->held_until = 0;
		let_finish(lane, round);
		if (round->over)
			spare(lane, round);
	}
}

/*
 * A shared star is left only when all requests that started there are over at all ranks
 * (turns/star.h). So a lane that leaves forgets everything; the aggregator may be gone already.
 */
void lane_forget_kept(struct lane *lane)
{
	bool leaves = atomic_load_explicit(&lane->leaves, memory_order_relaxed);
	uint64_t low = leaves ? UINT64_MAX : lane->stream.low;

	if (lane->kept && lane->kept->end <= low)
		ledger_forget(lane, low);
}

void lane_go_quiet(struct lane *lane)
{
	lane_take_posts(lane, clock_now());
	lane_finish_held(lane, UINT64_MAX);
	pthread_mutex_lock(&lane->comm->lock);
	for (struct round *round = lane->stream.first; round; round = round->next)
		ledger_note(round);
	pthread_mutex_unlock(&lane->comm->lock);
	stream_clear(&lane->stream);
	ledger_let_go(lane);
	pthread_mutex_lock(&lane->comm->lock);
	lane->comm->quiet_lanes++;
	pthread_cond_broadcast(&lane->comm->changed);
	pthread_mutex_unlock(&lane->comm->lock);
}
