/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/turn.h"

/* Two ranges are remembered, so what held before the last one has to be used up. */
static bool may_agree(const struct turn *turn, const struct wire_turn *word, uint64_t next)
{
	bool later = word->from >= turn->now.from;

	return next <= word->from && later &&
	       (word->from == turn->now.from || next >= turn->last.to);
}

static void ask(struct turn *turn, const struct wire_turn *word, uint64_t next)
{
	turn->change = word->change;
	turn->asked = (struct turn_range){ word->from, word->to };
	turn->phase = may_agree(turn, word, next) ? WIRE_TURN_ASKED : WIRE_TURN_DROPPED;
}

static void set(struct turn *turn)
{
	/* One that had not begun is replaced; what held before it still does. */
	if (turn->asked.from > turn->now.from) {
		turn->last = turn->now;
		if (turn->last.to > turn->asked.from)
			turn->last.to = turn->asked.from;
	}
	turn->now = turn->asked;
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
