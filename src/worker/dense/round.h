/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A round: one vector on its way through one lane, as a range of the lane's fragments. Sums of
 * floats come in three parts, everything else in data only:
 *
 *   exponents | specials | data
 *
 * A block is the elements of one data fragment. An exponents fragment carries the classes of its
 * blocks and a flag for each specials fragment of those blocks. Classes and flags have one or two
 * bytes. Exponents travel ahead. With one class a block (ROUND_SCALED), data that leaves before all
 * ranks' exponents are known uses this rank's own class as a guess. If the guess was too low, the
 * data is sent again. So if many blocks of the vector before had another class on another rank, as
 * gradients do, data waits until the classes of all ranks are known. With a class for each
 * sub-block (ROUND_PARTS), it always waits: a guess would be wrong too often. A specials
 * fragment carries NaN and infinities of several blocks. It is sent only if its flag says that some
 * rank has any; otherwise all ranks skip it.
 */
#ifndef TRIB_WORKER_DENSE_ROUND_H
#define TRIB_WORKER_DENSE_ROUND_H

#include "base/bitmap.h"
#include "number/parts.h"
#include "wire/call.h"

#define ROUND_UNKNOWN 0xffffu

enum round_coding {
	ROUND_RAW,    /* bytes as they are */
	ROUND_SCALED, /* floats as fixed point, with exponents and specials */
	ROUND_PARTS,  /* the same with few bits: several integers in a word, a class a sub-block */
	ROUND_KEYS,   /* floats as integers in the same order, for minimum and maximum */
};

/* The part of a request that a round is, for communicators with ledgers (worker/comm/ledger.h). */
struct round_place {
	struct ledger *ledger; /* NULL: none is kept */
	unsigned vector;
	unsigned step;  /* blocks of the vector in each data fragment */
	unsigned split; /* if a block has several data fragments: how many; otherwise 1 */
	size_t block;   /* the first block */
	size_t elements;
};

struct round {
	struct round *next;
	void *owner; /* the request, opaque to this room */

	const uint8_t *source;
	uint8_t *target; /* NULL: the result is not wanted here */
	float *residual; /* gets what rounding takes from the source; NULL: not wanted */
	size_t count;
	trib_type type;
	enum round_coding coding;
	bool average, for_max;
	bool contributes, receives;
	uint8_t element, wire_element; /* bytes of an element, in memory and on the wire */
	uint8_t per_word;              /* ROUND_PARTS: integers in a word */
	uint8_t op, from, to, shape;
	uint8_t kind;          /* the root that the collective has, or WIRE_ALL; slots: see sign */
	uint16_t sign;         /* its signature, in `scale` of fragments that have no class */
	struct wire_call call; /* the collective that the round is a part of */
	uint32_t dither;       /* seed of the vector; 0: round to nearest */
	uint32_t first_block;  /* number of the first block in the vector */
	uint32_t per_fragment; /* elements in a data fragment: a block */
	uint32_t data;
	uint64_t base; /* position of its first fragment, when it is posted */

	/* At first 0, from here on: */
	uint32_t exponents, specials;
	uint32_t finished;                  /* number of finished fragments */
	uint32_t next_exponents, next_data; /* next ones to be sent for the first time */
	uint32_t todo;                      /* number of bits in `again` */
	bool waits;   /* data does not leave before all ranks' exponents are known */
	bool guessed; /* data left before all ranks' exponents were known */
	bool whole; /* a result is taken only together with its special values; set by the owner */
	bool over;  /* the stream has given it up */
	uint64_t held_until;     /* 0: not held */
	struct round *held_next; /* in the lane's list of held rounds */
	uint8_t *masks;          /* results of the specials fragments; NULL: none yet */
	struct early_data *kept; /* results that wait for the special values of their blocks */
	struct round_place place;

	unsigned workers; /* slots: ranks whose vectors are summed */

	uint64_t *have;    /* finished fragments */
	uint64_t *again;   /* fragments to send again */
	uint64_t *wanted;  /* lost results, to be asked for */
	uint64_t *came;    /* results that came too early to be taken */
	uint32_t *sent_at; /* for each fragment: stamp of its last packet */

	/* Of a round in a dense lane; at first 0: */
	uint32_t per_exponents, per_specials; /* blocks in one such fragment */
	uint32_t first_exponents;             /* blocks in the first exponents fragment */
	uint32_t classes_per;                 /* classes of a block: 1, or its sub-blocks */
	uint8_t exponent_op;                  /* of exponent fragments */
	uint8_t exponent_size;                /* bytes of a class, and of a flag */
	uint32_t agreed;                      /* exponents fragments below are finished */
	uint32_t agreed_blocks, missed; /* ROUND_SCALED: blocks whose class is known, and those
	                                   for which this rank's guess would be too low */
	uint16_t *own_class, *sent_class, *top_class; /* for each block, ROUND_SCALED only */
	uint8_t *own_classes, *top_classes;           /* for each sub-block, ROUND_PARTS only */
	uint64_t *data_sent;                          /* for each block, ROUND_PARTS only */
	uint64_t *own_special; /* for each block: this rank has NaN or infinities */
	uint64_t *any_special; /* for each specials fragment: some rank has special values */

	uint64_t few[12]; /* holds the arrays of a round of a few fragments */
};

