/* SPDX-License-Identifier: Apache-2.0 */
#include "control/server/controller.h"

#include "base/clock.h"
#include "base/settings.h"
#include "control/api/api_nodes.h"
#include "control/api/routes.h"
#include "control/control.h"
#include "control/jobs/job_table.h"
#include "control/server/worker_server.h"
#include "control/sharing/share_table.h"
#include "control/transport/listener.h"

#include <stdio.h>
#include <stdlib.h>

bool control_is_built(void)
{
	return true;
}

static trib_status open_http(struct controller *controller,
                             const struct controller_options *options)
{
	const struct listener listener = { .listen = options->listen,
		                           .state_dir = controller->state_dir,
		                           .plain = options->plain,
		                           .routes = api_routes,
		                           .context = controller };
	char line[sizeof(controller->address) + 1];
	struct udp_address bound = options->listen;
	struct endpoint endpoint;
	trib_status status = listener_open(&listener, &controller->http, &endpoint);

	if (status != TRIB_OK)
		return status;
	endpoint_print(&endpoint, controller->address, sizeof(controller->address));
	snprintf(line, sizeof(line), "%s\n", controller->address);
	if ((status = state_dir_write(controller->state_dir, STATE_DIR_ADDRESS, line, 0644)) !=
	    TRIB_OK)
		return status;
	udp_set_port(&bound, endpoint.port);
	return worker_server_open(controller, &bound);
}

static trib_status open_all(struct controller *controller, const struct controller_options *options)
{
	trib_status status;
	uint64_t load, sharing, exit_below, fan_in, stripes, placement, alpha, probe;
	double heartbeat_s, start_within_s, keep_ended_s;
	struct timespec started;

	if ((status = setting_seconds(SETTING_BEAT, &heartbeat_s)) ||
	    (status = setting_count(SETTING_LOAD_MAX, &load)) ||
	    (status = setting_count(SETTING_SHARING, &sharing)) ||
	    (status = setting_count(SETTING_EXIT_BELOW, &exit_below)) ||
	    (status = setting_count(SETTING_FAN_IN, &fan_in)) ||
	    (status = setting_count(SETTING_STRIPES, &stripes)) ||
	    (status = setting_count(SETTING_GAUGE, &probe)) ||
	    (status = setting_count(SETTING_PLACEMENT, &placement)) ||
	    (status = setting_count(SETTING_ALPHA, &alpha)) ||
	    (status = setting_seconds(SETTING_START_WITHIN, &start_within_s)) ||
	    (status = setting_seconds(SETTING_KEEP_ENDED, &keep_ended_s)) ||
	    (status = state_dir_make(options->state, controller->state_dir)) ||
	    (status = store_open(controller->state_dir, &controller->store)) ||
	    (status = store_secret(controller->store, &controller->secret)))
		return status;
	if (!secret_draw(&controller->address_secret))
		return status_fail_errno("no random numbers");
	clock_gettime(CLOCK_REALTIME, &started);
	controller->session = (uint64_t)started.tv_sec * NSEC_PER_SEC + (uint64_t)started.tv_nsec;
	if ((status = job_table_load(controller)) != TRIB_OK)
		return status;
	controller->heartbeat_ns = (uint64_t)(heartbeat_s * 1e9);
	controller->limits.dead_after = CONTROL_HEARTBEATS_MISSED * controller->heartbeat_ns;
	controller->limits.load = (double)load / 100;
	controller->turn_policy = (enum turn_policy)sharing;
	controller->placement = (enum host_policy)placement;
	controller->alpha = (double)alpha / 100;
	controller->start_within = (uint64_t)(start_within_s * 1e9);
	controller->keep_ended = (uint64_t)(keep_ended_s * 1e9);
	controller->exit_below =
		(double)(options->exit_below < 0 ? (int)exit_below : options->exit_below) / 100;
	controller->fan_in = (unsigned)fan_in;
	controller->stripes = (unsigned)stripes;
	controller->probes_links = probe;
	return open_http(controller, options);
}

trib_status controller_start(const struct controller_options *options, struct controller **out)
{
	struct controller *controller = calloc(1, sizeof(*controller));
	trib_status status;

	if (!controller)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a controller");
	pthread_mutex_init(&controller->lock, NULL);
	controller->fd = -1;
	controller->started_at = clock_now();
	status = open_all(controller, options);
	if (status != TRIB_OK) {
		controller_stop(controller);
		return status;
	}
	*out = controller;
	return TRIB_OK;
}

void controller_stop(struct controller *controller)
{
	if (!controller)
		return;
	http_stop(controller->http);
	worker_server_close(controller);
	share_table_free(controller);
	job_table_free(controller);
	nodes_free(&controller->nodes, api_forget_node);
	store_close(controller->store);
	pthread_mutex_destroy(&controller->lock);
	free(controller);
}

const char *controller_address(const struct controller *controller)
{
	return controller->address;
}

void controller_set_aggregator(struct controller *controller, struct aggregator *aggregator)
{
	pthread_mutex_lock(&controller->lock);
	controller->aggregator = aggregator;
	pthread_mutex_unlock(&controller->lock);
}
