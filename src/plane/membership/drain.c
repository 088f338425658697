/* SPDX-License-Identifier: Apache-2.0 */
#include "plane/membership/drain.h"

#include "base/clock.h"
#include "plane/core/failure.h"

#include <stdio.h>
#include <unistd.h>

#define TELL_TICKS 3u /* ticks with ABORTs; later, the closed port tells the ranks */

static bool request(struct aggregator *aggregator, const struct drain_request *wish)
{
	bool room;

	pthread_mutex_lock(&aggregator->drain_lock);
	room = aggregator->n_drains < DRAINS_MAX;
	if (room)
		aggregator->drains[aggregator->n_drains++] = *wish;
	atomic_store_explicit(&aggregator->drain_wanted, true, memory_order_release);
	pthread_mutex_unlock(&aggregator->drain_lock);
	return room;
}

bool drain_comm(struct aggregator *aggregator, uint16_t job, uint64_t key, uint32_t generation,
                const char *why)
{
	struct drain_request wish = { .job = job, .key = key, .generation = generation };

	snprintf(wish.why, sizeof(wish.why), "%s", why);
	return request(aggregator, &wish);
}

void drain_all(struct aggregator *aggregator, const char *why)
{
	struct drain_request wish = { .all = true };
	const struct timespec tick = clock_span(TICK_NS);

	snprintf(wish.why, sizeof(wish.why), "%s", why);
	atomic_store(&aggregator->drain_told, false);
	if (!request(aggregator, &wish))
		return;
	/* If thread 0 does not run, no child can be told. */
	for (unsigned i = 0; i < 10 && atomic_load(&aggregator->drain_wanted); i++)
		nanosleep(&tick, NULL);
	for (unsigned i = 0; i < TELL_TICKS && atomic_load(&aggregator->drain_told); i++)
		nanosleep(&tick, NULL);
}

static void leave(struct aggregator *aggregator, struct comm *comm,
                  const struct drain_request *wish)
{
	char host[WIRE_NAME_MAX] = "";

	gethostname(host, sizeof(host) - 1);
	comm_set_failed(comm, TRIB_ERR_AGGREGATOR, UINT32_MAX,
	                "the aggregator on host %s, port %u, leaves: %s", host, aggregator->port,
	                wish->why);
	atomic_store(&aggregator->drain_told, true);
}

void drain_serve(struct aggregator *aggregator)
{
	if (!atomic_load_explicit(&aggregator->drain_wanted, memory_order_acquire))
		return;
	pthread_mutex_lock(&aggregator->drain_lock);
	for (unsigned i = 0; i < aggregator->n_drains; i++) {
		const struct drain_request *wish = &aggregator->drains[i];

		for (unsigned id = 1; id < COMMS_MAX; id++) {
			struct comm *comm = aggregator->comms[id];

			/*
			 * A forming communicator has nothing in flight. The request is
			 * repeated when it runs.
			 */
			if (!comm || !comm->running || comm->retired || atomic_load(&comm->failed))
				continue;
			if (comm->gone == comm->present) /* its ranks have left: all went well */
				continue;
			if (wish->all || (comm->job == wish->job && comm->key == wish->key &&
			                  comm->generation == wish->generation))
				leave(aggregator, comm, wish);
		}
	}
	aggregator->n_drains = 0;
	atomic_store(&aggregator->drain_wanted, false);
	pthread_mutex_unlock(&aggregator->drain_lock);
}
