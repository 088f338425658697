/* SPDX-License-Identifier: Apache-2.0 */
#include "control/controller_internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/settings.h"
#include "control/endpoint.h"
#include "control/tls.h"
#include "control/token.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool control_is_built(void)
{
	return true;
}

/* What others would type: a listener on every address is known by the machine's name. */
static void make_address(struct controller *controller, const struct udp_address *listen,
                         const char *pin, bool tls)
{
	struct endpoint endpoint = { .port = udp_port(listen), .tls = tls };
	const struct sockaddr_in *four = (const void *)&listen->storage;
	const struct sockaddr_in6 *six = (const void *)&listen->storage;
	bool is_six = listen->storage.ss_family == AF_INET6;

	if (is_six ? IN6_IS_ADDR_UNSPECIFIED(&six->sin6_addr) : !four->sin_addr.s_addr)
		gethostname(endpoint.host, sizeof(endpoint.host) - 1);
	else if (is_six)
		inet_ntop(AF_INET6, &six->sin6_addr, endpoint.host, sizeof(endpoint.host));
	else
		inet_ntop(AF_INET, &four->sin_addr, endpoint.host, sizeof(endpoint.host));
	snprintf(endpoint.pin, sizeof(endpoint.pin), "%s", pin);
	endpoint_print(&endpoint, controller->address, sizeof(controller->address));
}

static trib_status open_http(struct controller *controller,
                             const struct controller_options *options)
{
	bool loopback = endpoint_is_loopback(&options->listen), secure = !loopback;
	struct http_options http = { .listen = options->listen,
		                     .routes = api_routes,
		                     .context = controller };
	char token[TOKEN_MAX], line[sizeof(controller->address) + 1];
	struct udp_address bound = options->listen;
	struct tls tls = { 0 };
	trib_status status;

	if (secure && options->plain) {
		log_warn("--plain: the token and the jobs' cookies are sent in the clear beyond "
		         "this machine");
		secure = false;
	}
	if ((status = token_make(controller->folder, token)) != TRIB_OK)
		return status;
	if (secure && (status = tls_load(controller->folder, &tls)) != TRIB_OK)
		return status;
	http.token = token;
	if (secure) {
		http.key = tls.key;
		http.certificate = tls.certificate;
	}
	if ((status = http_start(&http, &controller->http)) != TRIB_OK)
		return status;
	udp_set_port(&bound, http_port(controller->http));
	make_address(controller, &bound, tls.pin, secure);
	snprintf(line, sizeof(line), "%s\n", controller->address);
	if ((status = folder_write(controller->folder, FOLDER_ADDRESS, line, 0644)) != TRIB_OK)
		return status;
	return desk_open(controller, &bound);
}

static trib_status open_all(struct controller *controller, const struct controller_options *options)
{
	trib_status status;
	uint64_t load;
	double beat_s;

	if ((status = setting_seconds(SETTING_BEAT, &beat_s)) ||
	    (status = setting_count(SETTING_LOAD_MAX, &load)) ||
	    (status = folder_make(options->state, controller->folder)) ||
	    (status = store_open(controller->folder, &controller->store)) ||
	    (status = store_secret(controller->store, &controller->secret)) ||
	    (status = jobs_load(controller)))
		return status;
	controller->beat_ns = (uint64_t)(beat_s * 1e9);
	controller->limits.dead_after = CONTROL_BEATS_MISSED * controller->beat_ns;
	controller->limits.load = (double)load / 100;
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
	desk_close(controller);
	jobs_free(controller);
	nodes_free(&controller->nodes, api_forget_node);
	store_close(controller->store);
	pthread_mutex_destroy(&controller->lock);
	free(controller);
}

const char *controller_address(const struct controller *controller)
{
	return controller->address;
}

const char *controller_folder(const struct controller *controller)
{
	return controller->folder;
}
