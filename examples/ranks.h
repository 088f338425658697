/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXAMPLES_RANKS_H
#define EXAMPLES_RANKS_H

#include <tributary.h>

#include <stdbool.h>

#define HASH_START 0xcbf29ce484222325ull

/* FNV-1a. To chain calls, pass the previous result as `hash`. */
uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size);

/* Unless `status` is TRIB_OK, prints the library's sentence and exits. */
void ranks_require(const trib_comm *comm, trib_status status, const char *what);

/*
 * Collective: do all ranks have the same hash? If not, rank 0 prints on stderr the ranks whose
 * `what` differs from its own.
 */
bool ranks_agree(trib_comm *comm, uint64_t hash, const char *what);

#endif
