/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who comes late and whose link loses, of each communicator: from what all nodes of a
 * controller tell. Pure: JSON in, lines out.
 */
#ifndef TRIB_CLI_TOP_RANKS_H
#define TRIB_CLI_TOP_RANKS_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#define RANKS_MAX 4096u

/* A rank of a communicator, or an aggregator of some, summed over the aggregators that it sends to.
 */
struct straggler {
	unsigned job, size; /* ranks of the communicator */
	uint64_t key;       /* as its aggregators know it */
	unsigned rank;
	uint64_t covers; /* 0: it is a rank */
	char host[64], ranks[40];
	double done, last, judged, missed, repeated;
	double waits; /* share of its time; below 0: it has not said */
	double late;  /* share of fragments that all waited for it */
};

struct look_ranks {
	unsigned n;
	unsigned untold; /* communicators at a node that does not tell their ranks */
	unsigned beyond; /* ranks that there is no room for */
	struct straggler all[RANKS_MAX];
};

/* Adds what a node says of its communicators. */
void ranks_take(struct look_ranks *look, const json_t *comms);
/* What has come since `before`. */
void ranks_print(FILE *out, const struct look_ranks *look, struct look_ranks *before);

#endif
