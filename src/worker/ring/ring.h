/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring: collectives without an aggregator. Ranks stand in a circle, and each one sends to the next
 * rank only. Pure: it makes and takes messages, and never sends one.
 *
 * A vector is a round (dense/round.h), as on the way through an aggregator, so a sum has the same
 * bits on both ways. A message carries neighbouring fragments of a round, a *piece*. A piece starts
 * at one rank. Every rank adds its own fragments and passes the piece on; the last rank has the sum
 * and passes it on as a result, until all ranks have it. Pieces of a vector start at all ranks in
 * turn, so every link is busy in every moment. A reduce starts behind its root and ends there; a
 * broadcast is only the second half.
 *
 *   rank 0          rank 1          rank 2          rank 3
 *   starts piece 0  adds            adds            adds: the sum
 *   takes it        takes it        takes it      < passes on the result
 *
 * No rank starts a large piece before all ranks have posted the round: the others could not add
 * theirs, and would have to keep it. They know that all have posted when they know the classes of
 * all ranks. A round without classes has a token of its own for it; a small one starts at once.
 *
 * Messages from one rank to the next arrive in order, once and intact: path/channel.
 *
 * The room owns the order of pieces and the form of messages. It must not touch sockets, clocks,
 * threads, or any other room of the worker but dense.
 */
#ifndef TRIB_WORKER_RING_RING_H
#define TRIB_WORKER_RING_RING_H

#include "base/status.h"
#include "worker/dense/round.h"

#define RING_MESSAGE_MAX 50000u /* bytes of a message: a chunk of path/channel */
#define RING_EAGER 262144u      /* bytes of a round that starts before all ranks have posted it */
#define RING_VERSION 2u
#define RING_PAST 64u /* past calls that are compared with those of other ranks */

enum ring_phase {
	RING_POSTED = 1, /* all ranks so far have posted the round */
	RING_ALL_POSTED, /* all ranks have */
	RING_SUM,        /* fragments, summed over the ranks so far */
	RING_RESULT,     /* fragments, final */
	RING_STATE,      /* how many rounds each rank has posted, and what the sender waits for; it
	                    comes back to its sender */
	RING_ABORT,      /* a rank has failed: ranks/ring_thread.c */
};

/* The head of a message, little-endian. The payloads of its fragments follow. */
struct ring_head {
	uint8_t version, phase;
	uint16_t hops;           /* ranks that have added theirs; of a result: that have it */
	uint32_t number;         /* of the round: ranks count the rounds that they post */
	uint32_t first;          /* the first fragment */
	uint16_t fragments;      /* 0: of RING_POSTED and RING_ALL_POSTED */
	uint8_t op, kind, to;    /* as in struct round; they have to be the same on all ranks */
	uint8_t type;            /* trib_type of the elements */
	uint8_t per_word, shape; /* as in struct round */
	uint32_t payload;        /* bytes of a full fragment */
	uint64_t count;          /* elements of the vector */
	struct wire_call call;   /* the collective that the round is a part of */
};

_Static_assert(sizeof(struct ring_head) == 56, "no holes");

/* A round on its way around the ring. */
struct ring_round {
	struct ring_round *next;
	struct round *round;
	uint32_t number;
	bool all_posted;       /* all ranks have posted it */
	bool token_sent;       /* RING_POSTED has left; rank 0 alone */
	uint32_t per_piece;    /* data fragments of a piece */
	uint32_t next_piece;   /* the next piece that may start here */
	uint32_t next_special; /* the next specials fragment that may start here */
};

struct ring {
	unsigned rank, size;
	uint32_t payload;
	uint32_t posted; /* rounds posted here, ever */
	struct ring_round *first, **end;
	struct wire_call past[RING_PAST]; /* the last calls, by their numbers */
	uint64_t late; /* bits of ranks that have not posted the first round, as last heard */
	void (*on_finished)(void *context, struct round *round); /* takes the round over */
	void *context;
};

/* What becomes of a message that has come. */
enum ring_verdict {
	RING_USED,    /* it ends here */
	RING_PASS_ON, /* it has been changed, and goes to the next rank */
	RING_LATER,   /* its round is not posted here yet: ring_take again after ring_post */
	RING_WRONG,   /* see the error's sentence */
};

/* `size` is at least 2. */
void ring_init(struct ring *ring, unsigned rank, unsigned size, uint32_t payload);
/* Frees all rounds. */
void ring_clear(struct ring *ring);
static inline bool ring_is_idle(const struct ring *ring)
{
	return !ring->first;
}

/* Takes the round over. False: no memory, and the caller keeps it. */
bool ring_post(struct ring *ring, struct round *round);

/* Writes the next message that starts here, at most RING_MESSAGE_MAX bytes or one fragment. Gives
 * its bytes; 0: there is none now. The memory is 8-byte aligned. */
uint32_t ring_start(struct ring *ring, void *message);

/* Writes a question to all ranks: have they posted the first unfinished round? Gives its bytes. The
 * answer is in `late`. */
uint32_t ring_ask(const struct ring *ring, void *message);

/* Takes a message of the previous rank. The memory is 8-byte aligned. RING_WRONG sets *status. */
enum ring_verdict ring_take(struct ring *ring, void *message, uint32_t bytes, trib_status *status);

/* The bytes of the longest message. */
static inline uint32_t ring_message_max(const struct ring *ring)
{
	uint32_t one = (uint32_t)sizeof(struct ring_head) + ring->payload + 8;

	return one > RING_MESSAGE_MAX ? one : RING_MESSAGE_MAX;
}

#endif
