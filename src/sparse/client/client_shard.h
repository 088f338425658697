/* SPDX-License-Identifier: Apache-2.0 */
/* client_shard: the connection to one parameter server. The lock is held. */
#ifndef TRIB_SPARSE_CLIENT_CLIENT_SHARD_H
#define TRIB_SPARSE_CLIENT_CLIENT_SHARD_H

#include "sparse/client/sparse_client.h"

/* Connects if it is time; gives up an attempt that takes too long. Returns when to call again. */
uint64_t shard_step(struct shard *shard, uint64_t now);
/* What poll should wait for. */
short shard_events(const struct shard *shard);
/* poll has found these events. */
void shard_serve(struct shard *shard, short events, uint64_t now);
/* Sends what waits and fits the socket. */
void shard_send(struct shard *shard, uint64_t now);
/* Says BYE on the connection that is open. */
void shard_leave(struct shard *shard);
void shard_free(struct shard *shard);

#endif