struct round_spec {
	const void *source;
	void *target;
	float *residual; /* f32: gets what rounding takes from the source; NULL: not wanted */
	size_t count;
	size_t first; /* of a part of a vector: its first element */
	trib_type type;
	trib_op op;
	uint32_t piece;   /* copy: bytes in a data fragment; 0: as many as fit */
	uint32_t dither;  /* floats: the vector's seed, see number/parts.h; 0: round to nearest */
	bool copy;        /* no arithmetic: the bytes of one rank */
	uint8_t per_word; /* floats: integers in a word, see number/parts.h; 0: one class a block */
	uint8_t from, to;
	/* The vector fits slots, see round_is_small(): the number of ranks. Its blocks leave room
	 * for their special values. 0: it does not fit. */
	uint8_t small;
	bool slot; /* the round is for a slot lane: data fragments only, see worker/slot */
	bool ring; /* the round goes around a ring: no rank but the root gets a small result */
	struct wire_call call; /* the collective; WIRE_CALL_NONE: a round of the library's own */
	uint32_t signature;    /* of `call`; 0: round_new() computes it */
	uint32_t block;        /* round_spec_block(), if it is known; 0: round_new() computes it */
	void *owner;
};

/*
 * A round in the memory of another one that is over, and was cleared; NULL: in new memory. It takes
 * that memory over. NULL: no memory.
 */
struct round *round_renew(struct round *old, const struct round_spec *spec, unsigned child,
                          unsigned payload);
static inline struct round *round_new(const struct round_spec *spec, unsigned child,
                                      unsigned payload)
{
	return round_renew(NULL, spec, child, payload);
}
/* Frees all but the round itself. */
void round_clear(struct round *round);
void round_free(struct round *round);

/* Takes the first round off a list; NULL: the list is empty. */
static inline struct round *round_pop(struct round **list)
{
	struct round *first = *list;

	if (first)
		*list = first->next;
	return first;
}

static inline uint32_t round_fragments(const struct round *round)
{
	return round->exponents + round->specials + round->data;
}

/* The number of a block's elements; *first: the first one. */
static inline size_t round_block(const struct round *round, uint32_t block, size_t *first)
{
	*first = (size_t)block * round->per_fragment;
	return round->count - *first < round->per_fragment ? round->count - *first
	                                                   : round->per_fragment;
}

/*
 * round_spec.per_word for a sum of floats; it may depend only on what is the same on all ranks.
 * `bits` is the width of an element on the wire that the user asked for; 0: by the type. A small
 * vector gets 0, because agreeing on many classes takes longer than its bytes.
 */
uint8_t round_per_word(trib_type type, size_t count, unsigned workers, unsigned bits);

/*
 * Is a vector small enough for slots? It may depend only on what is the same on all ranks. Blocks
 * of a small sum of floats are the same whichever lane carries it, and so are the bits of the sum.
 */
bool round_is_small(size_t bytes);

/*
 * Special values in slots: two counts for each element, in words of 64 bits that are added. A count
 * has the bits that `ranks` need.
 */
static inline unsigned round_count_bits(unsigned ranks)
{
	return 32 - (unsigned)__builtin_clz(ranks);
}

/* Elements whose counts share a word. */
static inline unsigned round_counts_per(unsigned ranks)
{
	return 32 / round_count_bits(ranks);
}

/* Is a sum without error feedback rounded by chance? With 8 bits for a longer type. */
static inline bool round_is_by_chance(trib_type type, unsigned per_word)
{
	return per_word == 8 && trib_type_size(type) > 1;
}

/* Elements of a data fragment with this payload. */
size_t round_spec_block(const struct round_spec *spec, unsigned payload);

/* The blocks that the first n exponents fragments cover. It may exceed `data`. */
static inline uint64_t round_covered(const struct round *round, uint32_t n)
{
	return n ? round->first_exponents + (uint64_t)round->per_exponents * (n - 1) : 0;
}

/* Blocks whose exponents have left. */
static inline uint64_t round_scanned(const struct round *round)
{
	return round_covered(round, round->next_exponents);
}

/* Blocks whose data may leave, but for those that wait for special values. */
static inline uint64_t round_ready(const struct round *round)
{
	return round->waits ? round_covered(round, round->agreed) : round_scanned(round);
}

/* Writes a fragment's payload and the header's op, from, to and scale. Gives the bytes. */
uint32_t round_build(struct round *round, uint32_t index, unsigned workers,
                     struct wire_header *header, void *payload);

/* The payload bytes of a fragment on the wire. */
uint32_t round_bytes(const struct round *round, uint32_t index);
/* Does the result fit what was called here? If not, ranks have called different collectives. */
bool round_fits(const struct round *round, uint32_t index, const struct wire_header *header,
                uint32_t bytes);

/*
 * Takes the result of an unfinished fragment. Other fragments may become finished by it, or be
 * marked to be sent (again). False: no memory.
 */
bool round_take(struct round *round, uint32_t index, unsigned workers, uint16_t scale,
                const void *payload);

/* May the result be taken now? False: only when the special values are here. */
bool round_may_take(const struct round *round, uint32_t index);
/* Keeps a result that may not be taken yet: a reliable path brings it only once. False: no memory.
 */
bool round_keep(struct round *round, uint32_t index, uint16_t scale, const void *payload);

/* May a fragment leave now? Data waits for its exponents to leave, and for specials. */
bool round_may_send(const struct round *round, uint32_t index);

/* Has the fragment been sent? */
bool round_was_sent(const struct round *round, uint32_t index);

/* Is the class of all ranks known? */
bool round_is_settled(const struct round *round, uint32_t index);
/* Was the fragment last sent with the class of all ranks? */
bool round_is_final(const struct round *round, uint32_t index);

/* All ranks need the exponents, whichever want the sum. */
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
