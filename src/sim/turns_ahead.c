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
	double until = now + engine->turns[slot].fast_s;
	bool is_contested = false;
	unsigned n = 1;

	for (uint32_t other = groups->next[slot]; other != slot && n < OUTLOOK_JOBS;
	     other = groups->next[other]) {
		const struct run *run = &engine->runs[other];

		if (!run->is_started || !run->pattern->n || !groups_meet(groups, slot, other))
			continue;
		is_contested |= engine->turns[other].start_s < until;
		jobs[n++] = job_of(run, false, now);
	}
	if (!is_contested)
		return true;
	outlook_plan(&outlook, jobs, n, turns);
	return turns[0].to && !turns[0].step && turns[0].from == jobs[0].at;
}
