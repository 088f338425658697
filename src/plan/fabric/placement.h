/* SPDX-License-Identifier: Apache-2.0 */
/*
 * placement: chooses the hosts of a job. `first` and `random` ignore the network, as many
 * schedulers do. `smart` is MINA's Algorithm 1. It minimises A + alpha B, where A is the
 * number of fragments of the job's hosts and B the number of fragments of the remaining free
 * hosts. A pod that belongs entirely to the job, or is entirely free, is one fragment;
 * otherwise it has the fragments of the pods below it.
 *
 * A dynamic program solves this for every pod and every number of hosts. Its results are
 * kept, so a job costs only what has changed since the last one.
 */
#ifndef TRIB_PLAN_FABRIC_PLACEMENT_H
#define TRIB_PLAN_FABRIC_PLACEMENT_H

#include "plan/fabric/fabric.h"

#include <stdbool.h>
#include <stddef.h>

struct placement {
	const struct fabric *fabric;
	double alpha;
	uint32_t most; /* hosts of the largest job */
	uint8_t *taken;
	uint32_t *unused[FABRIC_LEVELS_MAX + 1]; /* free hosts in each pod, from level 1 */
	uint32_t *whole[FABRIC_LEVELS_MAX + 1];  /* hosts that exist in each pod */
	uint8_t *stale[FABRIC_LEVELS_MAX + 1];   /* 1: the pod's `score` must be recomputed */
	double *score[FABRIC_LEVELS_MAX + 1];    /* by pod: the cost of taking 0, 1, 2 ... hosts */
	uint16_t *choice[FABRIC_LEVELS_MAX + 1]; /* by pod and child: hosts taken from the child */
	uint32_t stride[FABRIC_LEVELS_MAX + 1];  /* entries of one pod in `score` */
	uint64_t steps;                          /* sums examined; shows how the work grows */
};

#define PLACEMENT_MOST 65535u

/* Work memory for jobs of up to `most` hosts. */
size_t placement_bytes(const struct fabric *fabric, uint32_t most);
void placement_init(struct placement *placement, const struct fabric *fabric, double alpha,
                    uint32_t most, void *work);

/* Choose n hosts in ascending order, without taking them; false: fewer are free. */
bool placement_first(const struct placement *placement, uint32_t n, uint32_t *hosts);
bool placement_random(const struct placement *placement, uint32_t n, uint64_t *seed,
                      uint32_t *hosts);
bool placement_smart(struct placement *placement, uint32_t n, uint32_t *hosts, double *score);

void placement_take(struct placement *placement, const uint32_t *hosts, uint32_t n);
void placement_give(struct placement *placement, const uint32_t *hosts, uint32_t n);

/* Marks free hosts as never available. The model assumes equal racks; smaller racks are padded
 * with such hosts. */
void placement_lack(struct placement *placement, const uint32_t *hosts, uint32_t n);

/* Fragments of the free hosts, or of the taken ones. */
uint32_t placement_fragments(const struct placement *placement, bool is_free);

#endif
