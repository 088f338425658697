/* SPDX-License-Identifier: Apache-2.0 */
/* client_route: which way rows go: to which shard, and there to its server or an aggregator. The
 * lock is held. */
#ifndef TRIB_SPARSE_CLIENT_CLIENT_ROUTE_H
#define TRIB_SPARSE_CLIENT_CLIENT_ROUTE_H

#include "sparse/client/sparse_client.h"

/* Adds rows of different keys to their shards' queues, or to the hot ones. */
trib_status route_push(struct trib_sparse_request *request, const uint64_t *keys, const float *rows,
                       size_t n);
/* Asks for different keys; places[i] is the row of the user for keys[i]. */
trib_status route_pull(struct trib_sparse_request *request, const uint64_t *keys,
                       const size_t *places, size_t n);

#endif
