/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server_hot: hot rows of a table, which an aggregator sums on their way. The rest of the server
 * calls it at these places.
 *
 * A table has at most one incarnation at a time:
 *
 *   OFF -> OPENING (OPEN waits for the commit) -> OPEN (workers are told; the server joins, and
 *     collects sums) -> SEALING (SEAL waits for the commit) -> OFF (workers get their records)
 *
 * It is opened if all workers are connected, some heat is known and the server has aggregators. It
 * is sealed if the aggregator is lost, to the server or to a worker, or if a worker is lost.
 */
#ifndef TRIB_SPARSE_SERVER_SERVER_HOT_H
#define TRIB_SPARSE_SERVER_SERVER_HOT_H

#include "sparse/server/server_internal.h"

#include <stdio.h>

/* A worker has joined the table, and was welcomed; or one has left. */
void server_hot_joined(struct sparse_server *server, struct connection *c);
void server_hot_left(struct sparse_server *server, struct server_table *table);

/* Rows of these keys were pushed so many times; counts NULL: once each. */
void server_hot_pushed(struct sparse_server *server, struct server_table *table,
                       const uint64_t *keys, const uint64_t *counts, uint32_t n);

/* COUNTS: how often a worker has pushed the rows of a map, and whether they have become rare. */
void server_hot_counted(struct server_table *table, const struct message *message);

/* Rows were pulled: the first time, the aggregator has to keep values too. */
void server_hot_pulled(struct sparse_server *server, struct server_table *table);

/* The round after which the aggregator's cache has what is applied now; 0: there is no cache. */
uint32_t server_hot_round(const struct server_table *table);

/* LOST: the worker cannot reach the aggregator of an incarnation. */
trib_status server_hot_lost(struct sparse_server *server, struct connection *c,
                            const struct message *message);

/* Sockets and timers, in each round of the loop, before the commit. Returns when it wants to be
 * called again (UINT64_MAX: never). */
uint64_t server_hot_serve(struct sparse_server *server, uint64_t now);
/* After a commit that succeeded. */
void server_hot_committed(struct sparse_server *server, uint64_t now);

/* The value of the member "hot" in the table's JSON object. */
void server_hot_describe(const struct server_table *table, FILE *out);
/* The same for people: the end of a line. */
void server_hot_print(const struct server_table *table, FILE *out);

void server_hot_end(struct server_table *table);

#endif
