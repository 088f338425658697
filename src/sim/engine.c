/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/engine.h"
#include "sim/jitter.h"
#include "sim/ties.h"

#include <math.h>
#include <stdlib.h>

#define PROGRESS_EVENTS 65536u /* a power of two */
#define BOUND_JOBS 24u         /* in a larger sharing group, many trees do not meet */

/* ---- which job has the turn ---- */

/*
 * Is the network the bottleneck of every job of a small sharing group? Then a second of aggregation
 * gains the same whenever it is, so that no rule is better than MINA's.
 */
static bool group_is_bound(const struct engine *engine, uint32_t slot)
{
	const struct groups *groups = &engine->groups;
	uint32_t at = slot;

	if (groups->size[groups->group[slot]] > BOUND_JOBS)
		return false;
	do {
		if (!pattern_is_bound(engine->runs[at].pattern))
			return false;
		at = groups->next[at];
	} while (at != slot);
	return true;
}

static bool engine_decide(const struct engine *engine, const struct run *run, uint32_t slot,
                          double now)
{
	const struct groups *groups = &engine->groups;
	enum turn_policy policy = engine->input->options.sharing;

	if (run->root == ASSIGN_NONE || now < run->usable_s || policy == TURN_NONE)
		return false;
	if (policy >= TURN_FRUGAL && groups->next[slot] != slot && group_is_bound(engine, slot))
		policy = TURN_SMART;
	if ((policy < TURN_FRUGAL && groups->busy[groups->group[slot]] &&
	     engine->turns.is_exclusive) ||
	    !tree_is_free(engine, run->tree, run->tree_n))
		return false;
	if (policy == TURN_AHEAD && groups->next[slot] != slot)
		return ahead_is_mine(engine, slot, now);
	return turn_is_mine(&engine->turns, slot, policy, now);
}

/* ---- steps ---- */

/* Start of an allreduce of the present step; of the one after the last: the end of computation. */
static double op_ready(const struct run *run, uint32_t op)
{
	const struct pattern *pattern = run->pattern;

	return run->began_s +
	       run->pace * (op == pattern->n ? pattern->compute_s : pattern->ops[op].start_s);
}

/* The next step begins. Returns the start of its first allreduce, or else its end. */
static double step_begin(const struct engine *engine, struct run *run, double now)
{
	const struct sim_options *options = &engine->input->options;

	run->op = 0;
	run->began_s = now;
	run->pace = jitter_pace(options->jitter, options->seed, run->job, run->step);
	return op_ready(run, 0);
}

static void step_end(const struct engine *engine, struct run *run)
{
	const struct pattern *pattern = run->pattern;
	bool varies = engine->input->options.jitter > 0;

	run->step++;
	run->fast_s += varies ? pattern_step_s(pattern, run->pace, true) : pattern->fast_s;
	run->plain_s += varies ? pattern_step_s(pattern, run->pace, false) : pattern->plain_s;
}

/* ---- events ---- */

/* The next allreduce, as seen when the present one ends. */
static void turn_next(struct engine *engine, const struct run *run, uint32_t slot, double end)
{
	const struct pattern *pattern = run->pattern;
	struct turn_next *next = &engine->next[slot];

	/* The step's first allreduce has shown its pace. */
	*next = (struct turn_next){ pattern, run->op + 1, run->began_s, end, run->pace };
	if (next->op < pattern->n)
		return;
	if (run->step + 1 == run->steps)
		next->pattern = NULL;
	next->began_s = next->free_s = fmax(end, op_ready(run, pattern->n));
	next->op = 0;
	next->pace = 1;
}

static double op_begin(struct engine *engine, struct run *run, uint32_t slot, double now)
{
	const struct pattern_op *op = &run->pattern->ops[run->op];
	double end;

	run->is_sending = true;
	engine->next[slot] =
		(struct turn_next){ run->pattern, run->op, run->began_s, now, run->pace };
	run->is_fast = engine_decide(engine, run, slot, now);
	if (run->is_fast) {
		run->held = run->tree;
		run->held_n = run->tree_n;
		for (uint32_t i = 0; i < run->tree_n; i++)
			engine->in_use[run->tree[i]]++;
		groups_activate(&engine->groups, slot, true);
	}
	end = now + (run->is_fast ? op->fast_s : op->plain_s);
	run->free_s = end;
	turn_next(engine, run, slot, end);
	return end;
}

