/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of every HTTP listener: a token, and TLS wherever others could
 * listen in. Only one that nobody asked for does without a token, on loopback
 * and where there is none, rather than leave a file behind.
 */
#ifndef TRIB_CONTROL_LISTENER_H
#define TRIB_CONTROL_LISTENER_H

#include "control/endpoint.h"
#include "control/http.h"

struct listener {
	struct udp_address listen;
	const char *folder;   /* NULL, if `unasked`: there is none */
	bool plain;           /* HTTP without TLS also beyond loopback */
	bool unasked;         /* on loopback: no file is made for it */
	unsigned connections; /* as struct http_options has it */
	const struct http_route *routes;
	void *context;
};

/* *endpoint is then what clients need. */
trib_status listener_open(const struct listener *listener, struct http_server **out,
                          struct endpoint *endpoint);

#endif
