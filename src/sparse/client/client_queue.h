/* SPDX-License-Identifier: Apache-2.0 */
/* client_queue: pushes and pulls as messages in the queues of the shards. The lock is held. */
#ifndef TRIB_SPARSE_CLIENT_CLIENT_QUEUE_H
#define TRIB_SPARSE_CLIENT_CLIENT_QUEUE_H

#include "sparse/client/sparse_client.h"

/* NULL: no memory. It counts as one message that is being added, until queue_ready. */
struct trib_sparse_request *queue_request(trib_sparse *table, bool is_push, bool is_owned);
/* All messages of the request were added. */
void queue_ready(struct trib_sparse_request *request);
/* A part of the request has ended. It may be freed by this, if no user has it. */
void queue_part_ended(struct trib_sparse_request *request);
void queue_request_free(struct trib_sparse_request *request);

/* Sends rows of one shard to its server. */
trib_status queue_push_cold(struct shard *shard, struct trib_sparse_request *request,
                            const uint64_t *keys, const float *rows, size_t n);
/* Asks the server of these keys, which are all of this shard. */
trib_status queue_pull_cold(struct shard *shard, struct trib_sparse_request *request,
                            const uint64_t *keys, const size_t *places, size_t n);
/* The same for keys[order[i]] and places[order[i]]. */
trib_status queue_pull_some(struct shard *shard, struct trib_sparse_request *request,
                            const uint64_t *keys, const size_t *places, const size_t *order,
                            size_t n);

/* The first unsent message was sent: the next one comes. */
void queue_sent(struct shard *shard);
/* All pushes of this shard up to `number` are durable. False: some of them were never sent. */
bool queue_acknowledge(struct shard *shard, uint64_t number);
/* The message of a pull that waits for an answer; NULL: there is none with that number. */
struct outgoing *queue_find_pull(struct shard *shard, uint64_t number);
/* Removes a message from its queue and frees it. */
void queue_remove(struct shard *shard, struct outgoing *item);
/* After a new connection: everything without an answer is sent again, but for pushes that the
 * server has applied. */
void queue_rewind(struct shard *shard, uint64_t applied);

#endif
