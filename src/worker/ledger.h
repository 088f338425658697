/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must be known of a request to go on with it in other trees. Only
 * communicators that have a controller keep ledgers.
 *
 * A vector of a request is a row of blocks, the elements of one data fragment
 * each. Lanes, trees and their shares do not matter here: parts begin at
 * blocks, whatever the split. A ledger says which blocks are done here, and
 * lives until everyone is known to need nothing more of the request.
 *
 * A rank that has finished may be needed by one that has not: for a result
 * that was lost on its way to the other, or for an input. The user has his
 * buffers back by then, so what somebody may still ask for is copied aside
 * when a round finishes: only the blocks that are not below the lane's `low`,
 * and only until `low` has passed them. Where those are many, a moment is waited
 * before: everyone has finished by then, and nothing is left to be copied.
 */
#ifndef TRIB_WORKER_LEDGER_H
#define TRIB_WORKER_LEDGER_H

#include "worker/round.h"

struct trib_comm;
struct trib_request;
struct lane;

struct vector {
	struct round_spec spec; /* pointers hold as long as the request is not finished */
	size_t per;             /* elements in a block */
	size_t blocks;          /* at least one, also of an empty vector */
	uint64_t *have;         /* done here: the result has come, or the input has gone */
};

/* Results that others may miss, or the input of a rank that gets no result. */
struct copy {
	struct copy *next, **link;
	unsigned vector;
	size_t first, count; /* elements */
	uint8_t *bytes;
};

struct ledger {
	struct ledger *next, **link; /* of the communicator's, by number */
	uint64_t number;
	struct trib_request *request; /* NULL: finished here */
	unsigned pending;             /* rounds that somebody may still need something of */
	struct copy *copies;
	uint64_t *have; /* of all vectors */
	unsigned n;
	struct vector vectors[];
};

/* A finished round of a lane whose end `low` has not passed yet. */
struct kept {
	struct kept *next;
	uint64_t end;
	struct ledger *ledger;
	struct copy *copy; /* NULL: nobody can ask for anything of it */
};

/* NULL: no memory. */
struct ledger *ledger_new(const struct round_spec *specs, size_t n, uint32_t payload);
void ledger_free(struct ledger *ledger);

/* The functions below are for whoever holds the communicator's lock. */

/* The newest one; takes it over. */
void ledger_append(struct trib_comm *comm, struct ledger *ledger);
/* Nobody needs anything of it any more. */
void ledger_drop(struct trib_comm *comm, struct ledger *ledger);
struct ledger *ledger_find(const struct trib_comm *comm, uint64_t number);
/* The number of the first one that is not finished here; that of the next post: all are. */
uint64_t ledger_first_open(const struct trib_comm *comm);

/* Blocks of a round that are done here. */
void ledger_note(struct round *round);

/*
 * The bytes of a part, to be sent: of the result if `result`, else of the input;
 * from the user's buffer, or put together from copies. NULL: no memory.
 */
const uint8_t *ledger_bytes(struct ledger *ledger, unsigned vector, size_t first, size_t count,
                            bool result);

/* By the lane's thread: bytes of a finished round that others may still ask for, as of now. */
size_t ledger_unsure(const struct lane *lane, const struct round *round);
/* By the lane's thread: a round has finished, copies what others may ask for. False: no memory. */
bool ledger_keep(struct lane *lane, struct round *round);
/* By the lane's thread: nobody needs anything below `low`. */
void ledger_forget(struct lane *lane, uint64_t low);
/* The lane ends: its positions mean nothing any more. Copies stay with their ledgers. */
void ledger_let_go(struct lane *lane);

static inline size_t vector_element(const struct vector *vector)
{
	return vector->spec.copy ? 1 : trib_type_size(vector->spec.type);
}

#endif