static double op_end(struct engine *engine, struct run *run, uint32_t slot, double now)
{
	const struct pattern *pattern = run->pattern;

	run->is_sending = false;
	if (run->is_fast) {
		run->is_fast = false;
		run->aggregated_s += pattern->ops[run->op].fast_s;
		engine->aggregated_s += pattern->ops[run->op].fast_s;
		for (uint32_t i = 0; i < run->held_n; i++)
			engine->in_use[run->held[i]]--;
		run->held = NULL;
		groups_activate(&engine->groups, slot, false);
	}
	run->op++;
	return fmax(now, op_ready(run, run->op));
}

static double job_start(struct engine *engine, struct run *run, uint32_t slot, double now)
{
	const struct pattern *pattern = run->pattern;

	run->is_started = true;
	run->start_s = now;
	if (pattern->n)
		engine->next[slot] = (struct turn_next){ pattern, 0, now, now, 1 };
	return step_begin(engine, run, now);
}

static void run_count(struct engine *engine, const struct run *run, double end)
{
	struct sim_result *result = &engine->result;
	double jct = end - run->start_s, fast = run->fast_s, plain = run->plain_s;

	result->jct_s += jct;
	result->jct_all_s += fast;
	result->jct_none_s += plain;
	result->weighted_s += jct * run->n_hosts;
	result->weighted_all_s += fast * run->n_hosts;
	result->weighted_none_s += plain * run->n_hosts;
	result->aggregated_s += run->aggregated_s;
	result->wait_s += run->start_s - engine->input->jobs[run->job].arrive_s;
	result->host_s += jct * run->n_hosts;
	result->migrations += run->migrations;
	result->unserved += !run->had_tree;
	if (engine->outcomes)
		engine->outcomes[run->job] =
			(struct sim_outcome){ .start_s = run->start_s,
			                      .end_s = -1,
			                      .fast_s = fast,
			                      .plain_s = plain,
			                      .aggregated_s = run->aggregated_s,
			                      .migrations = run->migrations };
}

static void job_finish(struct engine *engine, struct run *run, uint32_t slot, double now)
{
	run_count(engine, run, now);
	if (engine->outcomes)
		engine->outcomes[run->job].end_s = now;
	engine->result.done++;
	queue_pop(&engine->queue);
	engine_release(engine, slot, now);
	engine_admit(engine, now);
}

static void event_run(struct engine *engine, uint32_t slot, double now)
{
	struct run *run = &engine->runs[slot];
	double next;

	engine->result.events++;
	if (run->is_sending) {
		next = op_end(engine, run, slot, now);
	} else if (!run->is_started) {
		next = job_start(engine, run, slot, now);
	} else if (run->op < run->pattern->n) {
		next = op_begin(engine, run, slot, now);
	} else {
		step_end(engine, run);
		if (run->step == run->steps) {
			job_finish(engine, run, slot, now);
			return;
		}
		next = step_begin(engine, run, now);
	}
	queue_replace(&engine->queue, next);
}

static void engine_loop(struct engine *engine)
{
	const struct sim_input *input = engine->input;
	double until = input->options.until_s > 0 ? input->options.until_s : INFINITY;

	engine_admit(engine, 0);
	while (engine->queue.n && !engine->no_memory) {
		const struct queue_entry *first = &engine->queue.entries[0];
		uint32_t slot = first->slot;
		double now = first->time;

		if (now > until)
			break;
		engine->result.end_s = now;
		if (slot == ENGINE_ARRIVAL) {
			queue_pop(&engine->queue);
			engine_admit(engine, now);
			continue;
		}
		event_run(engine, slot, now);
		if (!(engine->result.events & (PROGRESS_EVENTS - 1)) && input->hooks.progress)
			input->hooks.progress(input->hooks.context, engine->result.done,
			                      input->n_jobs, now);
	}
	/* Jobs that have not ended count with their whole steps. */
	for (uint32_t i = 0; i < engine->queue.n; i++)
		if (engine->queue.entries[i].slot != ENGINE_ARRIVAL) {
			const struct run *run = &engine->runs[engine->queue.entries[i].slot];

			if (run->is_started)
				run_count(engine, run, run->began_s);
		}
}

