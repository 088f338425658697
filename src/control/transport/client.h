/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP client for the controller. For one thread at a time; the connection is kept. */
#ifndef TRIB_CONTROL_TRANSPORT_CLIENT_H
#define TRIB_CONTROL_TRANSPORT_CLIENT_H

#include "control/transport/endpoint.h"
#include "control/transport/token.h"

#include <jansson.h>

struct client;

trib_status client_new(const struct endpoint *endpoint, const char *token, struct client **out);
/* Uses TRIB_CONTROLLER and the token's settings, or the state folder of a local controller. */
trib_status client_find(const char *controller, struct client **out);
void client_free(struct client *client);

/*
 * Makes one request. `body` may be NULL and stays the caller's. The caller frees *answer (may be
 * NULL). If the controller refuses, the error has the controller's message.
 */
trib_status client_call(struct client *client, const char *method, const char *path,
                        const json_t *body, double timeout_s, json_t **answer);
/* The HTTP status of the last answer; 0: no answer. */
long client_status(const struct client *client);
const struct endpoint *client_endpoint(const struct client *client);

#endif
