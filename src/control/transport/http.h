/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transport: how controller, agents and tools talk to each other.
 *
 * This folder owns HTTP (http, client, listener), TLS and tokens (tls, token), the addresses of
 * controllers (endpoint), the state folder (state_dir) and the JSON of heartbeats (node_report). It
 * knows no jobs and keeps no records of the controller.
 *
 * http is a server with one thread and a table of routes. It checks the token, reads JSON, and
 * answers every error with a message: {"error": "..."}.
 */
#ifndef TRIB_CONTROL_TRANSPORT_HTTP_H
#define TRIB_CONTROL_TRANSPORT_HTTP_H

#include "path/udp.h"

#include <jansson.h>

#define HTTP_BODY_MAX (256u << 10)

enum http_status {
	HTTP_OK = 200,
	HTTP_CREATED = 201,
	HTTP_BAD_REQUEST = 400,
	HTTP_UNAUTHORIZED = 401,
	HTTP_NOT_FOUND = 404,
	HTTP_NO_METHOD = 405,
	HTTP_CONFLICT = 409,
	HTTP_TOO_LARGE = 413,
	HTTP_FAILED = 500,
	HTTP_UNAVAILABLE = 503,
};

struct http_request {
	const char *path;
	const char *part;   /* the part that matches the route's "*"; NULL: none */
	const json_t *json; /* the body; NULL: none */
};

struct http_reply {
	enum http_status status; /* 200 unless the handler sets another one */
	json_t *json;            /* owned by the reply; NULL: `text` is the body */
	char *text;              /* malloced, owned by the reply */
	const char *type;        /* content type of `text` */
};

/* Sets the status and the error message. */
void http_fail(struct http_reply *reply, enum http_status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

struct http_route {
	const char *method;
	const char *path; /* its last part may be "*", which matches any one part */
	void (*handle)(void *context, const struct http_request *request, struct http_reply *reply);
	bool open; /* needs no token */
};

struct http_options {
	struct udp_address listen;
	const char *token;               /* NULL or empty: no token is required */
	const char *key, *certificate;   /* PEM texts; NULL: plain HTTP */
	unsigned connections;            /* limit, further ones wait; 0: the controller's default */
	const struct http_route *routes; /* the last one has no path */
	void *context;
};

struct http_server;
trib_status http_start(const struct http_options *options, struct http_server **out);
void http_stop(struct http_server *server);
uint16_t http_port(const struct http_server *server);
/* Does it require a token? */
bool http_asks(const struct http_server *server);

#endif
