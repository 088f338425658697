/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An HTTP server as one table of routes, with one thread. It keeps out who
 * does not show the token, reads JSON, and answers every error with a sentence:
 * {"error": "..."}.
 */
#ifndef TRIB_CONTROL_HTTP_H
#define TRIB_CONTROL_HTTP_H

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
	const char *part;   /* what stands for the * of the route; NULL: it has none */
	const json_t *json; /* the body; NULL: there was none */
};

struct http_reply {
	enum http_status status; /* 200 where the handler sets none */
	json_t *json;            /* taken over; or */
	char *text;              /* malloced, taken over, */
	const char *type;        /* of this type */
};

/* Sets the status and an answer that says why. */
void http_fail(struct http_reply *reply, enum http_status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

struct http_route {
	const char *method;
	const char *path; /* its last part may be "*": any one part */
	void (*handle)(void *context, const struct http_request *request, struct http_reply *reply);
	bool open; /* without a token */
};

struct http_options {
	struct udp_address listen;
	const char *token;               /* NULL or empty: none is asked for */
	const char *key, *certificate;   /* PEM texts; NULL: plain HTTP */
	unsigned connections;            /* the most at once, others wait; 0: as a controller's */
	const struct http_route *routes; /* up to one without a path */
	void *context;
};

struct http_server;
trib_status http_start(const struct http_options *options, struct http_server **out);
void http_stop(struct http_server *server);
uint16_t http_port(const struct http_server *server);
/* Does it ask for a token? */
bool http_asks(const struct http_server *server);

#endif
