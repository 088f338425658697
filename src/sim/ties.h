/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ties: the order of simultaneous events. By default the job that arrived first goes first.
 * MINA's public simulator visits sharing groups in the iteration order of libc++'s hash map,
 * and the jobs of each by arrival. Jobs of one model that start together stay synchronous
 * for long. So many jobs end at the same time, and their order decides which job gets which
 * hosts.
 * MINA's figures are reproduced only in this order.
 */
#ifndef TRIB_SIM_TIES_H
#define TRIB_SIM_TIES_H

#include <stddef.h>
#include <stdint.h>

/* The order in which libc++ visits keys below n, inserted into a map one after the other. */
struct ties_map {
	uint32_t *next;    /* by node: the next node; node 0 is the head, node i + 1 has key i */
	uint32_t *buckets; /* 1 + the node before the bucket's first; 0: empty */
	uint32_t n_buckets, n;
};

#define TIES_BUCKETS(n) (4 * (size_t)(n) + 16)

/* next has room for n + 1, buckets for TIES_BUCKETS(n); keys are below n. */
void ties_map_clear(struct ties_map *map);
/* Inserts a key; an existing key stays in place. */
void ties_map_put(struct ties_map *map, uint32_t key);
/* The first key, or the key after a key; UINT32_MAX: the end. */
uint32_t ties_map_first(const struct ties_map *map);
uint32_t ties_map_next(const struct ties_map *map, uint32_t key);

struct engine;
/* Renumbers all events. */
void ties_order(struct engine *engine);

#endif
