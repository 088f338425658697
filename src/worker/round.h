/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A round: one vector on its way through one lane, as a range of the lane's
 * fragments. Sums of floats come in three parts:
 *
 *   exponents | specials | data
 *
 * Exponent fragments carry a class for each block (a block is the elements of one data fragment)
 * and a flag for each specials fragment of those blocks, a byte each or two, and travel ahead. Data
 * that leaves before everyone's exponents are known is sent on the guess of one's own: if that
 * was too low it is sent again, which costs no more than waiting would. A specials fragment
 * carries NaN and infinities of several blocks, and is sent only where its flag
 * says that somebody has any; else everyone skips it. All else is data only.
 */
#ifndef TRIB_WORKER_ROUND_H
#define TRIB_WORKER_ROUND_H

#include "base/bitmap.h"
#include "number/number.h"
#include "wire/packet.h"

#define ROUND_UNKNOWN 0xffffu

enum round_coding {
	ROUND_RAW,    /* bytes as they are */
	ROUND_SCALED, /* fixed point: exponents and specials go with it */
	ROUND_KEYS,   /* floats in the order of integers */
};

/* Which part of which request it is, where that has to be known; see worker/ledger.h. */
struct round_place {
	struct ledger *ledger; /* NULL: it has not */
	unsigned vector;
	unsigned step; /* blocks of the vector in a data fragment */
	size_t block;  /* the first one */
	size_t elements;
};

struct round {
	struct round *next;
	void *owner; /* for whoever posted it */
	struct round_place place;
	struct round *held_next; /* of a lane's held ones */
	uint64_t held_until;     /* 0: it is not */
	bool over;               /* the stream has no use for it any more */

	const uint8_t *source;
	uint8_t *target; /* NULL: the result is not wanted here */
	size_t count;
	trib_type type;
	enum round_coding coding;
	bool average, for_max;
	bool contributes, receives;
	bool guessed; /* data left before everyone's exponents were known */
	bool whole;   /* a block is taken with its special values or not at all; set by the owner */
	uint8_t op, from, to, shape;
	uint8_t exponent_op;   /* of exponent fragments */
	uint8_t exponent_size; /* bytes of a class, and of a flag */

	uint64_t base; /* position of its first fragment */
	uint32_t exponents, specials, data;
	uint32_t per_fragment;                /* elements in a data fragment: a block */
	uint32_t per_exponents, per_specials; /* blocks in such a fragment */
	uint32_t first_exponents;             /* and in the first of exponents: no more */

	uint32_t finished;                  /* fragments that need nothing more */
	uint32_t next_exponents, next_data; /* not yet sent for the first time */
	uint32_t todo;                      /* bits set in again[] */
	uint64_t *have;                     /* fragments that need nothing more */
	uint64_t *again;                    /* fragments to send again */
	uint64_t *wanted;                   /* results that were lost, to be asked for */
	uint64_t *came;                     /* results that came before they could be taken */
	uint32_t *sent_at;                  /* per fragment, as a stamp: when it last left */
	uint16_t *own_class, *sent_class, *top_class; /* per block, ROUND_SCALED only */
	uint64_t *own_special;                        /* per block: it has NaN or infinities */
	uint64_t *any_special;   /* per specials fragment: somebody has, as exponents have told */
	uint8_t *masks;          /* results of the specials fragments, once there are any */
	struct early_data *kept; /* results that came before the special values of their blocks */
};

struct round_spec {
	const void *source;
	void *target;
	size_t count;
	trib_type type;
	trib_op op;
	bool copy; /* no arithmetic: one child's bytes */
	uint8_t from, to;
	void *owner;
};

/* NULL when out of memory. */
struct round *round_new(const struct round_spec *spec, unsigned child, unsigned payload);
void round_free(struct round *round);

static inline uint32_t round_fragments(const struct round *round)
{
	return round->exponents + round->specials + round->data;
}

/* Elements, and where they start, of block `block`. */
static inline size_t round_block(const struct round *round, uint32_t block, size_t *first)
{
	*first = (size_t)block * round->per_fragment;
	return round->count - *first < round->per_fragment ? round->count - *first
	                                                   : round->per_fragment;
}

/* Blocks, or more, whose exponents have left: their data may. */
static inline uint64_t round_scanned(const struct round *round)
{
	return round->next_exponents ? round->first_exponents + (uint64_t)round->per_exponents *
	                                                                (round->next_exponents - 1)
	                             : 0;
}

/* Writes fragment `index`'s payload and the header's op, from, to and scale; gives the bytes. */
uint32_t round_build(struct round *round, uint32_t index, unsigned workers,
                     struct wire_header *header, void *payload);

/* The bytes that fragment `index` has on the wire. */
uint32_t round_bytes(const struct round *round, uint32_t index);
/* Is this a result of what was called here? Else ranks have called different collectives. */
bool round_fits(const struct round *round, uint32_t index, const struct wire_header *header,
                uint32_t bytes);

/*
 * Takes the result of a fragment that was not there yet. Other fragments may
 * become finished or be marked to be sent (again) by it. False: no memory.
 */
bool round_take(struct round *round, uint32_t index, unsigned workers, uint16_t scale,
                const void *payload);

/* May its result be taken, or only when the special values are here? */
bool round_may_take(const struct round *round, uint32_t index);
/* Keeps a result that may not be taken yet, for a path that brings it once only. False: no memory.
 */
bool round_keep(struct round *round, uint32_t index, uint16_t scale, const void *payload);

/* May a fragment leave now? Data waits for its own exponents to be out, and for specials. */
bool round_may_send(const struct round *round, uint32_t index);

/* Has the fragment left before, so that it can be lost? */
bool round_was_sent(const struct round *round, uint32_t index);

/* Is everyone's exponent known, so that a fragment sent with it needs no other one? */
bool round_is_settled(const struct round *round, uint32_t index);
bool round_is_final(const struct round *round, uint32_t index);

/* Exponents have to come back to everyone, whoever wants the sum. */
static inline bool round_wants(const struct round *round, uint32_t index)
{
	return round->receives || index < round->exponents;
}

static inline void round_finish(struct round *round, uint32_t index)
{
	if (!bitmap_get(round->have, index)) {
		bitmap_set(round->have, index);
		round->finished++;
	}
	if (bitmap_get(round->again, index)) {
		bitmap_clear(round->again, index);
		round->todo--;
	}
}

static inline void round_repeat(struct round *round, uint32_t index)
{
	if (round->contributes && !bitmap_get(round->have, index) &&
	    !bitmap_get(round->again, index)) {
		bitmap_set(round->again, index);
		round->todo++;
	}
}

#endif
