/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which ranks come late, and which ranks' links lose packets, in each communicator.
 * The input is the reports of all nodes of a controller. Pure: JSON in, lines out.
 */
#ifndef TRIB_CLI_CMD_TOP_RANKS_H
#define TRIB_CLI_CMD_TOP_RANKS_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#define RANKS_MAX 4096u

/* A rank of a communicator, or an aggregator, summed over the aggregators that it sends to. */
struct straggler {
	unsigned job, size; /* ranks of the communicator */
	uint64_t key;       /* as its aggregators know it */
	unsigned rank;
	uint64_t covers; /* 0: this entry is a rank */
	char host[64], ranks[40];
	double done, last, judged, missed, repeated;
	double waits; /* share of its time; below 0: not reported */
	double late;  /* share of fragments for which all others waited for it */
};

struct look_ranks {
	unsigned n;
	unsigned untold; /* communicators at a node that does not report their ranks */
	unsigned beyond; /* ranks for which there is no room */
	struct straggler all[RANKS_MAX];
};

/* Adds a node's report of its communicators. */
void ranks_take(struct look_ranks *look, const json_t *comms);
/* Writes what has changed since `before`. */
void ranks_print(FILE *out, const struct look_ranks *look, struct look_ranks *before);

#endif
