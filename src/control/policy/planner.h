/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the trees of a plan from live nodes and waiting ranks. This is the only place where the
 * controller calls the planner of src/plan. Pure.
 */
#ifndef TRIB_CONTROL_POLICY_PLANNER_H
#define TRIB_CONTROL_POLICY_PLANNER_H

#include "control/policy/node_table.h"
#include "plan/cluster/plan.h"
#include "plan/tree/ring_seats.h"
#include "wire/packet.h"

#define PLAN_TEXT_MAX WIRE_PLAN_MAX
#define WHERE_MAX 48

struct plan_wish {
	unsigned ranks; /* ranks 0 to ranks - 1 want a plan */
	/* The address of each rank, without a port: it tells on which node the rank runs. */
	const char *where[TREE_RANKS_MAX];
	/* Measured rate of each rank's link upwards, if less than claimed; 0: none. */
	double measured[TREE_RANKS_MAX];
	/* Part of a step that each rank computes and sends: groups similar ranks; 0: unknown. */
	double round[TREE_RANKS_MAX];
	uint64_t tcp;        /* ranks on the TCP plane, as bits; all others are on UDP */
	uint64_t pool_bytes; /* memory of their pool at each aggregator; 0: unknown */
	const char *holds;   /* plan whose aggregators hold that memory already; NULL: none */
	const char *broken;  /* the plan that they report as broken; empty: none */
	uint64_t since;      /* when the first rank reported that */
	bool frugal;         /* use no servers if possible, else one: speed would gain little */
	bool rings; /* without an aggregator, sum around a ring: all ranks have a seat there */
	struct ring_seat seats[TREE_RANKS_MAX];
};

struct planner {
	const struct nodes *nodes;
	const struct node_limits *limits;
	uint64_t now;
	struct plan_verdict *verdict; /* gets the estimate of the plan; NULL: not wanted */
	/* Chooses the aggregator with a capacity for their turns; n: none. NULL: the first one. */
	unsigned (*root)(void *context, const struct plan_wish *wish,
	                 const struct node *const *nodes, unsigned n);
	void *context;
	bool strict;              /* fail rather than use a loaded node */
	unsigned children, trees; /* limits; 0: none */
};

/*
 * Writes the trees for the ranks, as forest_print does. If an aggregator with a capacity serves
 * them (star_policy.h), "|" and a star at it follow: the ranks use it in their turns.
 * TRIB_IN_PROGRESS: a suspected aggregator may still answer. TRIB_ERR_AGGREGATOR: none lives, and
 * the ranks do not want a ring. If they get one (ring_seats.h), the last error says why.
 */
trib_status planner_plan(const struct planner *planner, const struct plan_wish *wish,
                         char out[PLAN_TEXT_MAX]);

/* The rate of an existing plan, by what is known of links and cores now; 0: unknown. Its shared
 * star does not count. */
double planner_rate(const struct planner *planner, const struct plan_wish *wish, const char *plan);

/* The rate assumed for a link of which nothing is known. */
double planner_guess(const struct nodes *nodes);

/* After a broken plan: must this node prove that it lives before it is used again? */
bool planner_suspects(const struct nodes *nodes, const char *broken, const struct node *node);

/* Is this aggregator on the ranks' plane? For ranks, UDP and XDP are the same. */
bool planner_carries(const struct plan_wish *wish, const struct node *node);

/* Does a rank run at the node's address? */
bool planner_is_ranks(const struct plan_wish *wish, const struct node *node);

/* Is this aggregator in the plan? */
bool plan_has(const char *plan, const char *address);
/* The address of the shared star, behind the bar; false: there is none. */
bool plan_shared(const char *plan, char out[TREE_NAME_MAX]);
/* The next known aggregator that the text names; advances *plan behind it. NULL: no more. */
struct node *plan_node(const struct nodes *nodes, const char **plan);

#endif
