/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An aggregator leaves trees because it is told to: its machine is wanted for
 * something else. To the ranks that is the loss of an aggregator which says so
 * itself, so those that have a controller go on in other trees, and sums stay
 * exact. Whoever wants it leaves a request; thread 0 sees to it at its next tick.
 */
#include "plane/core/internal.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TELL_TICKS 3u /* an ABORT may be lost; what follows is a closed port, which says it too */

static bool request(struct aggregator *aggregator, const struct leave *wish)
{
	bool room;

	pthread_mutex_lock(&aggregator->leave_lock);
	room = aggregator->n_leaves < LEAVES_MAX;
	if (room)
		aggregator->leaves[aggregator->n_leaves++] = *wish;
	atomic_store_explicit(&aggregator->leave_wanted, true, memory_order_release);
	pthread_mutex_unlock(&aggregator->leave_lock);
	return room;
}

bool aggregator_leave(struct aggregator *aggregator, uint16_t job, uint64_t key,
                      uint32_t generation, const char *why)
{
	struct leave wish = { .job = job, .key = key, .generation = generation };

	snprintf(wish.why, sizeof(wish.why), "%s", why);
	return request(aggregator, &wish);
}

void aggregator_leave_all(struct aggregator *aggregator, const char *why)
{
	struct leave wish = { .all = true };
	const struct timespec tick = clock_span(TICK_NS);

	snprintf(wish.why, sizeof(wish.why), "%s", why);
	atomic_store(&aggregator->told_leave, false);
	if (!request(aggregator, &wish))
		return;
	/* A thread that never comes by has nobody to tell either. */
	for (unsigned i = 0; i < 10 && atomic_load(&aggregator->leave_wanted); i++)
		nanosleep(&tick, NULL);
	for (unsigned i = 0; i < TELL_TICKS && atomic_load(&aggregator->told_leave); i++)
		nanosleep(&tick, NULL);
}

static void leave(struct aggregator *aggregator, struct comm *comm, const struct leave *wish)
{
	char host[WIRE_NAME_MAX] = "";

	gethostname(host, sizeof(host) - 1);
	registry_fail(comm, TRIB_ERR_AGGREGATOR, UINT32_MAX,
	              "the aggregator on host %s, port %u, leaves: %s", host, aggregator->port,
	              wish->why);
	atomic_store(&aggregator->told_leave, true);
}

void leaves_serve(struct aggregator *aggregator)
{
	if (!atomic_load_explicit(&aggregator->leave_wanted, memory_order_acquire))
		return;
	pthread_mutex_lock(&aggregator->leave_lock);
	for (unsigned i = 0; i < aggregator->n_leaves; i++) {
		const struct leave *wish = &aggregator->leaves[i];

		for (unsigned id = 1; id < COMMS_MAX; id++) {
			struct comm *comm = aggregator->comms[id];

			/* One that forms has nothing under way: it is told again when it runs. */
			if (!comm || !comm->running || comm->retired || atomic_load(&comm->failed))
				continue;
			if (wish->all || (comm->job == wish->job && comm->key == wish->key &&
			                  comm->generation == wish->generation))
				leave(aggregator, comm, wish);
		}
	}
	aggregator->n_leaves = 0;
	atomic_store(&aggregator->leave_wanted, false);
	pthread_mutex_unlock(&aggregator->leave_lock);
}
