/* SPDX-License-Identifier: Apache-2.0 */
/* Turns as the controller grants them (plan/turns/outlook.h), but without a protocol. */
#include "sim/engine.h"

#include "plan/turns/outlook.h"

/* The present state of a job. `begins`: its allreduce starts now. */
static struct outlook_job job_of(const struct run *run, bool begins, double now)
{
	bool busy = !begins && run->is_sending;

	return (struct outlook_job){ .pattern = run->pattern,
		                     .began_s = run->began_s - now,
		                     .pace = begins || run->op || busy ? run->pace : 1,
		                     .at = run->op + busy,
		                     .free_s = busy ? run->free_s - now : 0,
		                     .holds = busy && run->is_fast };
}

bool ahead_is_mine(const struct engine *engine, uint32_t slot, double now)
{
	const struct groups *groups = &engine->groups;
	const struct outlook outlook = { .capacity = engine->places };
	struct outlook_job jobs[OUTLOOK_JOBS] = { job_of(&engine->runs[slot], true, now) };
	struct outlook_turn turns[OUTLOOK_JOBS];
	struct turn mine = turn_now(&engine->next[slot], TURN_AHEAD, now);
	double taken = 0;
	unsigned n = 1;

	for (uint32_t other = groups->next[slot]; other != slot && n < OUTLOOK_JOBS;
	     other = groups->next[other]) {
		const struct run *run = &engine->runs[other];
		double share = turn_share(&engine->turns, slot, other);

		if (!run->is_started || !run->pattern->n || !(share > 0))
			continue;
		if (turn_foresee(&engine->next[other], TURN_AHEAD, now).start_s < now + mine.fast_s)
			taken += share;
		jobs[n++] = job_of(run, false, now);
	}
	if (n > 1 && !(mine.gain_s > 0))
		return false;
	if (taken < TURN_FULL)
		return true;
	outlook_plan(&outlook, jobs, n, turns);
	return turns[0].to && !turns[0].step && turns[0].from == jobs[0].at;
}
