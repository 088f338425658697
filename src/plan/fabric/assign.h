/* SPDX-License-Identifier: Apache-2.0 */
/*
 * assign: gives jobs trees, so that as many jobs as possible have a tree without conflict.
 * It is the integer program of MINA III-C, extended to links and switches that serve several
 * jobs. With one job each, it is a maximum independent set of the conflict graph, whose
 * vertices are the possible trees of all jobs. The graph is never built: a tree is free if
 * none of its resources is full, and a full resource knows the trees on it.
 *
 * It is a local search. A job takes a free tree if there is one. Otherwise it takes a tree
 * that conflicts with a single job, if that job can migrate to another tree (and so on, up to
 * `depth`). Otherwise it takes a tree whose jobs are together worth less. A job's worth is
 * the seconds that it would gain; a migration costs some of them.
 */
#ifndef TRIB_PLAN_FABRIC_ASSIGN_H
#define TRIB_PLAN_FABRIC_ASSIGN_H

#include "plan/fabric/fabric.h"

#include <stdbool.h>
#include <stddef.h>

#define ASSIGN_NONE UINT32_MAX

struct assign_job {
	struct footprint footprint;
	uint32_t root;       /* root of its tree, or ASSIGN_NONE */
	double worth;        /* worth of a tree without conflict */
	double migration_s;  /* cost of a migration */
	uint32_t draw;       /* the first candidate, if not all are examined */
	const uint32_t *own; /* its candidates, the best first; NULL: all roots */
	uint32_t n_own;
	uint32_t seen; /* number of the search that last examined it */
	bool is_in, is_changed;
};

struct assign {
	const struct fabric *fabric;
	uint32_t candidates; /* trees examined for a job; 0: all */
	uint32_t depth;      /* most jobs that migrate to make room for one */
	uint32_t wide;       /* jobs that a resource can record */
	struct assign_job *jobs;
	uint32_t *count; /* by resource: trees on it */
	uint32_t *known; /* by resource: trees on it whose jobs are recorded */
	uint32_t *users; /* by resource: the recorded jobs */
	uint32_t search, budget;
	uint64_t steps; /* trees examined */
	/* Slots whose root has changed since assign_clear. */
	uint32_t *changed, n_changed;
	uint32_t *tree; /* scratch */
};

size_t assign_bytes(const struct fabric *fabric, uint32_t slots);
void assign_init(struct assign *assign, const struct fabric *fabric, uint32_t slots, void *work);

/* Adds a job without a tree. The caller keeps the footprint's pods. */
void assign_enter(struct assign *assign, uint32_t slot, const struct footprint *footprint,
                  double worth, double migration_s, uint32_t draw);
void assign_exit(struct assign *assign, uint32_t slot);
/* Limits a job to these roots, in order of preference. The caller keeps them. */
void assign_limit(struct assign *assign, uint32_t slot, const uint32_t *roots, uint32_t n);
/* Gives a job the tree that it already has; false: a resource of it is full. */
bool assign_keep(struct assign *assign, uint32_t slot, uint32_t root);

/*
 * Finds a tree for a job that has none. A modest job takes only a free tree. Jobs that lost
 * or changed their trees are in `changed`.
 */
bool assign_serve(struct assign *assign, uint32_t slot, bool is_modest);

/* The number of roots that a job may have, and the i-th of them. */
uint32_t assign_roots(const struct assign *assign, uint32_t slot);
uint32_t assign_root(const struct assign *assign, uint32_t slot, uint32_t i);

/* Clears `changed`. Call it before assign_enter, which may reuse a slot. */
void assign_clear(struct assign *assign);

#endif
