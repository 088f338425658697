/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/ties.h"
#include "sim/engine.h"
#include "plan/cluster/sort.h"

#include <string.h>

/* ---- libc++'s unordered_map of numbers that are their own hash ---- */

static uint32_t bucket_of(const struct ties_map *map, uint32_t node)
{
	uint32_t key = node - 1, n = map->n_buckets;

	return n & (n - 1) ? key % n : key & (n - 1);
}

static uint32_t prime_from(uint32_t n)
{
	for (;; n++) {
		uint32_t i = 2;

		while (i * i <= n && n % i)
			i++;
		if (i * i > n)
			return n;
	}
}

void ties_map_clear(struct ties_map *map)
{
	map->n = map->n_buckets = 0;
	map->next[0] = 0;
}

static void map_grow(struct ties_map *map, uint32_t buckets)
{
	uint32_t before = 0, node = map->next[0], before_bucket;

	if (buckets == 1)
		buckets = 2;
	else if (buckets & (buckets - 1))
		buckets = prime_from(buckets);
	map->n_buckets = buckets;
	memset(map->buckets, 0, buckets * sizeof(*map->buckets));
	if (!node)
		return;
	before_bucket = bucket_of(map, node);
	map->buckets[before_bucket] = before + 1;
	for (before = node; (node = map->next[before]);) {
		uint32_t bucket = bucket_of(map, node);

		if (bucket == before_bucket) {
			before = node;
		} else if (!map->buckets[bucket]) {
			map->buckets[bucket] = before + 1;
			before = node;
			before_bucket = bucket;
		} else {
			uint32_t at = map->buckets[bucket] - 1;

			map->next[before] = map->next[node];
			map->next[node] = map->next[at];
			map->next[at] = node;
		}
	}
}

void ties_map_put(struct ties_map *map, uint32_t key)
{
	uint32_t node = key + 1, bucket, at, buckets = map->n_buckets;

	if (buckets && map->buckets[bucket_of(map, node)])
		for (at = map->next[map->buckets[bucket_of(map, node)] - 1];
		     at && bucket_of(map, at) == bucket_of(map, node); at = map->next[at])
			if (at == node)
				return;
	if (map->n + 1 > buckets) {
		bool is_power = buckets > 2 && !(buckets & (buckets - 1));
		uint32_t twice = 2 * buckets + !is_power;

		map_grow(map, twice > map->n + 1 ? twice : map->n + 1);
	}
	map->n++;
	bucket = bucket_of(map, node);
	if (map->buckets[bucket]) {
		at = map->buckets[bucket] - 1;
		map->next[node] = map->next[at];
		map->next[at] = node;
		return;
	}
	map->next[node] = map->next[0];
	map->next[0] = node;
	map->buckets[bucket] = 1;
	if (map->next[node])
		map->buckets[bucket_of(map, map->next[node])] = node + 1;
}

uint32_t ties_map_first(const struct ties_map *map)
{
	return map->next[0] - 1;
}

uint32_t ties_map_next(const struct ties_map *map, uint32_t key)
{
	return map->next[key + 1] - 1;
}

/* ---- the order of events ---- */

static bool came_before(const void *context, uint32_t a, uint32_t b)
{
	const struct engine *engine = context;

	return engine->runs[a].job < engine->runs[b].job;
}

static uint32_t chief(uint32_t *above, uint32_t i)
{
	while (above[i] != i)
		i = above[i] = above[above[i]];
	return i;
}

/* Joins each job, in order of arrival, to all later jobs whose trees meet its tree. */
static void chiefs_find(struct engine *engine, const uint32_t *slots, uint32_t n, uint32_t *above,
                        uint32_t *mark)
{
	const struct groups *groups = &engine->groups;

	for (uint32_t i = 0; i < n; i++)
		above[i] = i;
	for (uint32_t i = 0; i < n; i++) {
		const struct run *run = &engine->runs[slots[i]];
		uint32_t group = groups->group[slots[i]];

		if (groups->size[group] < 2)
			continue;
		for (uint32_t k = 0; k < run->tree_n; k++)
			mark[run->tree[k]] = i + 1;
		for (uint32_t j = i + 1; j < n; j++) {
			const struct run *other = &engine->runs[slots[j]];

			if (groups->group[slots[j]] != group)
				continue;
			for (uint32_t k = 0; k < other->tree_n; k++)
				if (mark[other->tree[k]] == i + 1) {
					above[chief(above, i)] = chief(above, j);
					break;
				}
		}
		for (uint32_t k = 0; k < run->tree_n; k++)
			mark[run->tree[k]] = 0;
	}
}

void ties_order(struct engine *engine)
{
	struct ties_memory *memory = &engine->ties;
	struct ties_map map = { .next = memory->next, .buckets = memory->buckets };
	uint32_t n = 0, order = 1;

	for (uint32_t i = 0; i < engine->queue.n; i++)
		if (engine->queue.entries[i].slot != ENGINE_ARRIVAL)
			memory->slots[n++] = engine->queue.entries[i].slot;
	sort_indices(memory->slots, n, came_before, engine);
	chiefs_find(engine, memory->slots, n, memory->above, memory->mark);
	ties_map_clear(&map);
	for (uint32_t i = 0; i < n; i++)
		ties_map_put(&map, chief(memory->above, i));
	/* Within each sharing group the jobs by arrival, numbered from the group's start. */
	for (uint32_t key = ties_map_first(&map); key != UINT32_MAX;
	     key = ties_map_next(&map, key)) {
		uint32_t slot = memory->slots[key];

		memory->first[key] = order;
		order += engine->groups.size[engine->groups.group[slot]];
	}
	for (uint32_t i = 0; i < n; i++)
		memory->rank[memory->slots[i]] = memory->first[chief(memory->above, i)]++;
	for (uint32_t i = 0; i < engine->queue.n; i++) {
		struct queue_entry *entry = &engine->queue.entries[i];

		if (entry->slot != ENGINE_ARRIVAL)
			entry->order = memory->rank[entry->slot];
	}
	queue_restore(&engine->queue);
}
