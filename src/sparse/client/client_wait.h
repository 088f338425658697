/* SPDX-License-Identifier: Apache-2.0 */
/* client_wait: how the user's thread waits for the table's, and what it says if it waited in vain.
 * The lock is held. */
#ifndef TRIB_SPARSE_CLIENT_CLIENT_WAIT_H
#define TRIB_SPARSE_CLIENT_CLIENT_WAIT_H

#include "sparse/client/sparse_client.h"

typedef bool wait_done(const trib_sparse *table, const void *context);

/*
 * Waits until `done`, the table has failed, or the time is over. `what` is for the sentence of a
 * timeout, e.g. "to open the table".
 */
trib_status client_wait(trib_sparse *table, wait_done *done, const void *context, uint64_t ns,
                        const char *what);

/* TRIB_OK, or the failure of the table as this thread's error. */
trib_status client_state(const trib_sparse *table);

/* Pointers are there, and all keys may have rows. `call` is for the sentence. Takes no lock. */
trib_status client_keys_check(const trib_sparse *table, const char *call, const uint64_t *keys,
                              const void *rows, size_t n);

#endif
