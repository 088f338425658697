/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_guard: which connections of an HTTP server may stay. A connection that has not shown the
 * token has a few seconds for its request, however slowly it sends. Half of all places are kept for
 * connections that have shown it, as agents and users do: when strangers have the other half, the
 * oldest stranger goes.
 */
#ifndef TRIB_CONTROL_TRANSPORT_HTTP_GUARD_H
#define TRIB_CONTROL_TRANSPORT_HTTP_GUARD_H

#include <stdbool.h>

struct http_guard;
struct http_visit; /* one connection */

/* `places`: connections that the server takes. NULL: no memory, or no thread. */
struct http_guard *http_guard_open(unsigned places);
/* No connection is left. */
void http_guard_close(struct http_guard *guard);

/* A connection has come; NULL: no memory. */
struct http_visit *http_visit_begin(struct http_guard *guard, int fd);
/* It has shown the token. */
void http_visit_prove(struct http_visit *visit);
/* Its request has ended; another one may follow. */
void http_visit_rest(struct http_visit *visit);
/* It is about to be closed. NULL is allowed. */
void http_visit_end(struct http_visit *visit);

#endif
