/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From nodes that live and ranks that wait to the trees that they join: the
 * one place where the controller calls the planner. Pure.
 */
#ifndef TRIB_CONTROL_PLANNER_H
#define TRIB_CONTROL_PLANNER_H

#include "control/nodes.h"
#include "plan/plan.h"
#include "wire/packet.h"

#define PLAN_TEXT_MAX WIRE_PLAN_MAX
#define WHERE_MAX 48

struct plan_wish {
	unsigned ranks; /* 0 to ranks - 1 want a plan */
	/* The address that each asks from, so that it is known which node it runs on. */
	const char *where[TREE_RANKS_MAX];
	/* What their links were seen to carry upwards, where that was less than they claim; else 0.
	 */
	double measured[TREE_RANKS_MAX];
	/* The part of a step that each computes and sends in, so who is alike; 0: unknown. */
	double round[TREE_RANKS_MAX];
	uint64_t tcp;        /* ranks on the TCP plane, as bits; all others are on UDP */
	uint64_t pool_bytes; /* that each of their aggregators has to have room for; 0: unknown */
	const char *holds;   /* the plan whose aggregators have that room already; NULL: none */
	const char *broken;  /* the plan that they had; empty: none */
	uint64_t since;      /* when the first of them said so */
	bool frugal; /* no machines but those of the ranks, or else one: speed would gain little */
};

struct planner {
	const struct nodes *nodes;
	const struct node_limits *limits;
	uint64_t now;
	struct plan_verdict *verdict; /* of the last plan; NULL: nobody wants it */
	/* At which of these aggregators with a capacity they take turns; n: at none. NULL: the
	 * first. */
	unsigned (*root)(void *context, const struct plan_wish *wish,
	                 const struct node *const *nodes, unsigned n);
	void *context;
	bool strict;              /* rather no plan than one with a node that is loaded */
	unsigned children, trees; /* at most; 0: as many as there can be */
};

/*
 * Trees for the ranks, as forest_print writes them; and behind a bar, where some
 * aggregator has a capacity and is for them (roots.h), a star at it: for when it
 * is their turn. TRIB_IN_PROGRESS: a suspect aggregator may still answer.
 * TRIB_ERR_AGGREGATOR: none lives.
 */
trib_status planner_plan(const struct planner *planner, const struct plan_wish *wish,
                         char out[PLAN_TEXT_MAX]);

/* The rate of a plan that there is, its own trees, with links and cores as they are known now; 0:
 * that cannot be said. */
double planner_rate(const struct planner *planner, const struct plan_wish *wish, const char *plan);

/* What a link is taken for of which nothing is known. */
double planner_guess(const struct nodes *nodes);

/* Has this one to show that it lives, before it is in the plan that follows a broken one? */
bool planner_suspects(const struct nodes *nodes, const char *broken, const struct node *node);

/* Is this aggregator on the ranks' plane? UDP and XDP are the same to them. */
bool planner_carries(const struct plan_wish *wish, const struct node *node);

/* Does a rank run at the node's address? */
bool planner_is_ranks(const struct plan_wish *wish, const struct node *node);

/* Is this aggregator in the plan? */
bool plan_has(const char *plan, const char *address);
/* The address behind the bar, at which they take turns; false: there is none. */
bool plan_shared(const char *plan, char out[TREE_NAME_MAX]);
/* The first aggregator that the text names, and in *plan what is behind it; NULL: there is no more.
 */
struct node *plan_node(const struct nodes *nodes, const char **plan);

#endif
