/* SPDX-License-Identifier: Apache-2.0 */
#include "control/policy/turn_protocol.h"

#include <string.h>

#define REFUSED_MOST 10u /* a turn is cut at most 2^10 requests ahead of ranks */

void turns_add(struct turns *turns, struct turns_share *share, unsigned ranks, uint64_t session,
               bool restored, uint64_t now)
{
	memset(share, 0, sizeof(*share));
	share->session = session;
	share->ranks = ranks;
	share->known = !restored;
	for (unsigned i = 0; i < ranks; i++)
		share->rank[i].heard_at = now;
	share->next = turns->shares;
	turns->shares = share;
}

void turns_remove(struct turns *turns, struct turns_share *share)
{
	struct turns_share **at = &turns->shares;

	while (*at && *at != share)
		at = &(*at)->next;
	if (*at)
		*at = share->next;
}

unsigned turns_holders(const struct turns *turns)
{
	unsigned n = 0;

	for (const struct turns_share *share = turns->shares; share; share = share->next)
		n += share->held;
	return n;
}

bool turns_is_open(const struct turns_share *share)
{
	for (unsigned i = 0; i < share->ranks; i++)
		if (share->rank[i].silent)
			return false;
	return !share->lost && share->known && share->step == TURNS_IDLE && !share->leaving &&
	       !share->joining;
}

bool turns_may_give(const struct turns *turns, const struct turns_share *share)
{
	if (!turns_is_open(share))
		return false;
	if (share->before && share->before->held)
		return false;
	/* A share that is not known yet may hold a turn. */
	for (const struct turns_share *other = turns->shares; other; other = other->next)
		if (!other->known)
			return false;
	return share->held || turns_holders(turns) < turns->capacity;
}

uint64_t turns_next(const struct turns_share *share)
{
	uint64_t next = 0;

	for (unsigned i = 0; i < share->ranks; i++)
		if (share->rank[i].next > next)
			next = share->rank[i].next;
	return next;
}

/* ---- changes ---- */

static void begin(struct turns_share *share, uint64_t from, uint64_t to, uint64_t now)
{
	share->step = TURNS_ASKING;
	share->change++;
	share->from = from;
	share->to = to;
	share->asked_at = now;
	share->was_held = share->held;
	share->held = true;
	for (unsigned i = 0; i < share->ranks; i++) {
		share->rank[i].told_at = 0;
		share->rank[i].silent = true;
	}
}

void turns_give(struct turns_share *share, uint64_t from, uint64_t to, uint64_t now)
{
	begin(share, from, to, now);
}

void turns_cut(struct turns_share *share, uint64_t from, uint64_t now)
{
	begin(share, from, from, now);
}

void turns_release(struct turns_share *share, bool idle, uint64_t now)
{
	uint64_t next = turns_next(share), from;

	if (!share->leaving)
		share->refused = 0;
	share->leaving = true;
	from = next + (1ull << share->refused) - idle;
	/* Idle ranks never reach the end of the range by themselves. */
	if (idle && from >= share->held_to)
		from = next;
	if (share->held && share->step == TURNS_IDLE && !share->lost && share->known &&
	    from < share->held_to)
		turns_cut(share, from, now);
}

bool turns_is_free(const struct turns_share *share)
{
	return !share->held && !share->lost && share->known && share->step == TURNS_IDLE;
}

bool turns_is_joined(const struct turns_share *share)
{
	for (unsigned i = 0; i < share->ranks; i++)
		if (!share->rank[i].heard)
			return false;
	return share->known && !share->joining;
}

void turns_await(struct turns_share *share)
{
	share->joining = share->ranks < 64 ? (1ull << share->ranks) - 1 : ~0ull;
}

/* Has the rank reported that all committed requests are over? */
static bool is_done(const struct turns_share *share, const struct turns_rank *rank)
{
	if (!rank->done || rank->change < share->held_change)
		return false;
	/* A change starts only after all ranks have set the previous one. */
	return rank->change > share->held_change || rank->phase == WIRE_TURN_SET ||
	       !share->held_change;
}

static void check_done(struct turns_share *share)
{
	if (!share->held || share->step == TURNS_ASKING)
		return;
	for (unsigned i = 0; i < share->ranks; i++)
		if (!is_done(share, &share->rank[i]))
			return;
	share->held = false;
}

static void drop(struct turns_share *share)
{
	share->step = TURNS_IDLE;
	share->held = share->was_held;
	share->refused += share->refused < REFUSED_MOST;
	for (unsigned i = 0; i < share->ranks; i++)
		share->rank[i].told_at = 0;
	check_done(share);
}