/* ---- memory ---- */

static bool patterns_make(struct engine *engine)
{
	const struct sim_input *input = engine->input;
	size_t total = 0, used = 0;
	uint32_t longest = 1;
	double *start;

	for (unsigned i = 0; i < input->n_steps; i++) {
		total += input->steps[i].n;
		longest = input->steps[i].n > longest ? input->steps[i].n : longest;
	}
	engine->patterns = calloc(2 * input->n_steps + 1, sizeof(*engine->patterns));
	engine->ops = calloc(2 * total + 1, sizeof(*engine->ops));
	start = calloc(longest, sizeof(*start));
	if (!engine->patterns || !engine->ops || !start) {
		free(start);
		return false;
	}
	for (unsigned i = 0; i < 2 * input->n_steps; i++) {
		const struct sim_step *step = &input->steps[i / 2];

		for (unsigned op = 0; op < step->n; op++)
			start[op] = step->start_s[op] / input->options.speedup;
		pattern_fill(&engine->patterns[i], engine->ops + used, step->n, start, step->bytes,
		             step->compute_s / input->options.speedup, 1 + i % 2,
		             &input->options.wire);
		used += step->n;
	}
	free(start);
	return true;
}

static bool ties_make(struct engine *engine)
{
	struct ties_memory *ties = &engine->ties;
	size_t slots = engine->slots, resources = engine->input->fabric.resources;
	uint32_t *memory;

	if (!engine->input->options.public_ties)
		return true;
	engine->memory[3] = memory =
		calloc(5 * slots + 1 + TIES_BUCKETS(slots) + resources, sizeof(*memory));
	if (!memory)
		return false;
	ties->slots = memory;
	ties->above = memory + slots;
	ties->first = memory + 2 * slots;
	ties->rank = memory + 3 * slots;
	ties->next = memory + 4 * slots;
	ties->buckets = memory + 5 * slots + 1;
	ties->mark = ties->buckets + TIES_BUCKETS(slots);
	return true;
}

/* The fewest jobs that a limited link or switch serves. */
static uint32_t places_of(const struct fabric *fabric)
{
	uint32_t links = fabric->link_jobs, switches = fabric->switch_jobs;

	return links && (!switches || links < switches) ? links : switches;
}

static bool engine_make(struct engine *engine, uint32_t most)
{
	const struct fabric *fabric = &engine->input->fabric;
	uint32_t slots =
		engine->input->n_jobs < fabric->hosts ? engine->input->n_jobs : fabric->hosts;
	size_t pods = FOOTPRINT_PODS(fabric, most);

	engine->slots = slots;
	engine->memory[0] = malloc(placement_bytes(fabric, most));
	engine->memory[1] = malloc(assign_bytes(fabric, slots));
	engine->memory[2] = malloc(groups_bytes(slots, fabric->resources));
	engine->runs = calloc(slots + 1, sizeof(*engine->runs));
	engine->next = calloc(slots + 1, sizeof(*engine->next));
	engine->in_use = calloc(fabric->resources + 1, sizeof(*engine->in_use));
	engine->share.want = calloc(fabric->resources + 1, sizeof(*engine->share.want));
	engine->free_slots = calloc(slots + 1, sizeof(*engine->free_slots));
	engine->hosts = calloc(most + 1, sizeof(*engine->hosts));
	engine->pods = calloc(pods + 1, sizeof(*engine->pods));
	engine->share.tree = calloc(2 * pods + 1, sizeof(*engine->share.tree));
	engine->fresh = calloc(slots + 1, sizeof(*engine->fresh));
	engine->unserved = calloc(slots + 1, sizeof(*engine->unserved));
	engine->queue.entries = calloc(slots + 2, sizeof(*engine->queue.entries));
	if (!engine->memory[0] || !engine->memory[1] || !engine->memory[2] || !engine->runs ||
	    !engine->next || !engine->in_use || !engine->share.want || !engine->free_slots ||
	    !engine->hosts || !engine->pods || !engine->share.tree || !engine->fresh ||
	    !engine->unserved || !engine->queue.entries || !patterns_make(engine) ||
	    !ties_make(engine))
		return false;
	placement_init(&engine->placement, fabric, engine->input->options.alpha, most,
	               engine->memory[0]);
	assign_init(&engine->assign, fabric, slots, engine->memory[1]);
	groups_init(&engine->groups, slots, fabric->resources, engine->memory[2]);
	engine->share.fabric = fabric;
	engine->share.groups = &engine->groups;
	engine->assign.candidates = engine->input->options.candidates;
	engine->seed = engine->input->options.seed;
	engine->turns = (struct turn_table){ .groups = &engine->groups,
		                             .fabric = fabric,
		                             .in_use = engine->in_use,
		                             .next = engine->next,
		                             .is_exclusive = fabric->link_jobs <= 1 &&
		                                             fabric->switch_jobs <= 1 };
	engine->places = places_of(fabric);
	while (engine->n_free < slots) {
		engine->free_slots[engine->n_free] = slots - 1 - engine->n_free;
		engine->n_free++;
	}
	return true;
}

