/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows of a table are hot: the server chooses, by what was pushed lately. */
#include "sparse/server/hot_table.h"
#include "sparse/server/server_connection.h"
#include "sparse/server/server_hot.h"

#include "base/clock.h"
#include "base/log.h"

#include <stdlib.h>

#define HEAT_ROOM (2 * SPARSE_ROWS_MAX) /* keys that are counted */
#define HEAT_KEEP 224u                  /* of 256: what is left of a count after a refresh */
#define HEAT_ENOUGH 256u                /* updates of a hot row on average: then counts decay */
#define HEAT_GAIN 0.02                  /* a new map has to take this share more */
#define HEAT_MOVED 16u                  /* of 256: what is left of old counts then */
#define MOVED_NS (NSEC_PER_SEC / 4)     /* until the next map then */
#define REFRESH_MOST (2 * NSEC_PER_SEC)

/* NULL: no memory. */
static struct server_hot *hot_table_of(struct server_table *table)
{
	struct server_hot *hot = table->hot;

	if (hot)
		return hot;
	hot = calloc(1, sizeof(*hot));
	if (!hot)
		return NULL;
	hot->heat_memory = malloc(heat_set_bytes(HEAT_ROOM));
	if (!hot->heat_memory) {
		free(hot);
		return NULL;
	}
	heat_set_init(&hot->heat, hot->heat_memory, HEAT_ROOM);
	hot->table = table;
	return table->hot = hot;
}

void server_hot_pushed(struct sparse_server *server, struct server_table *table,
                       const uint64_t *keys, const uint64_t *counts, uint32_t n)
{
	struct server_hot *hot = server->options.aggregators ? hot_table_of(table) : NULL;

	if (!hot || !n)
		return;
	if (!hot->heat_since)
		hot->heat_since = clock_now();
	for (uint32_t i = 0; i < n; i++)
		heat_set_add(&hot->heat, keys[i], counts ? counts[i] : 1);
	if (counts)
		return;
	table->is_used = true;
	hot_flush_touch(hot, keys, n);
}

bool hot_choose(struct server_hot *hot, uint32_t generation)
{
	const struct hot_map *old = hot_maps_newest(&hot->maps);
	struct heat_key *ranked = malloc((hot->heat.n + 1) * sizeof(*ranked));
	uint64_t *keys = malloc((hot->rows + 1) * sizeof(*keys));
	struct heat_choice choice = { .old_keys = old ? old->keys : NULL,
		                      .old_rows = old ? old->n : 0,
		                      .ranked = ranked,
		                      .total = hot->heat.total,
		                      .rows = hot->rows,
		                      .gain = HEAT_GAIN,
		                      .keys = keys };
	bool is_new = false;

	if (ranked && keys) {
		choice.ranked_n = heat_set_list(&hot->heat, ranked);
		is_new = heat_choose(&choice) == TRIB_OK && choice.is_new && choice.n;
		hot->share = is_new ? choice.share : choice.old_share;
	}
	if (is_new)
		is_new = hot_maps_add(&hot->maps, generation, keys, choice.n, hot->rows);
	free(ranked);
	free(keys);
	return is_new;
}

static void map_tell(struct sparse_server *server, struct server_table *table)
{
	struct server_hot *hot = table->hot;
	const struct hot_map *map = hot_maps_newest(&hot->maps);

	hot->told = map->generation;
	for (uint32_t i = 0; i < server->n_connections; i++) {
		struct connection *c = server->connections[i];

		if (c->state == CONNECTION_OPEN && c->table == table &&
		    !message_add_map(&c->out, hot->incarnation, map->generation, map->keys, map->n))
			connection_drop(c);
	}
}

/* The rows of this map have become rare among those that a worker pushes. */
static void note_moved(struct server_hot *hot, uint32_t generation)
{
	if (generation != hot->maps.newest)
		return;
	if (hot->moved_map != generation)
		hot->moved_tells = 0;
	hot->moved_map = generation;
	hot->moved_tells++;
}

/* Counts of a map that is not kept any more are only missed. */
void server_hot_counted(struct server_table *table, const struct message *message)
{
	struct server_hot *hot = table->hot;
	struct sparse_store *store = table->table->store;
	const struct hot_map *map =
		hot && message->number == hot->incarnation
			? hot_maps_find(&hot->maps, (uint16_t)message->generation)
			: NULL;

	if (!map || map->generation != message->generation)
		return;
	for (uint32_t i = 0; i < message->count && i < map->n; i++) {
		uint32_t row;

		if (!message->pushes[i] || map->keys[i] == HOT_NO_KEY)
			continue;
		row = sparse_store_find(store, map->keys[i]);
		if (row != SPARSE_ROW_NONE)
			sparse_store_heat_add(store, row, message->pushes[i]);
		heat_set_add(&hot->heat, map->keys[i], message->pushes[i]);
	}
	if (message->flags & MESSAGE_MOVED)
		note_moved(hot, message->generation);
}

/*
 * Have other rows become popular, as half of the workers say? Then old counts would keep the old
 * rows in the map for long.
 */
static void heat_move(struct server_hot *hot, uint64_t now)
{
	if (hot->moved_map != hot->maps.newest || 2 * hot->moved_tells < hot->about.size - 1)
		return;
	hot->moved_tells = 0;
	hot->moves++;
	heat_set_decay(&hot->heat, HEAT_MOVED);
	hot->refresh_gap = MOVED_NS;
	hot->refresh_at = now + MOVED_NS;
}

/* Workers hear of a map when the aggregator has it. */
void hot_refresh(struct sparse_server *server, struct server_table *table, uint64_t now)
{
	struct server_hot *hot = table->hot;
	bool is_usual;

	if (hot->told != hot->maps.newest && hot->flusher.generation == hot->maps.newest)
		map_tell(server, table);
	heat_move(hot, now);
	if (now < hot->refresh_at || hot->told != hot->maps.newest)
		return;
	/* At first little is known, so the map is looked at sooner. */
	is_usual = hot->refresh_gap >= REFRESH_MOST;
	hot->refresh_gap = is_usual ? REFRESH_MOST : 2 * hot->refresh_gap;
	hot->refresh_at = now + hot->refresh_gap;
	if (hot_choose(hot, hot->maps.newest + 1)) {
		hot_flusher_remap(&hot->flusher, hot->maps.newest);
		log_debug("table '%s': map %u has %u rows, for %.1f %% of the pushed rows",
		          table->name, hot->maps.newest, hot_maps_newest(&hot->maps)->n,
		          hot->share * 100);
	}
	if (is_usual && hot->heat.total / HEAT_UNIT > (uint64_t)HEAT_ENOUGH * hot->rows)
		heat_set_decay(&hot->heat, HEAT_KEEP);
}
