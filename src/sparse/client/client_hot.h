/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client_hot: where hot rows leave the way to the servers. The rest of the client calls it at these
 * places: a push asks for each row whether it is hot, a shard has welcomed this worker, a message
 * about hot rows arrives, sockets are polled and served, and a shard ends. The lock is held.
 *
 * Each shard has an incarnation of its own at an aggregator, or none:
 *
 *   HOT -> joining -> open -> SEALED: what is not in the server's record is pushed to the server
 *              \--------\---> lost: LOST was sent, SEALED has not come
 *
 * While it is not open all rows go to the server.
 */
#ifndef TRIB_SPARSE_CLIENT_CLIENT_HOT_H
#define TRIB_SPARSE_CLIENT_CLIENT_HOT_H

#include "sparse/client/sparse_client.h"

#include <poll.h>

#define CLIENT_HOT_POLLS 1u /* sockets of a shard for hot rows, at most */

/* Takes a row of a push if it is hot: it is copied. False: the row goes to the server. */
bool client_hot_take(struct shard *shard, uint64_t key, const float *row);
/* Posts the rows that were taken; request->left counts their packets until they are durable. */
void client_hot_post(struct shard *shard, struct trib_sparse_request *request);
/* The rows of the push that were not taken are in the shard's queue. */
void client_hot_pushed(struct shard *shard);
/*
 * Asks the aggregator for values of hot rows: keys[order[i]] belongs to places[order[i]]. Gives how
 * many rows are left for the server: they are the first ones of `order` then.
 */
size_t client_hot_pull(struct shard *shard, struct trib_sparse_request *request,
                       const uint64_t *keys, const size_t *places, size_t *order, size_t n);
/* Pushes up to this one are durable. Values at the aggregator have them after this round. */
void client_hot_acked(struct shard *shard, uint64_t push, uint32_t epoch);
/* The clock of all workers has moved: later pulls see what they pushed up to there. */
void client_hot_clock(struct shard *shard);
/* May a push have hot rows now? False: so many are on their way that it should wait. */
bool client_hot_has_room(const struct shard *shard);
/* The shard has welcomed this worker, for the first time or again. */
void client_hot_connected(struct shard *shard);
/* HOT, MAP or SEALED has arrived. */
void client_hot_message(struct shard *shard, const struct message *message);
/* Fills up to CLIENT_HOT_POLLS entries; returns how many. */
unsigned client_hot_polls(struct shard *shard, struct pollfd *polls);
/* Serves sockets and timers; returns when it wants to be called again (UINT64_MAX: never). */
uint64_t client_hot_serve(struct shard *shard, uint64_t now);
void client_hot_end(struct shard *shard);

#endif
