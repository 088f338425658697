/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The security rules of every HTTP listener: it requires a token, and uses TLS unless it is on
 * loopback. Exception: a listener that the user did not ask for (`unasked`) is on loopback and
 * creates no files. If there is no token, it requires none.
 */
#ifndef TRIB_CONTROL_TRANSPORT_LISTENER_H
#define TRIB_CONTROL_TRANSPORT_LISTENER_H

#include "control/transport/endpoint.h"
#include "control/transport/http.h"

struct listener {
	struct udp_address listen;
	const char *state_dir; /* the state folder; NULL, if `unasked`: there is none */
	bool plain;            /* allow HTTP without TLS beyond loopback */
	bool unasked;          /* on loopback; creates no files */
	unsigned connections;  /* as in struct http_options */
	const struct http_route *routes;
	void *context;
};

/* *endpoint: what clients need to connect. */
trib_status listener_open(const struct listener *listener, struct http_server **out,
                          struct endpoint *endpoint);

#endif
