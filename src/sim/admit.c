/* SPDX-License-Identifier: Apache-2.0 */
/* Arrivals and departures of jobs. */
#include "sim/engine.h"
#include "sim/ties.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool hosts_choose(struct engine *engine, uint32_t n)
{
	switch (engine->input->options.placement) {
	case SIM_PLACE_RANDOM:
		return placement_random(&engine->placement, n, &engine->seed, engine->hosts);
	case SIM_PLACE_SMART:
		return placement_smart(&engine->placement, n, engine->hosts, NULL);
	default:
		return placement_first(&engine->placement, n, engine->hosts);
	}
}

/* One allocation holds hosts, pods and two trees. */
static bool run_remember(struct engine *engine, struct run *run)
{
	const struct fabric *fabric = &engine->input->fabric;
	uint32_t n = run->n_hosts, pods = 0, tree, *memory;

	footprint_fill(&run->footprint, fabric, engine->hosts, n, engine->pods);
	for (unsigned l = 1; l <= run->footprint.level; l++)
		pods += run->footprint.n[l];
	tree = footprint_resources(&run->footprint, fabric);
	memory = malloc(((size_t)n + pods + 2 * (size_t)tree) * sizeof(*memory));
	if (!memory)
		return false;
	memcpy(memory, engine->hosts, n * sizeof(*memory));
	memcpy(memory + n, engine->pods, pods * sizeof(*memory));
	run->hosts = memory;
	run->footprint.pods = memory + n;
	run->buffers[0] = memory + n + pods;
	run->buffers[1] = run->buffers[0] + tree;
	return true;
}

static void job_place(struct engine *engine, uint32_t index, double now)
{
	const struct sim_job *job = &engine->input->jobs[index];
	uint32_t slot = engine->free_slots[--engine->n_free];
	struct run *run = &engine->runs[slot];

	*run = (struct run){ .pattern = &engine->patterns[2 * job->step + (job->hosts > 1)],
		             .steps = job->steps,
		             .job = index,
		             .n_hosts = job->hosts,
		             .root = ASSIGN_NONE,
		             .unserved_at = ASSIGN_NONE };
	if (!run_remember(engine, run)) {
		engine->no_memory = true;
		return;
	}
	placement_take(&engine->placement, run->hosts, run->n_hosts);
	groups_join(&engine->groups, slot, NULL, 0);
	/* Until it has started, other jobs ignore its turn. */
	engine->next[slot] = (struct turn_next){ 0 };
	engine->fresh[engine->n_fresh++] = slot;
	queue_push(&engine->queue,
	           (struct queue_entry){ .time = now, .order = index + 1, .slot = slot });
	if (engine->slots - engine->n_free > engine->result.peak)
		engine->result.peak = engine->slots - engine->n_free;
}

static void sample_give(struct engine *engine, double now)
{
	const struct sim_hooks *hooks = &engine->input->hooks;
	struct sim_sample sample = { .time_s = now,
		                     .running = engine->slots - engine->n_free,
		                     .aggregated_s = engine->aggregated_s,
		                     .run_s = engine->run_s };

	for (uint32_t i = 0; i < engine->queue.n; i++) {
		uint32_t slot = engine->queue.entries[i].slot;

		if (slot != ENGINE_ARRIVAL && engine->runs[slot].n_hosts > 1)
			sample.conflicted += engine->runs[slot].root == ASSIGN_NONE ||
			                     engine->groups.size[engine->groups.group[slot]] > 1;
	}
	sample.fragments = placement_fragments(&engine->placement, true);
	hooks->sample(hooks->context, &sample);
}

static uint64_t clock_look(const struct engine *engine)
{
	const struct sim_hooks *hooks = &engine->input->hooks;

	return hooks->clock ? hooks->clock(hooks->context) : 0;
}

void engine_admit(struct engine *engine, double now)
{
	const struct sim_input *input = engine->input;
	uint64_t began = clock_look(engine), placed, built;

	engine->run_s += (now - engine->run_since) * (engine->slots - engine->n_free);
	engine->run_since = now;
	engine->n_fresh = 0;
	while (engine->head < input->n_jobs && input->jobs[engine->head].arrive_s <= now &&
	       engine->n_free && !engine->no_memory &&
	       hosts_choose(engine, input->jobs[engine->head].hosts))
		job_place(engine, engine->head++, now);
	if (engine->head < input->n_jobs && input->jobs[engine->head].arrive_s > now &&
	    engine->announced != engine->head + 1) {
		engine->announced = engine->head + 1;
		queue_push(&engine->queue,
		           (struct queue_entry){ .time = input->jobs[engine->head].arrive_s,
		                                 .slot = ENGINE_ARRIVAL });
	}
	placed = clock_look(engine);
	trees_build(engine, now);
	built = clock_look(engine) - placed;
	engine->result.place_ns += placed - began;
	engine->result.trees_ns += built;
	if (built > engine->result.trees_longest_ns)
		engine->result.trees_longest_ns = built;
	if (input->options.public_ties)
		ties_order(engine);
	if (input->hooks.sample)
		sample_give(engine, now);
}

void engine_release(struct engine *engine, uint32_t slot, double now)
{
	struct run *run = &engine->runs[slot];

	engine->run_s += (now - engine->run_since) * (engine->slots - engine->n_free);
	engine->run_since = now;
	trees_leave(engine, slot);
	groups_leave(&engine->groups, slot);
	placement_give(&engine->placement, run->hosts, run->n_hosts);
	free(run->hosts);
	run->hosts = NULL;
	engine->free_slots[engine->n_free++] = slot;
}
