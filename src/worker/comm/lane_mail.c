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
	pthread_mutex_lock(&lane->lock);
	round->next = NULL;
	*lane->posted_end = round;
	lane->posted_end = &round->next;
	atomic_fetch_add_explicit(&lane->entered, 1, memory_order_relaxed);
	atomic_store_explicit(&lane->has_mail, true, memory_order_release);
	pthread_mutex_unlock(&lane->lock);
	if (lane->slots)
		atomic_store(&lane->comm->slot_mail, true); /* who posts also drives */
	else
		lane_wake(lane);
}

struct round *lane_take_posted(struct lane *lane)
{
	struct round *rounds;

	if (!atomic_load_explicit(&lane->has_mail, memory_order_acquire))
		return NULL;
	pthread_mutex_lock(&lane->lock);
	rounds = lane->posted;
	lane->posted = NULL;
	lane->posted_end = &lane->posted;
	lane->taken = atomic_load_explicit(&lane->entered, memory_order_relaxed);
	atomic_store_explicit(&lane->has_mail, false, memory_order_release);
	pthread_mutex_unlock(&lane->lock);
	return rounds;
}
