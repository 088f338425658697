/* SPDX-License-Identifier: Apache-2.0 */
#include "control/folder.h"
#include "control/listener.h"
#include "control/metrics.h"

#include <stdlib.h>

/* Of the files that tribd may have open most are for sums, whoever connects here. */
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
	char folder[FOLDER_PATH_MAX];
	struct listener listener = { .listen = options->listen,
		                     .folder = folder,
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
	status = options->unasked ? folder_find(options->state, folder)
	                          : folder_make(options->state, folder);
	if (status != TRIB_OK && options->unasked) {
		listener.folder = NULL; /* then no token is in it */
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
