/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ledger records what is done of a request, so that recovery can complete the request in other
 * trees. Only communicators with a controller keep ledgers.
 *
 * A vector is a row of blocks; a block is the elements of one data fragment. Blocks do not depend
 * on lanes, trees or shares, because parts of a vector begin at blocks. A ledger says which blocks
 * are done here. It lives until no rank can need anything of the request.
 *
 * A rank that has finished may be needed by a rank that has not: for a result that was lost on the
 * way to the other rank, or for an input. The user has the buffers back by then. So when a round
 * finishes, blocks that another rank may still ask for are copied aside. These are the blocks whose
 * fragments are not below the stream's `low`; when `low` has passed them, the copy is freed. If the
 * copy would be large, the lane first holds the round for a moment (transport/lane_finish.c).
 */
#ifndef TRIB_WORKER_COMM_LEDGER_H
#define TRIB_WORKER_COMM_LEDGER_H

#include "worker/dense/round.h"

struct trib_comm;
struct trib_request;
struct lane;

struct vector {
	struct round_spec spec; /* its pointers are valid until the request is finished */
	size_t per;             /* elements in a block */
	size_t blocks;          /* at least 1, even for an empty vector */
	uint64_t *have; /* a bit for each block: the result has come, or the input was delivered */
};

/* A copy of a result that other ranks may lack, or of the input of a rank that gets no result. */
struct copy {
	struct copy *next, **link;
	unsigned vector;
	size_t first, count; /* elements */
	uint8_t *bytes;
};

struct ledger {
	struct ledger *next, **link; /* in the communicator's list, by number */
	uint64_t number;
	struct wire_call call;
	struct trib_request *request; /* NULL: finished here */
	bool fits, tiny;              /* as in struct trib_request */
	unsigned pending;             /* rounds that a rank may still need something of */
	struct copy *copies;
	uint64_t *have; /* the bits of all vectors */
	unsigned n;
	struct vector vectors[];
};

/* A finished round of a lane whose end is not below the stream's `low` yet. */
struct kept_round {
	struct kept_round *next;
	uint64_t end;
	struct ledger *ledger;
	struct copy *copy; /* NULL: no rank can ask for anything of it */
};

/* NULL: no memory. */
struct ledger *ledger_new(const struct round_spec *specs, size_t n, uint32_t payload);
void ledger_free(struct ledger *ledger);

/* For the functions below, the caller holds the communicator's lock. */

/* Appends the newest ledger to the communicator's list, which owns it then. */
void ledger_append(struct trib_comm *comm, struct ledger *ledger);
/* No rank needs anything of it any more: frees it. */
void ledger_drop(struct trib_comm *comm, struct ledger *ledger);
struct ledger *ledger_find(const struct trib_comm *comm, uint64_t number);
/* The number of the first request that is not finished here; if all are, of the next one. */
uint64_t ledger_first_open(const struct trib_comm *comm);

/* Records the blocks of a round that are done here. */
void ledger_note(struct round *round);

/*
 * The bytes of a part, to be sent: of the result if `result`, else of the input. They come from the
 * user's buffer, or from copies if the request is finished. NULL: no memory.
 */
const uint8_t *ledger_bytes(struct ledger *ledger, unsigned vector, size_t first, size_t count,
                            bool result);

/* The lane's thread: bytes of a finished round that other ranks may still ask for. */
size_t ledger_unsure(const struct lane *lane, const struct round *round);
/* The lane's thread: copies what other ranks may ask for. False: no memory. */
bool ledger_keep(struct lane *lane, struct round *round);
/* The lane's thread: frees what lies below `low`. */
void ledger_forget(struct lane *lane, uint64_t low);
/* The lane ends, and its positions with it. Copies stay with their ledgers. */
void ledger_let_go(struct lane *lane);

static inline size_t vector_element(const struct vector *vector)
{
	return vector->spec.copy ? 1 : trib_type_size(vector->spec.type);
}

#endif
