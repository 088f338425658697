/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which hosts of a fabric a job gets. `first` and `random` are what schedulers
 * do that know of no network; `smart` is MINA's Algorithm 1: of all choices the
 * one with the least A + alpha B, A being the fragments that the job's hosts
 * are in, and B those that the free hosts are left in. A pod that is wholly the
 * job's, or wholly free, is one fragment; else those of the pods below it.
 *
 * The program is solved for every pod and every number of hosts at once, and
 * remembered, so that a job costs what has changed since the last one.
 */
#ifndef TRIB_PLAN_PLACEMENT_H
#define TRIB_PLAN_PLACEMENT_H

#include "plan/fabric.h"

#include <stdbool.h>
#include <stddef.h>

struct placement {
	const struct fabric *fabric;
	double alpha;
	uint32_t most; /* hosts of the largest job */
	uint8_t *taken;
	uint32_t *unused[FABRIC_LEVELS_MAX + 1]; /* free hosts in each pod, from level 1 */
	uint32_t *whole[FABRIC_LEVELS_MAX + 1];  /* hosts that a pod has */
	uint8_t *stale[FABRIC_LEVELS_MAX + 1];   /* whether `score` of a pod is to be made anew */
	double *score[FABRIC_LEVELS_MAX + 1];    /* of each pod: of 0, 1, 2 ... of its hosts */
	uint16_t *choice[FABRIC_LEVELS_MAX + 1]; /* of each pod and child: hosts in this child */
	uint32_t stride[FABRIC_LEVELS_MAX + 1];  /* entries of one pod in `score` */
	uint64_t steps;                          /* sums looked at, to see how the work grows */
};

#define PLACEMENT_MOST 65535u

/* Work memory for jobs of up to `most` hosts. */
size_t placement_bytes(const struct fabric *fabric, uint32_t most);
void placement_init(struct placement *placement, const struct fabric *fabric, double alpha,
                    uint32_t most, void *work);

/* Choose n hosts, ascending; false where fewer are free. Nothing is taken yet. */
bool placement_first(const struct placement *placement, uint32_t n, uint32_t *hosts);
bool placement_random(const struct placement *placement, uint32_t n, uint64_t *seed,
                      uint32_t *hosts);
bool placement_smart(struct placement *placement, uint32_t n, uint32_t *hosts, double *score);

void placement_take(struct placement *placement, const uint32_t *hosts, uint32_t n);
void placement_give(struct placement *placement, const uint32_t *hosts, uint32_t n);

/* These are not there, for good: a real rack has fewer hosts than the largest. They are free
 * before.
 */
void placement_lack(struct placement *placement, const uint32_t *hosts, uint32_t n);

/* Fragments of the free hosts, or of those that are taken. */
uint32_t placement_fragments(const struct placement *placement, bool is_free);

#endif
