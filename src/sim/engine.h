/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the simulator share; nobody else includes it. */
#ifndef TRIB_SIM_ENGINE_H
#define TRIB_SIM_ENGINE_H

#include "plan/assign.h"
#include "plan/groups.h"
#include "plan/placement.h"
#include "plan/share.h"
#include "plan/turn.h"
#include "sim/queue.h"
#include "sim/sim.h"

#define ENGINE_ARRIVAL UINT32_MAX /* in place of a slot: a job comes */

/* A job that has hosts. */
struct run {
	const struct pattern *pattern;
	double began_s;  /* this step */
	double free_s;   /* when the allreduce is over that is under way */
	double usable_s; /* its tree, after it was moved */
	double aggregated_s;
	uint32_t op, step, steps;
	bool is_started, is_sending, is_fast;
	/* The tree it has, and the one that an allreduce under way has taken. */
	uint32_t *tree, *held;
	uint32_t tree_n, held_n;
	uint32_t *buffers[2];
	uint32_t root; /* ASSIGN_NONE: no tree */
	uint32_t job, n_hosts;
	uint32_t *hosts;
	struct footprint footprint;
	double start_s;
	uint32_t moves;
	uint32_t unserved_at; /* in the list of those that share or have none; ASSIGN_NONE */
	bool had_tree;
};

/* For ties_order; all NULL where it is not asked for. */
struct ties_memory {
	uint32_t *slots, *above, *first, *rank, *next, *buckets; /* of slots */
	uint32_t *mark;                                          /* of resources */
};

struct engine {
	const struct sim_input *input;
	struct sim_outcome *outcomes;
	struct sim_result result;
	struct placement placement;
	struct assign assign;
	struct groups groups;
	struct share share;
	struct queue queue;
	struct pattern *patterns; /* of each step: on one host, on several */
	struct pattern_op *ops;
	struct run *runs;
	struct turn *turns; /* of each slot: its next allreduce */
	uint32_t *in_use;   /* of a resource: allreduces under way */
	uint32_t *free_slots, n_free, slots;
	uint32_t *hosts;          /* scratch for a placement */
	uint32_t *pods;           /* scratch for a footprint */
	uint32_t *fresh, n_fresh; /* jobs that have just got hosts */
	uint32_t *unserved, n_unserved, retry;
	struct ties_memory ties;
	void *memory[4];    /* of placement, assign, groups and ties */
	uint32_t head;      /* the first job in the queue */
	uint32_t announced; /* whose arrival is an event already, plus one */
	uint64_t seed;
	double run_s, run_since; /* seconds that jobs have run, until */
	double aggregated_s;
	bool is_exclusive; /* no link or switch serves two jobs at once: MINA's groups are */
	uint32_t places;   /* jobs that any of them serves */
	bool no_memory;
};

/* admit.c: gives hosts and trees to those in the queue who have arrived. */
void engine_admit(struct engine *engine, double now);
/* Takes a job out; the caller has told what became of it. */
void engine_release(struct engine *engine, uint32_t slot, double now);

/* trees.c: trees for those in `fresh`, and better ones for others where that pays. */
void trees_build(struct engine *engine, double now);
void trees_leave(struct engine *engine, uint32_t slot);

/* ahead.c: whether it is better not to give way after all. */
bool ahead_is_mine(const struct engine *engine, uint32_t slot, double now);

static inline bool tree_is_free(const struct engine *engine, const uint32_t *tree, uint32_t n)
{
	const struct fabric *fabric = &engine->input->fabric;

	for (uint32_t i = 0; i < n; i++)
		if (engine->in_use[tree[i]] >= fabric_capacity(fabric, tree[i]))
			return false;
	return true;
}

#endif
