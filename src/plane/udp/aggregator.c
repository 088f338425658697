/* SPDX-License-Identifier: Apache-2.0 */
#include "plane/udp/internal.h"

#include "base/clock.h"
#include "base/cores.h"

#include <stdlib.h>
#include <string.h>

static const struct carrier *const carriers[] = { &carrier_udp, &carrier_tcp };

static const struct carrier *carrier_find(const char *plane)
{
	for (unsigned i = 0; i < sizeof(carriers) / sizeof(*carriers); i++)
		if (!plane || strcmp(carriers[i]->plane, plane) == 0)
			return carriers[i];
	return NULL;
}

static trib_status open_thread(struct aggregator *aggregator, unsigned index)
{
	struct thread *thread = &aggregator->threads[index];
	struct udp_address address = aggregator->options.listen;

	thread->aggregator = aggregator;
	thread->index = index;
	pthread_mutex_init(&thread->lock, NULL);
	if (index)
		udp_set_port(&address, (uint16_t)(aggregator->port + index));
	return aggregator->carrier->open(thread, &address);
}

trib_status aggregator_start(const struct aggregator_options *options, struct aggregator **out)
{
	const struct carrier *carrier = carrier_find(options->plane);
	struct aggregator *aggregator;
	trib_status status;

	if (!carrier)
		return status_fail(TRIB_ERR_ARGUMENT, "there is no plane \"%s\"", options->plane);
	if (options->threads < 1 || options->threads > THREADS_MAX)
		return status_fail(TRIB_ERR_ARGUMENT, "%u threads: 1 to %u are possible",
		                   options->threads, THREADS_MAX);
	aggregator = calloc(1, sizeof(*aggregator));
	if (!aggregator)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for an aggregator");
	aggregator->options = *options;
	aggregator->carrier = carrier;
	aggregator->started_at = clock_now();
	for (unsigned i = 0; i < THREADS_MAX; i++)
		aggregator->threads[i].fd = -1;
	for (unsigned i = 0; i < options->threads; i++) {
		status = open_thread(aggregator, i);
		if (status != TRIB_OK) {
			aggregator_free(aggregator);
			return status;
		}
	}
	aggregator->n_threads = options->threads;
	for (unsigned i = 0; i < options->threads; i++) {
		struct thread *thread = &aggregator->threads[i];

		if (pthread_create(&thread->id, NULL, thread_main, thread)) {
			aggregator_stop(aggregator);
			aggregator_free(aggregator);
			return status_fail(TRIB_ERR_SYSTEM, "cannot start thread %u", i);
		}
		thread->started = true;
		cores_pin(thread->id, options->pin, i);
	}
	*out = aggregator;
	return TRIB_OK;
}

void aggregator_stop(struct aggregator *aggregator)
{
	atomic_store(&aggregator->stop, true);
	for (unsigned i = 0; i < THREADS_MAX; i++) {
		struct thread *thread = &aggregator->threads[i];

		if (thread->started)
			pthread_join(thread->id, NULL);
		thread->started = false;
	}
}

void aggregator_free(struct aggregator *aggregator)
{
	if (!aggregator)
		return;
	for (unsigned i = 0; i < THREADS_MAX; i++) {
		struct thread *thread = &aggregator->threads[i];

		for (unsigned id = 0; id < COMMS_MAX; id++)
			lane_free(thread->inbox[id]);
		if (thread->aggregator)
			aggregator->carrier->close(thread);
	}
	registry_free(aggregator);
	free(aggregator);
}

uint16_t aggregator_port(const struct aggregator *aggregator)
{
	return aggregator->port;
}
