/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXAMPLES_RANKS_H
#define EXAMPLES_RANKS_H

#include <tributary.h>

#include <stdbool.h>

#define HASH_START 0xcbf29ce484222325ull

/* FNV-1a; chains by taking the last hash as `hash`. */
uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size);

/* Ends the program with the library's sentence unless `status` is TRIB_OK. */
void ranks_require(const trib_comm *comm, trib_status status, const char *what);

/*
 * Collective: whether all ranks gave the same hash. If not, rank 0 says on
 * stderr which ranks hold other `what` than itself.
 */
bool ranks_agree(trib_comm *comm, uint64_t hash, const char *what);

#endif
