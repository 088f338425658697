/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server_hot: where hot rows come from an aggregator. The rest of the server calls it at these
 * places; there are no hot rows yet.
 */
#ifndef TRIB_SPARSE_SERVER_SERVER_HOT_H
#define TRIB_SPARSE_SERVER_SERVER_HOT_H

#include "sparse/server/server_internal.h"

#include <stdio.h>

/* A worker has joined the table, and was welcomed; or it has left. */
static inline void server_hot_joined(struct sparse_server *server, struct connection *c)
{
	(void)server, (void)c;
}

static inline void server_hot_left(struct sparse_server *server, struct server_table *table)
{
	(void)server, (void)table;
}

/* LOST: the worker cannot reach the aggregator of an incarnation. */
static inline trib_status server_hot_lost(struct sparse_server *server, struct connection *c,
                                          const struct message *message)
{
	(void)server, (void)c, (void)message;
	return TRIB_OK;
}

/* Sockets and timers, in each round of the loop, before the commit. Returns when it wants to be
 * called again (UINT64_MAX: never). */
static inline uint64_t server_hot_serve(struct sparse_server *server, uint64_t now)
{
	(void)server, (void)now;
	return UINT64_MAX;
}

/* After a commit that succeeded. */
static inline void server_hot_committed(struct sparse_server *server, uint64_t now)
{
	(void)server, (void)now;
}

/* The value of the member "hot" in the table's JSON object. */
static inline void server_hot_describe(const struct server_table *table, FILE *out)
{
	(void)table;
	fprintf(out, "null");
}

/* The same for people: the end of a line. */
static inline void server_hot_print(const struct server_table *table, FILE *out)
{
	(void)table;
	fprintf(out, "no hot rows");
}

static inline void server_hot_end(struct server_table *table)
{
	(void)table;
}

#endif
