/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api: the controller's HTTP interface, as docs/api.md describes it.
 *
 * This folder owns the routes and the JSON of requests and replies: one file for each kind of
 * object (jobs, nodes, metrics). Handlers take the controller's lock and call the acting folders.
 * They keep no state of their own. A change to /v1 must not break existing clients.
 */
#ifndef TRIB_CONTROL_API_ROUTES_H
#define TRIB_CONTROL_API_ROUTES_H

#include "control/transport/http.h"

/* The context of every route is the struct controller. The last route has no path. */
extern const struct http_route api_routes[];

#endif
