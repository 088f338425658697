/* SPDX-License-Identifier: Apache-2.0 */
#include "plane/aggregator.h"

#include "base/clock.h"
#include "base/cores.h"
#include "base/log.h"
#include "plane/lane/lane_handover.h"
#include "plane/loop/thread_loop.h"
#include "plane/membership/comm_table.h"
#include "plane/membership/drain.h"
#include "plane/planes.h"
#include "plane/stats/describe.h"
#include "plane/stats/stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

static trib_status open_thread(struct aggregator *aggregator, unsigned index)
{
	struct thread *thread = &aggregator->threads[index];
	struct udp_address address = aggregator->options.listen;

	thread->aggregator = aggregator;
	thread->index = index;
	thread->rates_at = UINT64_MAX;
	thread->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (thread->wake_fd < 0)
		return status_fail_errno("cannot open an eventfd");
	pthread_mutex_init(&thread->lock, NULL);
	if (index)
		udp_set_port(&address, (uint16_t)(aggregator->port + index));
	return aggregator->carrier->open(thread, &address);
}

/*
 * Opens the kernel part, if the plane has one. If that fails, the carrier does all the work; only a
 * wrong configuration is an error.
 */
static trib_status open_kernel(struct aggregator *aggregator, const struct plane *plane)
{
	const struct kernel_ops *ops = plane->kernel;
	char *out = aggregator->plane, text[360];
	size_t size = sizeof(aggregator->plane);
	trib_status status;

	if (!ops) {
		snprintf(out, size, "%s%s%s", plane->name, plane->about ? ": " : "",
		         plane->about ? plane->about : "");
		return TRIB_OK;
	}
	status = ops->open(&aggregator->options, aggregator->port, &aggregator->kernel);
	if (status == TRIB_ERR_CONFIG)
		return status;
	if (status != TRIB_OK) {
		snprintf(out, size, "%s: %s was asked for, but %s", plane->carrier->plane,
		         plane->may_fail ? plane->name : ops->title, trib_last_error());
		if (plane->may_fail)
			log_info("plane %s", out);
		else
			log_warn("plane %s", out);
		return TRIB_OK;
	}
	snprintf(out, size, "%s: on %s", ops->plane,
	         ops->describe(aggregator->kernel, text, sizeof(text)));
	log_notice("plane %s", out);
	return TRIB_OK;
}

const char *aggregator_plane(const struct aggregator *aggregator)
{
	return plane_text(aggregator);
}

trib_status aggregator_start(const struct aggregator_options *options, struct aggregator **out)
{
	const struct plane *plane = plane_find(options->plane);
	struct aggregator *aggregator;
	trib_status status;

	if (!plane)
		return status_fail(TRIB_ERR_ARGUMENT, "there is no plane \"%s\"", options->plane);
	if (options->threads < 1 || options->threads > THREADS_MAX)
		return status_fail(TRIB_ERR_ARGUMENT, "%u threads: 1 to %u are possible",
		                   options->threads, THREADS_MAX);
	aggregator = calloc(1, sizeof(*aggregator));
	if (!aggregator)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for an aggregator");
	if (!secret_draw(&aggregator->address_secret)) {
		free(aggregator);
		return status_fail_errno("no random numbers");
	}
	aggregator->options = *options;
	aggregator->carrier = plane->carrier;
	aggregator->engines = plane->engines;
	aggregator->plane_name = plane->engines ? plane->name : plane->carrier->plane;
	pthread_mutex_init(&aggregator->rates.lock, NULL);
	aggregator->rates.capacity = (double)options->link_bps;
	aggregator->started_at = clock_now();
	pthread_mutex_init(&aggregator->secret_lock, NULL);
	pthread_mutex_init(&aggregator->drain_lock, NULL);
	stats_open(aggregator);
	for (unsigned i = 0; i < THREADS_MAX; i++)
		aggregator->threads[i].fd = aggregator->threads[i].wake_fd = -1;
	for (unsigned i = 0; i < options->threads; i++) {
		status = open_thread(aggregator, i);
		if (status != TRIB_OK) {
			aggregator_free(aggregator);
			return status;
		}
	}
	aggregator->n_threads = options->threads;
	status = open_kernel(aggregator, plane);
	if (status != TRIB_OK) {
		aggregator_free(aggregator);
		return status;
	}
	for (unsigned i = 0; i < options->threads; i++) {
		struct thread *thread = &aggregator->threads[i];

		if (pthread_create(&thread->id, NULL, thread_loop, thread)) {
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
			agg_lane_free(thread->inbox[id]);
		if (thread->aggregator)
			aggregator->carrier->close(thread);
		if (thread->wake_fd >= 0)
			close(thread->wake_fd);
	}
	comm_table_free(aggregator);
	if (aggregator->kernel)
		aggregator->kernel->ops->close(aggregator->kernel);
	stats_close(aggregator);
	pthread_mutex_destroy(&aggregator->drain_lock);
	pthread_mutex_destroy(&aggregator->secret_lock);
	free(aggregator);
}

uint16_t aggregator_port(const struct aggregator *aggregator)
{
	return aggregator->port;
}

void aggregator_set_secret(struct aggregator *aggregator, const struct secret *secret)
{
	pthread_mutex_lock(&aggregator->secret_lock);
	aggregator->secret = *secret;
	aggregator->has_secret = true;
	pthread_mutex_unlock(&aggregator->secret_lock);
}

void aggregator_set_roster(struct aggregator *aggregator, const struct job_roster *roster)
{
	pthread_mutex_lock(&aggregator->secret_lock);
	aggregator->roster = *roster;
	aggregator->has_roster = true;
	pthread_mutex_unlock(&aggregator->secret_lock);
}

bool aggregator_drain(struct aggregator *aggregator, uint16_t job, uint64_t key,
                      uint32_t generation, const char *why)
{
	return drain_comm(aggregator, job, key, generation, why);
}

void aggregator_drain_all(struct aggregator *aggregator, const char *why)
{
	drain_all(aggregator, why);
}

int aggregator_describe(struct aggregator *aggregator, char *out, size_t size)
{
	return describe_totals(aggregator, out, size);
}
