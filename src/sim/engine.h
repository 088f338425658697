/* SPDX-License-Identifier: Apache-2.0 */
/* engine: the simulator's internal state. Only the files of this folder include it. */
#ifndef TRIB_SIM_ENGINE_H
#define TRIB_SIM_ENGINE_H

#include "plan/fabric/assign.h"
#include "plan/fabric/sharing_groups.h"
#include "plan/fabric/placement.h"
#include "plan/fabric/tree_share.h"
#include "plan/turns/turn_rule.h"
#include "sim/event_queue.h"
#include "sim/sim.h"

#define ENGINE_ARRIVAL UINT32_MAX /* slot number of the event that a job arrives */

/* A job that has hosts. */
struct run {
	const struct pattern *pattern;
	double began_s;         /* start of the present step */
	double free_s;          /* end of the present allreduce */
	double usable_s;        /* when its tree is usable after a migration */
	double aggregated_s;    /* time that it was aggregated so far */
	double pace;            /* how long the computation of this step takes, of its usual time */
	double fast_s, plain_s; /* ideal time of its steps so far: all aggregated, none */
	uint32_t op, step, steps;
	bool is_started, is_sending, is_fast;
	/* Its tree, and the tree that the present allreduce uses. */
	uint32_t *tree, *held;
	uint32_t tree_n, held_n;
	uint32_t *buffers[2];
	uint32_t root; /* ASSIGN_NONE: no tree */
	uint32_t job, n_hosts;
	uint32_t *hosts;
	struct footprint footprint;
	double start_s;
	uint32_t migrations;
	uint32_t unserved_at; /* index in `unserved`; ASSIGN_NONE: it has a tree of its own */
	bool had_tree;
};

/* Memory of ties_order; all NULL if public_ties is off. */
struct ties_memory {
	uint32_t *slots, *above, *first, *rank, *next, *buckets; /* by slot */
	uint32_t *mark;                                          /* by resource */
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
	struct pattern *patterns; /* two for each step: on one host, and on several */
	struct pattern_op *ops;
	struct run *runs;
	struct turn_next *next; /* by slot: its next allreduce */
	struct turn_table turns;
	uint32_t *in_use; /* by resource: allreduces that use it now */
	uint32_t *free_slots, n_free, slots;
	uint32_t *hosts;                       /* scratch for a placement */
	uint32_t *pods;                        /* scratch for a footprint */
	uint32_t *fresh, n_fresh;              /* jobs that have just got hosts */
	uint32_t *unserved, n_unserved, retry; /* jobs that share a tree or have none */
	struct ties_memory ties;
	void *memory[4];    /* memory of placement, assign, groups and ties */
	uint32_t head;      /* the first job in the queue */
	uint32_t announced; /* 1 + the last job whose arrival is already an event */
	uint64_t seed;
	double run_s;     /* seconds that all jobs have run, up to run_since */
	double run_since; /* when run_s was last updated */
	double aggregated_s;
	uint32_t places; /* most jobs that a link or switch serves */
	bool no_memory;
};

/* admit.c: gives hosts and trees to the queued jobs that have arrived. */
void engine_admit(struct engine *engine, double now);
/* Removes a job. The caller has recorded its outcome. */
void engine_release(struct engine *engine, uint32_t slot, double now);

/* job_trees.c: trees for the jobs in `fresh`, and better ones for others if that pays. */
void trees_build(struct engine *engine, double now);
void trees_leave(struct engine *engine, uint32_t slot);

/* turns_ahead.c: is it better not to give way after all? */
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
