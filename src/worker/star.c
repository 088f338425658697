/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/star.h"

static bool hear_move(struct star *star, struct turn *turn, const struct wire_turn *word,
                      uint64_t next)
{
	/* It is told only when turns are used up; who does not see that waits for trees. */
	if (word->session < turn->session || word->star <= star->number ||
	    star->step == STAR_NONE || !turn_is_used_up(turn, next))
		return false;
	star->number = word->star;
	star->step = STAR_LEAVING;
	/* What was asked for last and is undecided here was given up. */
	*turn = (struct turn){ .session = word->session };
	return true;
}

bool star_hear(struct star *star, struct turn *turn, const struct wire_turn *word, uint64_t next)
{
	if (word->word == WIRE_TURN_MOVE)
		return hear_move(star, turn, word, next);
	if (word->star != star->number)
		return false;
	if (star->step == STAR_JOINED)
		return turn_hear(turn, word, next);
	if (word->session <= turn->session)
		return false;
	turn->session = word->session;
	return true;
}

bool star_lose(struct star *star, const struct turn *turn, uint64_t next, bool quiet)
{
	if (star->step == STAR_JOINED &&
	    (!quiet || turn->phase == WIRE_TURN_ASKED || !turn_is_used_up(turn, next)))
		return false;
	if (star->step == STAR_LEAVING) /* it is the one before that was lost */
		return quiet;
	if (star->step != STAR_NONE)
		star->step = STAR_ASTRAY;
	return true;
}
