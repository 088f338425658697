/* SPDX-License-Identifier: Apache-2.0 */
/* A lane's mailbox: any thread posts rounds, the lane's thread takes them. */
#include "worker/comm/comm.h"

#include "base/log.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

void lane_wake(struct lane *lane)
{
	uint64_t one = 1;

	if (write(lane->wake_fd, &one, sizeof(one)) < 0)
		log_debug("eventfd: %s", strerror(errno)); /* full: the thread is awake */
}

void lane_post(struct lane *lane, struct round *round)
{
	atomic_fetch_add_explicit(&lane->entered, 1, memory_order_relaxed);
	round->next = atomic_load_explicit(&lane->posted, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(&lane->posted, &round->next, round,
	                                              memory_order_release, memory_order_relaxed))
		;
	lane->engine->posted(lane);
}

struct round *lane_take_mail(struct lane *lane, uint64_t now)
{
	struct round *rounds = NULL, *newest;

	newest = atomic_exchange_explicit(&lane->posted, NULL, memory_order_acquire);
	while (newest) {
		struct round *older = newest->next;

		newest->next = rounds;
		rounds = newest;
		newest = older;
		lane->taken++;
	}
	if (rounds && stream_is_idle(&lane->stream))
		lane->heard_at = now; /* no answer was due before */
	return rounds;
}
