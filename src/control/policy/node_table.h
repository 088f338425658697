/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nodes that a controller knows, and which of them live. Pure: time is an argument, and
 * reports have been parsed already (transport/node_report.h).
 */
#ifndef TRIB_CONTROL_POLICY_NODE_TABLE_H
#define TRIB_CONTROL_POLICY_NODE_TABLE_H

#include "base/status.h"
#include "control/policy/topology.h"
#include "plan/tree/tree.h"

#define NODES_MAX 16384u
#define NODE_NAME_MAX 64
#define NODE_LIST_MAX 64
#define LINK_SAMPLES_MAX 8u
#define NODE_BPS_MAX 1e15 /* no link is faster */

/* What an agent reports of its machine. */
struct node_report {
	char address[TREE_NAME_MAX]; /* of its aggregator; also the node's name in plans */
	char name[NODE_NAME_MAX];    /* for people */
	char version[16];
	char plane[16];               /* on which it sums */
	char planes[NODE_LIST_MAX];   /* on which it could sum, separated by blanks */
	char rights[NODE_LIST_MAX];   /* its capabilities, separated by blanks */
	uint64_t incarnation;         /* random, new at each start of the agent */
	uint32_t cores, threads;      /* of the machine; of the aggregator */
	uint32_t capacity;            /* jobs that it serves at once; 0: any number */
	uint32_t is_switch;           /* 1: it has a port of link_bps for each neighbour */
	char rack[RACK_MAX];          /* where the machine is; empty: it runs no ranks */
	char above[RACK_MAX];         /* with a capacity: the part of the network it serves */
	uint64_t memory, memory_used; /* bytes, of the machine */
	uint64_t link_bps;            /* 0: unknown */
	uint32_t probe_port;          /* where others may probe its link; 0: nowhere */
	uint64_t payload;             /* bytes that its aggregator has added */
	double load;                  /* share of the cores that other programs use, 0 to 1 */
	double busy;                  /* cores that the aggregator uses */
};

/* The result of one link probe with another node: agent/link_probe.h. */
struct link_sample {
	char with[TREE_NAME_MAX];
	double out_bps, in_bps;         /* 0: unknown */
	bool out_strained, in_strained; /* cores were short: the link may carry more */
	uint64_t at;
};

struct node {
	struct node_report report;
	struct link_sample samples[LINK_SAMPLES_MAX];
	unsigned n_samples;
	uint64_t heartbeat_at; /* its last heartbeat; 0: none since the start */
	uint64_t joined_at;    /* first heartbeat of this run of its agent */
	uint64_t confirmed_at; /* when its aggregator last answered a query */
	uint64_t queried_at;   /* when its aggregator was last queried */
	uint64_t suspected_at; /* since when ranks suspect that it is dead; 0: they do not */
	uint64_t loaded_since; /* since when it is loaded; 0: it is not */
	uint64_t judged_at;    /* when migration of its jobs was last judged */
	uint64_t worked_at;    /* when a rank at its address last gave a sign of life */
	/* Its link: link_estimate.h and telemetry/probe_scheduler.c. */
	double out_bps, in_bps;  /* measured rates; 0: as claimed, or unknown */
	uint64_t link_since;     /* older samples do not count */
	uint64_t slow_since;     /* since when the link is slow; 0: it is not */
	uint64_t link_probed_at; /* when its last probe was ordered */
	uint64_t searched_at;    /* when no partner for a probe was found; 0: one was */
	uint64_t link_claim;     /* the claimed rate that the estimate is for */
	bool trials_failed;      /* all probes failed, and that was logged */
	bool link_suspected;     /* to be probed even while ranks work there */
	bool left;               /* its agent said goodbye */
	bool drained;            /* an operator wants plans to do without it */
	void *detail;            /* JSON of its communicators; the owner frees it */
	uint64_t detail_at;      /* the time that `detail` describes */
};

/* Nodes up to NODE_DRAINED send heartbeats. Plans prefer nodes with an earlier state. */
enum node_state { NODE_LIVE, NODE_LOADED, NODE_DRAINED, NODE_SILENT, NODE_LEFT, NODE_STATES_END };

/* Sorted by address. */
struct nodes {
	struct node **all;
	unsigned n, room;
};

struct node *nodes_find(const struct nodes *nodes, const char *address);
/* All nodes at an address without a port are adjacent: the index of the first, and *n. */
unsigned nodes_at(const struct nodes *nodes, const char *where, unsigned *n);
/* "10.0.0.7" of "10.0.0.7:7700", "fe80::1" of "[fe80::1]:7700"; returns its length; 0: none. */
size_t node_where(const struct node *node, const char **where);
/* The node at that address, made if there is none; NULL: no memory, or too many nodes. */
struct node *nodes_add(struct nodes *nodes, const char *address);
/*
 * A heartbeat. *facts (may be NULL): a lasting property of the node has changed, so the node has to
 * be stored.
 */
struct node *nodes_heartbeat(struct nodes *nodes, const struct node_report *report, uint64_t now,
                             bool *facts);
/* The caller frees the node's detail first. */
void nodes_drop(struct nodes *nodes, struct node *node);
void nodes_free(struct nodes *nodes, void (*forget)(struct node *node));

struct node_limits {
	uint64_t dead_after; /* nanoseconds without a heartbeat */
	double load;         /* a node whose report.load is higher counts as loaded */
};

/* After a heartbeat: updates loaded_since. */
void node_watch(struct node *node, uint64_t now, const struct node_limits *limits);
/* "others use 98 % of its cores": why a node is loaded. */
const char *node_load_text(const struct node *node, const struct node_limits *limits, char *out,
                           size_t size);

/*
 * A rank suspects that the node is dead. True: the node is silent, by its heartbeats and by its
 * answers to queries. *ask: query the node, so that this becomes known.
 */
bool node_suspect(struct node *node, uint64_t now, bool *ask);

enum node_state node_state(const struct node *node, uint64_t now, const struct node_limits *limits);
const char *node_state_name(enum node_state state);

#endif
