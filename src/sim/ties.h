/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose event comes first of those at the same time. By default the job's that
 * came first. MINA's public simulator looks at sharing groups in the order in
 * which libc++ keeps them in a hash map, and at the jobs of each by arrival.
 * Jobs of one model that start together stay in step for long, so many end at
 * the same time, and who goes first decides who gets which hosts: its figures
 * are met only in its order.
 */
#ifndef TRIB_SIM_TIES_H
#define TRIB_SIM_TIES_H

#include <stddef.h>
#include <stdint.h>

/* An order of numbers below n, by which libc++ would visit them when put into a map in turn. */
struct ties_map {
	uint32_t *next;    /* of a node; node 0 is before the first, node i + 1 has key i */
	uint32_t *buckets; /* the node before the first of a bucket, plus one; 0 is empty */
	uint32_t n_buckets, n;
};

#define TIES_BUCKETS(n) (4 * (size_t)(n) + 16)

/* next has room for n + 1, buckets for TIES_BUCKETS(n); keys are below n. */
void ties_map_clear(struct ties_map *map);
/* A key that is there already is left where it is. */
void ties_map_put(struct ties_map *map, uint32_t key);
/* The first key, or the one behind a key; UINT32_MAX at the end. */
uint32_t ties_map_first(const struct ties_map *map);
uint32_t ties_map_next(const struct ties_map *map, uint32_t key);

struct engine;
/* Numbers all events anew. */
void ties_order(struct engine *engine);

#endif
