/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Around a ring, no aggregator tells the controller which ranks live. So the ranks tell it
 * themselves: otherwise it would give the hosts of the job away.
 */
#include "worker/failover/failover.h"
#include "worker/trees/plan_watch.h"

#include "base/clock.h"

#define EVERY_NS (NSEC_PER_SEC / 4) /* 0.25 s, as agents do */

void ring_tell_alive(struct trib_comm *comm)
{
	uint64_t packet[PLAN_ANSWER_BYTES / 8];
	struct plan_watch watch;

	plan_watch_open(comm, &watch);
	while (watch.fd >= 0 && !comm_is_over(comm)) {
		struct timespec until = clock_span(clock_now() + EVERY_NS);
		int error = 0;

		plan_query(comm, watch.fd);
		pthread_mutex_lock(&comm->lock);
		while (!error && comm->failed == TRIB_OK && !atomic_load(&comm->closing))
			error = pthread_cond_timedwait(&comm->changed, &comm->lock, &until);
		pthread_mutex_unlock(&comm->lock);
		while (plan_answer(comm, watch.fd, packet))
			; /* only the question matters */
	}
	plan_watch_close(&watch);
}
