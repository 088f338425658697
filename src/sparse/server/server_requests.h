/* SPDX-License-Identifier: Apache-2.0 */
/* server_requests: does what clients ask. */
#ifndef TRIB_SPARSE_SERVER_SERVER_REQUESTS_H
#define TRIB_SPARSE_SERVER_SERVER_REQUESTS_H

#include "sparse/server/server_internal.h"

/* Handles the complete messages of a client. True: it stopped since the client has to wait. */
bool requests_take(struct sparse_server *server, struct connection *c, uint64_t now);
/* After a commit: clients hear which of their pushes are durable. */
void acks_add(struct sparse_server *server);
/* May messages of this client be taken? Not while its pushes wait for a log that fails. */
bool requests_allowed(const struct sparse_server *server, const struct connection *c);

#endif
