/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns: jobs that share an aggregator use it one after the other, at most so
 * many at a time as it has capacity for. A pure machine; a rank's part is
 * worker/turn.h.
 *
 * A turn is a range of a communicator's request numbers. It is given by a
 * change on which all ranks agree in two phases (MINA IV-B):
 *
 *   PREPARE from, to   A rank that has not begun request `from` yet agrees, and
 *                      will not begin it before it knows. Requests below go on.
 *   COMMIT or ABORT    when all have agreed; or when one has not, or is silent.
 *
 * Nobody is stopped where the range begins a little ahead, and nothing has to
 * be aborted because ranks are not equally far. A turn ends by itself: when all
 * ranks have said that the requests of the range are over. One is not enough: who
 * only gives something, as for a reduce to another, is done when the others may
 * not have begun. Then, and not before, another communicator may have it. What was
 * given can be cut short by another change, of no request, which begins where ranges
 * are to end: anywhere ahead of ranks, so one that does nothing can lose all of it.
 *
 * What is said is always all: a rank tells its whole state, with a serial; what
 * a rank is told follows from that and from the state here. So words may be
 * lost, come twice or late, and a controller that is started again asks nobody:
 * it gives nothing until it has heard of all. A change that one rank has set is
 * committed, one that none has is not: what it had decided is with the ranks.
 *
 * A communicator that is lost while it has a turn is fenced first: its
 * aggregator ends it, and says so. So a turn is never with two, whoever is cut
 * off from whom.
 *
 * A communicator that goes to another aggregator gives up its turn first
 * (turns_release), and only when that is over is its share there made. So nobody
 * holds one and waits for another, and there is no circle to wait in. Ranks join
 * the new star while requests go their own way (worker/star.h); the share gets no
 * turn before all of them have, and the first one is agreed on as any other is.
 *
 * Invariants: at most `capacity` shares are held; of each request all ranks of
 * a communicator know the same when they begin it; a share is held as long as
 * one of its requests can be under way at the aggregator.
 */
#ifndef TRIB_CONTROL_TURNS_H
#define TRIB_CONTROL_TURNS_H

#include "wire/packet.h"

#include <stdbool.h>

#define TURNS_ASK_NS 100000000ull   /* a rank that does not answer within stops a change */
#define TURNS_LEASE_NS 500000000ull /* one that is silent for longer loses the turn */
#define TURNS_AGAIN_NS 4000000ull   /* what is not answered is said again */
#define TURNS_BEAT_MS 100           /* a rank speaks so often at least */

enum turns_step {
	TURNS_REST,
	TURNS_ASKING,  /* a change is undecided */
	TURNS_SETTING, /* it is committed, and not all are known to know */
};

struct turns_rank {
	uint64_t serial, change, next;
	uint64_t to; /* the range that it has set last ends there */
	uint64_t heard_at, told_at;
	enum wire_turn_phase phase;
	bool done, heard;
	bool silent; /* since it was asked last */
};

/* A communicator's share in an aggregator. */
struct turns_share {
	struct turns_share *next; /* of the same aggregator */
	unsigned ranks;
	bool known; /* all ranks have spoken to this session of the controller's */
	uint64_t session;
	enum turns_step step;
	uint64_t change;   /* the newest one */
	uint64_t from, to; /* of it */
	uint64_t asked_at;
	uint64_t held_change; /* the newest one that was committed */
	uint64_t held_to;     /* requests from there on are not its turn */
	bool held;            /* it counts: it has a turn, or is being asked whether it takes one */
	bool was_held;        /* before the change that is undecided */
	bool lost;            /* it ends; where it is held, it is being fenced */
	bool leaving;         /* it gets no turn any more: the communicator goes elsewhere */
	unsigned refused;     /* times in a row that ranks were too far for the end of its turn */
	uint64_t joining;     /* ranks that are not in its star yet, as bits */
	/* The one that the communicator had before, at whichever aggregator; NULL: it is gone. */
	const struct turns_share *before;
	struct turns_rank rank[WIRE_CHILDREN_MAX];
};

/* An aggregator that is shared. */
struct turns {
	unsigned capacity;
	struct turns_share *shares;
};

/*
 * A share of so many ranks. `restored`: these ranks may have been given a turn
 * by a controller that ran before; what they have said to that one, and what may
 * be on its way for long, does not count.
 */
void turns_add(struct turns *turns, struct turns_share *share, unsigned ranks, uint64_t session,
               bool restored, uint64_t now);
/* Takes it out; it is not held. */
void turns_remove(struct turns *turns, struct turns_share *share);

unsigned turns_holders(const struct turns *turns);
/*
 * Could this one be asked now? No change of it is under way, and all have spoken
 * since the last one began: who is silent is not waited for twice.
 */
bool turns_is_open(const struct turns_share *share);
/* May this one be given a turn now, or more of the one it has? */
bool turns_may_give(const struct turns *turns, const struct turns_share *share);
/* The first request that no rank has begun, as far as is known. */
uint64_t turns_next(const struct turns_share *share);

/* Begins a change: these requests are its turn, if all agree. turns_may_give holds. */
void turns_give(struct turns_share *share, uint64_t from, uint64_t to, uint64_t now);
/* ... it ends with request `from` - 1, where it is held and no change is under way. */
void turns_cut(struct turns_share *share, uint64_t from, uint64_t now);

/*
 * It gives up its turn, and gets none any more: to be called until turns_is_free.
 * What is under way there comes to its end; where ranks agree the range ends sooner.
 * `idle`: they do nothing, so it can end where they are; else a little ahead of them.
 */
void turns_release(struct turns_share *share, bool idle, uint64_t now);
/* Nothing is held, nothing is undecided, and it is not lost: what it had is over at all ranks. */
bool turns_is_free(const struct turns_share *share);
/* Have all ranks spoken, and are in its star? */
bool turns_is_joined(const struct turns_share *share);
/* Its star is another one than ranks are in: it gets no turn before all say that they are. */
void turns_await(struct turns_share *share);

/* A rank has spoken. False: that was older than what is known. */
bool turns_hear(struct turns_share *share, unsigned rank, const struct wire_turn *state,
                uint64_t now);
/* Ends a change that nobody answers, and a share that a rank is lost of. */
void turns_tick(struct turns_share *share, uint64_t now);
/* Its communicator has ended, or has other trees. */
void turns_lose(struct turns_share *share);
/* The aggregator has ended it: nothing of it is under way there. */
void turns_fenced(struct turns_share *share);

/*
 * Is nothing left of turns at the rank that says this, after its share was lost?
 * A change that was committed is one to which it has agreed before, so a word that
 * is newer than those that were heard by then knows of it.
 */
static inline bool turns_is_off(const struct wire_turn *state)
{
	return state->flags & WIRE_TURN_ASTRAY ||
	       (state->flags & WIRE_TURN_DONE && state->phase != WIRE_TURN_ASKED);
}

/* What this rank is to be told; false: nothing. */
bool turns_say(const struct turns_share *share, unsigned rank, struct wire_turn *out);

#endif
