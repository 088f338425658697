/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/turn.h"

static bool is_cut(const struct turn_range *range)
{
	return range->from == range->to;
}

/*
 * What holds below `from` stays. Two ranges are remembered, so where a third one
 * comes behind them, the first has to be used up.
 */
static bool may_agree(const struct turn *turn, uint64_t next)
{
	return next <= turn->asked.from &&
	       (is_cut(&turn->asked) || turn->asked.from <= turn->now.from ||
	        turn_range_is_over(&turn->last, next));
}

static void ask(struct turn *turn, const struct wire_turn *word, uint64_t next)
{
	turn->change = word->change;
	turn->asked = (struct turn_range){ word->from, word->to };
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

static bool take(struct turn *turn, const struct wire_turn *word, uint64_t next)
{
	bool same = word->change == turn->change && turn->phase == WIRE_TURN_ASKED;

	if (word->change > turn->change) {
		/* A change is begun only when the one before is decided, and known if it holds. */
		if (word->word == WIRE_TURN_PREPARE) {
			ask(turn, word, next);
			return true;
		}
		if (word->word == WIRE_TURN_ABORT) {
			turn->change = word->change;
			turn->phase = WIRE_TURN_DROPPED;
			return true;
		}
		return false;
	}
	if (same && word->word == WIRE_TURN_COMMIT)
		set(turn);
	else if (same && word->word == WIRE_TURN_ABORT)
		turn->phase = WIRE_TURN_DROPPED;
	else
		return false;
	return true;
}

/*
 * A controller that was started again may have decided otherwise than the one
 * before, of which no rank had heard: what that one said must not come later.
 */
bool turn_hear(struct turn *turn, const struct wire_turn *word, uint64_t next)
{
	bool newer = word->session > turn->session;

	if (word->session < turn->session)
		return false;
	turn->session = word->session;
	return take(turn, word, next) || newer;
}
