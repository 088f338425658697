/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which tree each job gets, so that as many as possible have one that no other
 * job's tree is in the way of: the integer program of MINA III-C, with any
 * number of jobs that a link or switch serves. With one each it is a maximum
 * independent set of the conflict graph, whose vertices are the trees that jobs
 * may have. That graph is never built: a tree is free if none of its resources
 * is full, and a full resource knows the trees on it.
 *
 * A local search. A job takes a free tree where there is one; else one that a
 * single other job is in the way of, if that one can move (and so on, some steps
 * deep); else one whose jobs are together worth less than this one. A job's worth
 * is the seconds that it would gain, and a job that moves loses some.
 */
#ifndef TRIB_PLAN_ASSIGN_H
#define TRIB_PLAN_ASSIGN_H

#include "plan/fabric.h"

#include <stdbool.h>
#include <stddef.h>

#define ASSIGN_NONE UINT32_MAX

struct assign_job {
	struct footprint footprint;
	uint32_t root;       /* or ASSIGN_NONE */
	double worth;        /* of having a tree of its own */
	double move;         /* what it costs to move to another */
	uint32_t draw;       /* where its candidates begin, if not all are looked at */
	const uint32_t *own; /* its candidates, the best first, where they are not all; or NULL */
	uint32_t n_own;
	uint32_t seen; /* in which search it was last looked at */
	bool is_in, is_changed;
};

struct assign {
	const struct fabric *fabric;
	uint32_t candidates; /* trees of a job that are looked at; 0 is all */
	uint32_t depth;      /* how many jobs may move for one */
	uint32_t wide;       /* of so many jobs a resource knows who they are */
	struct assign_job *jobs;
	uint32_t *count; /* of a resource: trees on it */
	uint32_t *known; /* ... of how many of them it is known whose they are */
	uint32_t *users; /* ... and whose */
	uint32_t search, budget;
	uint64_t steps; /* trees looked at */
	/* What has changed since assign_clear: slots whose root is another now. */
	uint32_t *changed, n_changed;
	uint32_t *tree; /* scratch */
};

size_t assign_bytes(const struct fabric *fabric, uint32_t slots);
void assign_init(struct assign *assign, const struct fabric *fabric, uint32_t slots, void *work);

/* A job comes, without a tree; its footprint's pods stay where they are. */
void assign_enter(struct assign *assign, uint32_t slot, const struct footprint *footprint,
                  double worth, double move, uint32_t draw);
void assign_exit(struct assign *assign, uint32_t slot);
/* It may have these roots only, and rather the first of them; they stay where they are. */
void assign_limit(struct assign *assign, uint32_t slot, const uint32_t *roots, uint32_t n);
/* It has this tree already; false: that is full. */
bool assign_keep(struct assign *assign, uint32_t slot, uint32_t root);

/*
 * Finds a tree for a job that has none; a modest one takes none that others are
 * in the way of. Those that have lost or moved theirs are in `changed`.
 */
bool assign_serve(struct assign *assign, uint32_t slot, bool is_modest);

/* The i-th root that a job may have, and how many there are. */
uint32_t assign_roots(const struct assign *assign, uint32_t slot);
uint32_t assign_root(const struct assign *assign, uint32_t slot, uint32_t i);

/* From where it stands, some rounds of throwing one in and seeing who finds another tree. Keeps the
 * best. `keep` has room for all slots. */
void assign_improve(struct assign *assign, uint32_t slots, uint32_t rounds, uint64_t *seed,
                    uint32_t *keep);

/* The sum of the worths of jobs that have a tree. */
double assign_worth(const struct assign *assign, uint32_t slots);

/* Forgets what has changed. Before assign_enter, which may use a slot again. */
void assign_clear(struct assign *assign);

#endif
