/* SPDX-License-Identifier: Apache-2.0 */
#include "control/transport/state_dir.h"
#include "control/transport/listener.h"
#include "control/metrics/prometheus.h"

#include <stdlib.h>

/* Few connections: most of tribd's open files are for aggregation. */
#define CONNECTIONS_MAX 16

struct metrics_server {
	struct http_server *http;
	struct aggregator *aggregator;
};

static void get_metrics(void *context, const struct http_request *request, struct http_reply *reply)
{
	struct metrics_server *server = context;
	size_t size;
	FILE *out = open_memstream(&reply->text, &size);

	(void)request;
	if (!out) {
		http_fail(reply, HTTP_FAILED, "no memory for metrics");
		return;
	}
	metrics_aggregator(out, server->aggregator);
	fclose(out);
	reply->type = METRICS_TYPE;
}

static const struct http_route routes[] = {
	{ "GET", "/metrics", get_metrics, false },
	{ 0 },
};

trib_status metrics_start(const struct metrics_options *options, struct metrics_server **out)
{
	struct metrics_server *server = calloc(1, sizeof(*server));
	char state_dir[STATE_DIR_PATH_MAX];
	struct listener listener = { .listen = options->listen,
		                     .state_dir = state_dir,
		                     .plain = options->plain,
		                     .unasked = options->unasked,
		                     .connections = CONNECTIONS_MAX,
		                     .routes = routes,
		                     .context = server };
	struct endpoint endpoint;
	trib_status status;

	if (!server)
		return status_fail(TRIB_ERR_NO_MEMORY, "no memory for a listener");
	server->aggregator = options->aggregator;
	status = options->unasked ? state_dir_find(options->state, state_dir)
	                          : state_dir_make(options->state, state_dir);
	if (status != TRIB_OK && options->unasked) {
		listener.state_dir = NULL; /* no state folder, so no token */
		status = TRIB_OK;
	}
	if (status == TRIB_OK)
		status = listener_open(&listener, &server->http, &endpoint);
	if (status != TRIB_OK) {
		free(server);
		return status;
	}
	*out = server;
	return TRIB_OK;
}

void metrics_stop(struct metrics_server *server)
{
	if (!server)
		return;
	http_stop(server->http);
	free(server);
}

uint16_t metrics_port(const struct metrics_server *server)
{
	return http_port(server->http);
}

bool metrics_asks(const struct metrics_server *server)
{
	return http_asks(server->http);
}
