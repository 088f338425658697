/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client_hot: where hot rows leave the way to the servers. The rest of the client calls it at five
 * places: a push asks for each row whether it is hot, a message about hot rows arrives, sockets are
 * polled and served, and a shard ends. There are no hot rows yet: all answers are "no".
 */
#ifndef TRIB_SPARSE_CLIENT_CLIENT_HOT_H
#define TRIB_SPARSE_CLIENT_CLIENT_HOT_H

#include "sparse/client/sparse_client.h"

#include <poll.h>

#define CLIENT_HOT_POLLS 1u /* sockets of a shard for hot rows, at most */

/*
 * Takes a row of a push if it is hot: it is copied, and request->left counts it until it is
 * durable. False: the row goes to the server.
 */
static inline bool client_hot_take(struct shard *shard, uint64_t key, const float *row,
                                   struct trib_sparse_request *request)
{
	(void)shard, (void)key, (void)row, (void)request;
	return false;
}

/* HOT, MAP or SEALED has arrived. */
static inline void client_hot_message(struct shard *shard, const struct message *message)
{
	(void)shard, (void)message;
}

/* Fills up to CLIENT_HOT_POLLS entries; returns how many. */
static inline unsigned client_hot_polls(struct shard *shard, struct pollfd *polls)
{
	(void)shard, (void)polls;
	return 0;
}

/* Serves sockets and timers; returns when it wants to be called again (UINT64_MAX: never). */
static inline uint64_t client_hot_serve(struct shard *shard, uint64_t now)
{
	(void)shard, (void)now;
	return UINT64_MAX;
}

static inline void client_hot_end(struct shard *shard)
{
	(void)shard;
}

#endif