/* Counts ranks that are at this phase of the newest change. */
static unsigned count(const struct turns_share *share, enum wire_turn_phase phase)
{
	unsigned n = 0;

	for (unsigned i = 0; i < share->ranks; i++)
		n += share->rank[i].change == share->change && share->rank[i].phase == phase;
	return n;
}

static void decide(struct turns_share *share)
{
	if (share->step == TURNS_ASKING && count(share, WIRE_TURN_DROPPED))
		drop(share);
	if (share->step == TURNS_ASKING && count(share, WIRE_TURN_ASKED) == share->ranks) {
		share->step = TURNS_SETTING;
		share->held_change = share->change;
		share->held_to = share->to;
		share->refused = 0;
		for (unsigned i = 0; i < share->ranks; i++)
			share->rank[i].told_at = 0;
	}
	if (share->step == TURNS_SETTING && count(share, WIRE_TURN_SET) == share->ranks)
		share->step = TURNS_IDLE;
	check_done(share);
}

/* After a restart: a change that one rank has set was committed, any other was not. */
static void try_know(struct turns_share *share)
{
	bool done = true;

	for (unsigned i = 0; i < share->ranks; i++)
		if (!share->rank[i].heard)
			return;
	for (unsigned i = 0; i < share->ranks; i++)
		if (share->rank[i].change > share->change)
			share->change = share->rank[i].change;
	share->known = true;
	/* A rank that has not set the newest change may report too much; a cut is repeated then. */
	for (unsigned i = 0; i < share->ranks; i++)
		if (share->rank[i].to > share->held_to)
			share->held_to = share->rank[i].to;
	if (share->change && count(share, WIRE_TURN_SET)) {
		share->held_change = share->change;
		share->step = TURNS_SETTING;
		share->held = true;
		decide(share);
		return;
	}
	/* All ranks have set every committed change. */
	for (unsigned i = 0; i < share->ranks; i++)
		done &= share->rank[i].done;
	share->held = !done;
}

/* ---- messages ---- */

bool turns_hear(struct turns_share *share, unsigned rank, const struct wire_turn *state,
                uint64_t now)
{
	struct turns_rank *it = rank < share->ranks ? &share->rank[rank] : NULL;

	if (!it || (it->heard && state->serial < it->serial) ||
	    (!share->known && state->session != share->session))
		return false;
	it->heard_at = now;
	if (it->heard && state->serial == it->serial)
		return false;
	it->heard = true;
	it->silent = false;
	it->serial = state->serial;
	it->change = state->change;
	it->phase = (enum wire_turn_phase)state->phase;
	it->next = state->next;
	it->to = state->to;
	it->done = state->flags & WIRE_TURN_DONE;
	it->told_at = 0;
	share->joining &= ~(1ull << rank);
	if (state->flags & (WIRE_TURN_JOINING | WIRE_TURN_ASTRAY))
		share->joining |= 1ull << rank;
	if (state->flags & (WIRE_TURN_FAILED | WIRE_TURN_ASTRAY))
		turns_lose(share);
	else if (!share->known)
		try_know(share);
	else
		decide(share);
	return true;
}

void turns_tick(struct turns_share *share, uint64_t now, uint64_t lease_ns)
{
	if (share->step == TURNS_ASKING && now > share->asked_at + TURNS_ASK_NS)
		drop(share);
	for (unsigned i = 0; i < share->ranks; i++)
		if ((share->held || !share->known) && now > share->rank[i].heard_at + lease_ns)
			turns_lose(share);
}

void turns_lose(struct turns_share *share)
{
	if (!share->known) /* it may hold a turn */
		share->held = share->known = true;
	share->lost = true;
}

void turns_fenced(struct turns_share *share)
{
	if (share->lost)
		share->held = false;
}

bool turns_say(const struct turns_share *share, unsigned rank, struct wire_turn *out)
{
	const struct turns_rank *it = &share->rank[rank];
	bool knows = it->change == share->change;

	*out = (struct wire_turn){ .session = share->session,
		                   .change = share->change,
		                   .from = share->from,
		                   .to = share->to };
	if (share->lost)
		return false;
	if (!share->known) {
		out->word = WIRE_TURN_STATE;
		return !it->heard;
	}
	if (share->step == TURNS_ASKING) {
		out->word = WIRE_TURN_PREPARE;
		return !knows;
	}
	if (share->step == TURNS_SETTING) {
		out->word = WIRE_TURN_COMMIT;
		return !knows || it->phase != WIRE_TURN_SET;
	}
	out->word = WIRE_TURN_ABORT;
	out->change = it->change;
	return it->phase == WIRE_TURN_ASKED;
}
