/* SPDX-License-Identifier: Apache-2.0 */
#include "plane/core/internal.h"

#include "base/clock.h"
#include "base/cores.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define HEADERS (20u + 8u + WIRE_HEADER) /* of IPv4 and UDP and ours */

static const struct carrier *const carriers[] = { &carrier_udp, &carrier_tcp };

static bool is_xdp(const char *plane)
{
	return plane && strcmp(plane, "xdp") == 0;
}

static const struct carrier *carrier_find(const char *plane)
{
	if (is_xdp(plane))
		return &carrier_udp;
	for (unsigned i = 0; i < sizeof(carriers) / sizeof(carriers[0]); i++)
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
	thread->rates_at = UINT64_MAX;
	thread->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (thread->wake_fd < 0)
		return status_fail_errno("cannot open an eventfd");
	pthread_mutex_init(&thread->lock, NULL);
	if (index)
		udp_set_port(&address, (uint16_t)(aggregator->port + index));
	return aggregator->carrier->open(thread, &address);
}

/* Loads the program and puts it on the interfaces that lead to workers. */
static trib_status open_xdp(struct aggregator *aggregator)
{
	const struct aggregator_options *options = &aggregator->options;
	struct xdp_port ports[XDP_INTERFACES_MAX];
	struct xdp_options load = { .port = aggregator->port,
		                    .lanes = options->threads,
		                    .queue = options->queue_bytes,
		                    .six = options->listen.storage.ss_family == AF_INET6 };
	trib_status status;
	unsigned n;

	status = xdp_ports(&options->listen, options->interfaces, ports, &n);
	for (unsigned i = 0; status == TRIB_OK && i < n; i++) {
		uint32_t payload = ports[i].mtu > WIRE_PAYLOAD_MIN + HEADERS
		                           ? (ports[i].mtu - HEADERS) & ~7u
		                           : WIRE_PAYLOAD_MIN;

		load.payload = payload > load.payload ? payload : load.payload;
	}
	if (status == TRIB_OK)
		status = xdp_load(&load, &aggregator->xdp);
	for (unsigned i = 0; status == TRIB_OK && i < n; i++)
		status = xdp_attach(aggregator->xdp, ports[i].ifindex, options->native);
	return status;
}

/* Which plane it is to be. Only a program of somebody else's is an error. */
static trib_status choose_plane(struct aggregator *aggregator)
{
	trib_status status = is_xdp(aggregator->options.plane) ? open_xdp(aggregator) : TRIB_OK;
	char text[360];

	if (status == TRIB_ERR_CONFIG)
		return status;
	if (status != TRIB_OK) {
		xdp_close(aggregator->xdp);
		aggregator->xdp = NULL;
		snprintf(aggregator->plane, sizeof(aggregator->plane),
		         "udp: XDP was asked for, but %s", trib_last_error());
		log_warn("plane %s", aggregator->plane);
	} else if (aggregator->xdp) {
		snprintf(aggregator->plane, sizeof(aggregator->plane), "xdp: on %s",
		         xdp_describe(aggregator->xdp, text, sizeof(text)));
		log_notice("plane %s", aggregator->plane);
	} else {
		snprintf(aggregator->plane, sizeof(aggregator->plane), "%s",
		         aggregator->carrier->plane);
	}
	return TRIB_OK;
}

const char *aggregator_plane(const struct aggregator *aggregator)
{
	return aggregator->plane;
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
	pthread_mutex_init(&aggregator->rates.lock, NULL);
	aggregator->rates.capacity = (double)options->link_bps;
	aggregator->started_at = clock_now();
	pthread_mutex_init(&aggregator->secret_lock, NULL);
	pthread_mutex_init(&aggregator->leave_lock, NULL);
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
	status = choose_plane(aggregator);
	if (status != TRIB_OK) {
		aggregator_free(aggregator);
		return status;
	}
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
		if (thread->wake_fd >= 0)
			close(thread->wake_fd);
	}
	registry_free(aggregator);
	xdp_close(aggregator->xdp);
	stats_close(aggregator);
	pthread_mutex_destroy(&aggregator->leave_lock);
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
