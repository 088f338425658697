/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/turns/star.h"

static bool hear_move(struct star *star, struct turn *turn, const struct wire_turn *message,
                      uint64_t next)
{
	/* If turns are not used up here, this rank has missed a plan: it waits for other trees. */
	if (message->session < turn->session || message->star <= star->number ||
	    star->step == STAR_NONE || !turn_is_used_up(turn, next))
		return false;
	star->number = message->star;
	star->step = STAR_LEAVING;
	/* The controller has given up any change that is undecided here. */
	*turn = (struct turn){ .session = message->session };
	return true;
}

bool star_hear(struct star *star, struct turn *turn, const struct wire_turn *message, uint64_t next)
{
	if (message->word == WIRE_TURN_MOVE)
		return hear_move(star, turn, message, next);
	if (message->star != star->number)
		return false;
	if (star->step == STAR_JOINED)
		return turn_hear(turn, message, next);
	if (message->session <= turn->session)
		return false;
	turn->session = message->session;
	return true;
}

bool star_lose(struct star *star, const struct turn *turn, uint64_t next, bool quiet)
{
	if (star->step == STAR_JOINED &&
	    (!quiet || turn->phase == WIRE_TURN_ASKED || !turn_is_used_up(turn, next)))
		return false;
	if (star->step == STAR_LEAVING) /* the previous star was lost */
		return quiet;
	if (star->step != STAR_NONE)
		star->step = STAR_ASTRAY;
	return true;
}
