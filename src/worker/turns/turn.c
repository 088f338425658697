/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/turns/turn.h"

static bool is_cut(const struct turn_range *range)
{
	return range->from == range->to;
}

/*
 * The decision for requests below `from` stays. Two ranges are remembered, so before a third one
 * follows them, all requests of the first must have started.
 */
static bool may_agree(const struct turn *turn, uint64_t next)
{
	return next <= turn->asked.from &&
	       (is_cut(&turn->asked) || turn->asked.from <= turn->now.from ||
	        turn_range_is_over(&turn->last, next));
}

static void ask(struct turn *turn, const struct wire_turn *message, uint64_t next)
{
	turn->change = message->change;
	turn->asked = (struct turn_range){ message->from, message->to };
	turn->phase = may_agree(turn, next) ? WIRE_TURN_ASKED : WIRE_TURN_DROPPED;
}

static void cut(struct turn_range *range, uint64_t at)
{
	if (range->from > at)
		range->from = at;
	if (range->to > at)
		range->to = at;
}

static void set(struct turn *turn)
{
	bool later = turn->asked.from > turn->now.from;

	cut(&turn->last, turn->asked.from);
	cut(&turn->now, turn->asked.from);
	if (!is_cut(&turn->asked)) {
		if (later)
			turn->last = turn->now;
		turn->now = turn->asked;
	}
	turn->phase = WIRE_TURN_SET;
}

static bool take(struct turn *turn, const struct wire_turn *message, uint64_t next)
{
	bool same = message->change == turn->change && turn->phase == WIRE_TURN_ASKED;

	if (message->change > turn->change) {
		/* The controller begins a change only after the previous one is decided and known.
		 */
		if (message->word == WIRE_TURN_PREPARE) {
			ask(turn, message, next);
			return true;
		}
		if (message->word == WIRE_TURN_ABORT) {
			turn->change = message->change;
			turn->phase = WIRE_TURN_DROPPED;
			return true;
		}
		return false;
	}
	if (same && message->word == WIRE_TURN_COMMIT)
		set(turn);
	else if (same && message->word == WIRE_TURN_ABORT)
		turn->phase = WIRE_TURN_DROPPED;
	else
		return false;
	return true;
}

/*
 * After a restart the controller may decide differently from its previous session, if no rank had
 * heard of that decision. So messages of older sessions are ignored.
 */
bool turn_hear(struct turn *turn, const struct wire_turn *message, uint64_t next)
{
	bool newer = message->session > turn->session;

	if (message->session < turn->session)
		return false;
	turn->session = message->session;
	return take(turn, message, next) || newer;
}