static void engine_free(struct engine *engine)
{
	for (uint32_t i = 0; engine->runs && i < engine->slots; i++)
		free(engine->runs[i].hosts);
	for (unsigned i = 0; i < 4; i++)
		free(engine->memory[i]);
	free(engine->runs);
	free(engine->next);
	free(engine->in_use);
	free(engine->share.want);
	free(engine->free_slots);
	free(engine->hosts);
	free(engine->pods);
	free(engine->share.tree);
	free(engine->fresh);
	free(engine->unserved);
	free(engine->queue.entries);
	free(engine->patterns);
	free(engine->ops);
}

/* ---- the input ---- */

static trib_status input_check(const struct sim_input *input, uint32_t *most)
{
	double arrived = 0;

	*most = 1;
	for (uint32_t i = 0; i < input->n_jobs; i++) {
		const struct sim_job *job = &input->jobs[i];

		if (!job->hosts || job->hosts > input->fabric.hosts || job->hosts > PLACEMENT_MOST)
			return status_fail(TRIB_ERR_CONFIG, "job %u wants %u hosts of %u", i,
			                   job->hosts, input->fabric.hosts);
		if (job->step >= input->n_steps)
			return status_fail(TRIB_ERR_CONFIG, "job %u is of an unknown model", i);
		if (!(job->arrive_s >= arrived))
			return status_fail(TRIB_ERR_CONFIG,
			                   "job %u arrives before the one before it", i);
		if (job->steps == SIM_ENDLESS && !(input->options.until_s > 0))
			return status_fail(TRIB_ERR_CONFIG,
			                   "job %u has no end, and the simulation neither", i);
		arrived = job->arrive_s;
		*most = job->hosts > *most ? job->hosts : *most;
	}
	return TRIB_OK;
}

trib_status sim_run(const struct sim_input *input, struct sim_outcome *outcomes,
                    struct sim_result *result)
{
	struct engine engine = { .input = input, .outcomes = outcomes };
	uint32_t most;
	trib_status status = input_check(input, &most);

	if (status == TRIB_OK && !engine_make(&engine, most))
		engine.no_memory = true;
	for (uint32_t i = 0; status == TRIB_OK && outcomes && i < input->n_jobs; i++)
		outcomes[i] = (struct sim_outcome){ .start_s = -1, .end_s = -1 };
	if (status == TRIB_OK && !engine.no_memory)
		engine_loop(&engine);
	if (engine.no_memory)
		status = status_fail(TRIB_ERR_NO_MEMORY, "no memory for %u jobs on %u hosts",
		                     input->n_jobs, input->fabric.hosts);
	*result = engine.result;
	engine_free(&engine);
	return status;
}
