/* SPDX-License-Identifier: Apache-2.0 */
#include "control/transport/listener.h"

#include "base/log.h"
#include "control/transport/tls.h"
#include "control/transport/token.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <unistd.h>

/* The address for clients: a listener on all addresses is known by the host name. */
static void name_host(struct endpoint *endpoint, const struct udp_address *listen)
{
	const struct sockaddr_in *four = (const void *)&listen->storage;
	const struct sockaddr_in6 *six = (const void *)&listen->storage;
	bool is_six = listen->storage.ss_family == AF_INET6;

	if (is_six ? IN6_IS_ADDR_UNSPECIFIED(&six->sin6_addr) : !four->sin_addr.s_addr)
		gethostname(endpoint->host, sizeof(endpoint->host) - 1);
	else if (is_six)
		inet_ntop(AF_INET6, &six->sin6_addr, endpoint->host, sizeof(endpoint->host));
	else
		inet_ntop(AF_INET, &four->sin_addr, endpoint->host, sizeof(endpoint->host));
}

static trib_status choose_token(const struct listener *listener, char out[TOKEN_MAX])
{
	if (listener->unasked && udp_is_loopback(&listener->listen))
		return token_find(listener->state_dir, out);
	return token_make(listener->state_dir, out);
}

trib_status listener_open(const struct listener *listener, struct http_server **out,
                          struct endpoint *endpoint)
{
	bool secure = !udp_is_loopback(&listener->listen) && !listener->plain;
	struct http_options http = { .listen = listener->listen,
		                     .connections = listener->connections,
		                     .routes = listener->routes,
		                     .context = listener->context };
	char token[TOKEN_MAX];
	struct tls tls = { 0 };
	trib_status status;

	if (listener->plain && !udp_is_loopback(&listener->listen))
		log_warn("--plain: the token and the jobs' cookies are sent in the clear beyond "
		         "this machine");
	if ((status = choose_token(listener, token)) != TRIB_OK)
		return status;
	if (secure && (status = tls_load(listener->state_dir, &tls)) != TRIB_OK)
		return status;
	http.token = token;
	http.key = secure ? tls.key : NULL;
	http.certificate = secure ? tls.certificate : NULL;
	if ((status = http_start(&http, out)) != TRIB_OK)
		return status;
	*endpoint = (struct endpoint){ .port = http_port(*out), .tls = secure };
	name_host(endpoint, &listener->listen);
	snprintf(endpoint->pin, sizeof(endpoint->pin), "%s", tls.pin);
	return TRIB_OK;
}
