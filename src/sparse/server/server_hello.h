/* SPDX-License-Identifier: Apache-2.0 */
/* server_hello: admits clients to tables, and sees them leave. */
#ifndef TRIB_SPARSE_SERVER_SERVER_HELLO_H
#define TRIB_SPARSE_SERVER_SERVER_HELLO_H

#include "sparse/server/server_internal.h"

/* HELLO has arrived. The client is welcomed or refused. */
void hello_take(struct sparse_server *server, struct connection *c, const struct message *message,
                uint64_t now);
/* The connection of a client has ended: its worker has finished, or is lost. */
void hello_undo(struct sparse_server *server, struct connection *c, uint64_t now);
/* Tells a worker the lowest clock, and whose it is. */
void clock_answer(struct connection *c);
/* Tells all workers of a table the lowest clock, if it has risen. */
bool clock_tell(struct sparse_server *server, struct server_table *table);
/* Workers that are lost for too long: in a bounded table the others hear of them. */
void lost_workers_tell(struct sparse_server *server, struct server_table *table, uint64_t now);

#endif
