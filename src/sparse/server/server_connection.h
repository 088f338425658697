/* SPDX-License-Identifier: Apache-2.0 */
/* server_connection: moves bytes of a client. It knows no tables. */
#ifndef TRIB_SPARSE_SERVER_SERVER_CONNECTION_H
#define TRIB_SPARSE_SERVER_SERVER_CONNECTION_H

#include "sparse/server/server_internal.h"

/* Takes a new client from the listener. False: no one waits, or it failed and was logged. */
bool connection_accept(struct sparse_server *server, uint64_t now);
/* Reads once. False: the connection has ended. */
bool connection_read(struct connection *c);
/* Sends what waits. False: the connection has ended. */
bool connection_write(struct connection *c);
/* Tells epoll what to wait for. `may_read`: the server takes messages of this client now. */
void connection_poll(struct sparse_server *server, struct connection *c, bool may_read);
/* What waits is sent, then the connection is closed. */
void connection_end(struct connection *c);
/* The client hears what is wrong, and is closed. `flags`: MESSAGE_FOR_NOW or 0. */
void connection_refuse(struct connection *c, unsigned flags, const char *sentence);
/* A message could not be added: no memory. */
void connection_drop(struct connection *c);
/* Frees the connections that are dead. */
void connections_sweep(struct sparse_server *server);

#endif
