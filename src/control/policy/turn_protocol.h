/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol by which jobs use a shared aggregator one after the other, at most as many at a time
 * as its capacity. A pure state machine; the rank's side is worker/turns/turn.h.
 *
 * A turn is a range of a communicator's request numbers. All ranks agree on it in two phases (MINA
 * IV-B):
 *
 *   PREPARE from, to   The controller picks a range slightly ahead of the job and asks every rank
 *                      to hold request `from`. A rank that has not begun it promises to wait for
 *                      the decision. Earlier requests go on.
 *   COMMIT or ABORT    COMMIT if all ranks have promised. ABORT if a rank has passed `from`, or
 *                      does not answer within TURNS_ASK_NS (100 ms).
 *
 * If the range begins slightly ahead, no rank stops, and ranks need not be equally far.
 *
 * A turn ends by itself, when all ranks have reported that the requests of the range are over. One
 * report is not enough: the sender of a reduce is done before the others have begun. Only then may
 * another communicator have the turn. A turn is cut short by another agreement, on an empty range
 * that begins where the turn is to end. An idle job can lose its whole turn in this way.
 *
 * Every message carries the sender's full state and a serial number, so loss, duplication and delay
 * are harmless. A restarted controller grants nothing until it has heard all ranks. If one rank has
 * set a change, the change was committed; if no rank has, it was not.
 *
 * If a communicator is lost while it holds a turn, it is fenced first: its aggregator ends it and
 * confirms that. So two communicators never hold one turn, whatever the network cuts off.
 *
 * A communicator that migrates to another aggregator gives up its turn first (turns_release). Its
 * share at the other one is made only then. No job holds one turn while it waits for another, so
 * there is no deadlock. Ranks join the new star while requests use their own trees
 * (worker/turns/star.h). The share gets no turn before all ranks have joined.
 *
 * Invariants:
 *   - At most `capacity` shares are held.
 *   - All ranks of a communicator know the same way for a request when they begin it.
 *   - A share is held as long as one of its requests can be in flight at the aggregator.
 */
#ifndef TRIB_CONTROL_POLICY_TURN_PROTOCOL_H
#define TRIB_CONTROL_POLICY_TURN_PROTOCOL_H

#include "wire/packet.h"

#include <stdbool.h>

/* 100 ms: a rank that does not answer within makes a change fail */
#define TURNS_ASK_NS 100000000ull
#define TURNS_LEASE_NS 500000000ull /* 500 ms: the shortest lease */
#define TURNS_AGAIN_NS 4000000ull   /* 4 ms: an unanswered message is repeated */

enum turns_step {
	TURNS_IDLE,
	TURNS_ASKING,  /* PREPARE is sent: the change is undecided */
	TURNS_SETTING, /* COMMIT is sent: not all ranks have confirmed it */
};

struct turns_rank {
	uint64_t serial, change, next;
	uint64_t to; /* end of the last range that it has set */
	uint64_t heard_at, told_at;
	enum wire_turn_phase phase;
	bool done, heard;
	bool silent; /* it has not answered since it was last asked */
};

/* A communicator's share in an aggregator. */
struct turns_share {
	struct turns_share *next; /* share of the same aggregator */
	unsigned ranks;
	bool known; /* this run of the controller has heard all ranks */
	uint64_t session;
	enum turns_step step;
	uint64_t change;   /* number of the newest change */
	uint64_t from, to; /* range of the newest change */
	uint64_t asked_at;
	uint64_t held_change; /* the newest committed change */
	uint64_t held_to;     /* end of the turn: the first request after it */
	bool held;            /* it has a turn, or is being asked to take one */
	bool was_held;        /* value of `held` before the undecided change */
	bool lost;            /* it ends; if held, it is being fenced */
	bool leaving;         /* it gets no more turns: the communicator migrates */
	unsigned refused;     /* consecutive failed attempts to end its turn */
	uint64_t joining;     /* ranks that have not joined its star yet, as bits */
	/* The communicator's previous share, at any aggregator; NULL: it is gone. */
	const struct turns_share *before;
	struct turns_rank rank[WIRE_CHILDREN_MAX];
};

/* A shared aggregator. */
struct turns {
	unsigned capacity;
	struct turns_share *shares;
};

/*
 * Adds a share of `ranks` ranks. `restored`: an earlier run of the controller may have granted it a
 * turn. What its ranks said to that run does not count.
 */
void turns_add(struct turns *turns, struct turns_share *share, unsigned ranks, uint64_t session,
               bool restored, uint64_t now);
/* Removes a share that is not held. */
void turns_remove(struct turns *turns, struct turns_share *share);

unsigned turns_holders(const struct turns *turns);
/*
 * Can a change be started? No change is in progress, and all ranks have spoken since the last one
 * began, so a silent rank delays others only once.
 */
bool turns_is_open(const struct turns_share *share);
/* May the share be granted a turn now, or an extension? */
bool turns_may_give(const struct turns *turns, const struct turns_share *share);
/* The first request that no rank has begun, as far as known. */
uint64_t turns_next(const struct turns_share *share);

/* Starts a change: requests [from, to) become its turn if all agree. Needs turns_may_give. */
void turns_give(struct turns_share *share, uint64_t from, uint64_t to, uint64_t now);
/* Starts a change: its turn ends before request `from`. It is held and has no change. */
void turns_cut(struct turns_share *share, uint64_t from, uint64_t now);

/*
 * Makes the share give up its turn, and get no more: call it until turns_is_free. Requests in
 * flight are finished. The range ends sooner if ranks agree. `idle`: ranks are idle, so the turn
 * can end where they are; else it ends slightly ahead of them.
 */
void turns_release(struct turns_share *share, bool idle, uint64_t now);
/* It holds nothing, has no change in progress and is not lost. */
bool turns_is_free(const struct turns_share *share);
/* Have all ranks spoken and joined its star? */
bool turns_is_joined(const struct turns_share *share);
/* Its star is new: it gets no turn before all ranks report that they have joined. */
void turns_await(struct turns_share *share);

/* Takes a rank's message. False: it was older than what is known. */
bool turns_hear(struct turns_share *share, unsigned rank, const struct wire_turn *state,
                uint64_t now);
/* Aborts a change that is not answered in time, and loses a share with a rank that is silent for
 * longer than the lease. */
void turns_tick(struct turns_share *share, uint64_t now, uint64_t lease_ns);
/* Its communicator has ended, or has a new plan. */
void turns_lose(struct turns_share *share);
/* The aggregator confirms the fence: no request is in flight there. */
void turns_fenced(struct turns_share *share);

/*
 * After its share was lost: does this rank's state show that no turn is left? The rank agreed to
 * each committed change beforehand, so a message newer than the loss knows of all of them.
 */
static inline bool turns_is_off(const struct wire_turn *state)
{
	return state->flags & WIRE_TURN_ASTRAY ||
	       (state->flags & WIRE_TURN_DONE && state->phase != WIRE_TURN_ASKED);
}

/* The message that this rank has to get now; false: none. */
bool turns_say(const struct turns_share *share, unsigned rank, struct wire_turn *out);

#endif
