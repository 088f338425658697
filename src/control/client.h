/* SPDX-License-Identifier: Apache-2.0 */
/* Asks a controller by HTTP. One thread at a time; the connection is kept. */
#ifndef TRIB_CONTROL_CLIENT_H
#define TRIB_CONTROL_CLIENT_H

#include "control/endpoint.h"
#include "control/token.h"

#include <jansson.h>

struct client;

trib_status client_new(const struct endpoint *endpoint, const char *token, struct client **out);
/* From TRIB_CONTROLLER and the token's settings, or what a controller here has left for us. */
trib_status client_find(const char *controller, struct client **out);
void client_free(struct client *client);

/*
 * One request; `body` may be NULL and stays the caller's. *answer, where
 * wanted, is the caller's to give up. What the controller refuses is an error
 * with its sentence.
 */
trib_status client_call(struct client *client, const char *method, const char *path,
                        const json_t *body, double timeout_s, json_t **answer);
/* The HTTP status of the last answer; 0: there was none. */
long client_status(const struct client *client);
const struct endpoint *client_endpoint(const struct client *client);

#endif
