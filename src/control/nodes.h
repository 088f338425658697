/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nodes that a controller knows, and which of them are alive. Pure: time
 * is an argument, and what an agent said has been read already.
 */
#ifndef TRIB_CONTROL_NODES_H
#define TRIB_CONTROL_NODES_H

#include "base/status.h"
#include "control/racks.h"
#include "plan/tree.h"

#define NODES_MAX 16384u
#define NODE_NAME_MAX 64
#define NODE_LIST_MAX 64
#define NODE_WAYS 8u
#define NODE_BPS_MAX 1e15 /* no link is faster */

/* What an agent says of itself. */
struct node_report {
	char address[TREE_NAME_MAX]; /* of its aggregator, and the node's name in plans */
	char name[NODE_NAME_MAX];    /* for people */
	char version[16];
	char plane[16];               /* where it sums */
	char planes[NODE_LIST_MAX];   /* where it could, separated by blanks */
	char rights[NODE_LIST_MAX];   /* capabilities that it has, separated by blanks */
	uint64_t incarnation;         /* another one each time the agent starts */
	uint32_t cores, threads;      /* of the machine; of the aggregator */
	uint32_t capacity;            /* jobs that it sums for at once; 0: any number */
	uint32_t is_switch;           /* 1: a port for each neighbour, each of link_bps */
	char rack[RACK_MAX];          /* where jobs find the machine; empty: it takes none */
	char above[RACK_MAX];         /* with a capacity: the part of the network that it is for */
	uint64_t memory, memory_used; /* bytes, of the machine */
	uint64_t link_bps;            /* 0: unknown */
	uint32_t gauge_port;          /* where others may try what its link carries; 0: nowhere */
	uint64_t payload;             /* bytes that its aggregator has added */
	double load;                  /* share of the cores that others use, 0 to 1 */
	double busy;                  /* cores that the aggregator uses */
};

/* What an agent's link carried when it was tried with another one: gauge.h. */
struct node_way {
	char with[TREE_NAME_MAX];
	double out_bps, in_bps;         /* 0: not known */
	bool out_strained, in_strained; /* cores were short: it may carry more */
	uint64_t at;
};

struct node {
	struct node_report report;
	struct node_way ways[NODE_WAYS];
	unsigned n_ways;
	uint64_t beat_at;      /* when it was last heard of; 0: not since the start */
	uint64_t joined_at;    /* when its agent first was, since that started */
	uint64_t confirmed_at; /* when its aggregator last answered a question */
	uint64_t probed_at;    /* when it was last asked one */
	uint64_t doubted_at;   /* since when ranks have doubted that it is there; 0: they do not */
	uint64_t loaded_since; /* others have had its cores or memory since; 0: they have not */
	uint64_t judged_at;    /* when it was last asked whether jobs should leave it */
	uint64_t worked_at;    /* when a rank at its address was last heard of */
	/* Its link: links.h and gauging.c. */
	double out_bps, in_bps; /* what it carries where that is less than it claims, else 0 */
	uint64_t link_since;    /* what was seen before does not count any more */
	uint64_t slow_since;    /* when that was first seen; 0: it is as claimed */
	uint64_t gauged_at;     /* when it was last told to be tried */
	uint64_t searched_at;   /* when somebody to try it with was last looked for, in vain */
	uint64_t link_claim;    /* what it claimed when that was last looked at */
	bool trials_failed;     /* all, and that was told */
	bool link_doubted;      /* it is to be tried although ranks are at work there */
	bool left;              /* it said so */
	bool drained;           /* somebody said that plans shall do without it */
	void *detail;           /* what the table's owner keeps with it, */
	uint64_t detail_at;     /* as it was then */
};

/* Those up to NODE_DRAINED beat; the earlier one is, the rather it is planned with. */
enum node_state { NODE_LIVE, NODE_LOADED, NODE_DRAINED, NODE_SILENT, NODE_LEFT, NODE_STATES_END };

/* Sorted by address. */
struct nodes {
	struct node **all;
	unsigned n, room;
};

struct node *nodes_find(const struct nodes *nodes, const char *address);
/* Those at an address without a port stand together: the first, and how many. */
unsigned nodes_at(const struct nodes *nodes, const char *where, unsigned *n);
/* "10.0.0.7" of "10.0.0.7:7700", "fe80::1" of "[fe80::1]:7700"; its length, 0 where it has none. */
size_t node_where(const struct node *node, const char **where);
/* The node of that address, made where there is none; NULL: no memory, or too many. */
struct node *nodes_add(struct nodes *nodes, const char *address);
/*
 * A beat. *facts, where wanted, says whether something changed that does not
 * change by itself, so that it has to be stored.
 */
struct node *nodes_beat(struct nodes *nodes, const struct node_report *report, uint64_t now,
                        bool *facts);
/* Its detail is the caller's to give up before. */
void nodes_drop(struct nodes *nodes, struct node *node);
void nodes_free(struct nodes *nodes, void (*forget)(struct node *node));

struct node_limits {
	uint64_t dead_after; /* nanoseconds of silence */
	double load;         /* beyond it, others have the cores */
};

/* After a beat: since when others have too much of it. */
void node_watch(struct node *node, uint64_t now, const struct node_limits *limits);
/* "others use 98 % of its cores", for a node that is loaded. */
const char *node_load_text(const struct node *node, const struct node_limits *limits, char *out,
                           size_t size);

/*
 * A rank waits, and wonders whether the node is there. True: nobody has heard of it, neither by
 * its beats nor by answers. *ask: it is to be asked, so that this can be told.
 */
bool node_doubt(struct node *node, uint64_t now, bool *ask);

enum node_state node_state(const struct node *node, uint64_t now, const struct node_limits *limits);
const char *node_state_name(enum node_state state);

#endif
