/* SPDX-License-Identifier: Apache-2.0 */
/* client_answers: what a message of a server changes. The lock is held. */
#ifndef TRIB_SPARSE_CLIENT_CLIENT_ANSWERS_H
#define TRIB_SPARSE_CLIENT_CLIENT_ANSWERS_H

#include "sparse/client/sparse_client.h"

/* An error: no server may send this now. The sentence says what it is. */
trib_status answer_take(struct shard *shard, const struct message *message);

#endif
