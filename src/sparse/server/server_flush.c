/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of hot rows: from the aggregator into the log. */
#include "sparse/server/hot_table.h"

#include "base/clock.h"
#include "base/log.h"
#include "sparse/hot/hot_number.h"

#include <stdlib.h>
#include <string.h>

#define IDLE_NS (NSEC_PER_SEC / 10)   /* between two looks at a bank that was empty */
#define FULL_NS (NSEC_PER_SEC / 1000) /* 1 ms: until a full socket is tried again */
#define BATCHES 8u                    /* of packets, in one call */

/* Values of a row for the aggregator's cache. */
static const float *value_of(void *context, uint32_t row)
{
	struct server_hot *hot = context;
	const struct hot_map *map = hot_maps_find(&hot->maps, (uint16_t)hot->flusher.generation);
	uint64_t key = map ? hot_map_key(map, row) : HOT_NO_KEY;

	if (key == HOT_NO_KEY)
		return NULL;
	sparse_store_read(hot->table->table->store, key, hot->row);
	return hot->row;
}

void hot_flush_touch(struct server_hot *hot, const uint64_t *keys, uint32_t n)
{
	const struct hot_map *map;

	if (!hot->has_flusher || !(hot->about.layout & SPARSE_VALUES))
		return;
	map = hot_maps_find(&hot->maps, (uint16_t)hot->flusher.generation);
	for (uint32_t i = 0; map && i < n; i++) {
		uint32_t row = hot_map_row(map, keys[i]);

		if (row == HOT_NO_ROW)
			continue;
		hot->touched[row / 64] |= 1ull << row % 64;
		if (!hot->is_touched)
			hot->touched_by = map->generation;
		hot->is_touched = true;
	}
}

/* A new map needs all values. */
static void touch_all(struct server_hot *hot)
{
	const struct hot_map *map = hot_maps_find(&hot->maps, (uint16_t)hot->flusher.generation);

	for (uint32_t row = 0; map && row < map->n; row++)
		hot_flusher_touch(&hot->flusher, row);
	hot->filled = hot->flusher.generation;
}

/* What was pushed to the server is applied now. */
static void touch_committed(struct server_hot *hot)
{
	if (!hot->is_touched)
		return;
	if (hot->touched_by != hot->flusher.generation)
		touch_all(hot); /* the rows have other numbers since */
	for (uint32_t row = 0; row < hot->rows; row++)
		if (hot->touched[row / 64] >> row % 64 & 1)
			hot_flusher_touch(&hot->flusher, row);
	memset(hot->touched, 0, sizeof(hot->touched));
	hot->is_touched = false;
}

bool hot_flush_open(struct server_table *table, const struct sparse_server_options *options,
                    uint64_t now)
{
	struct server_hot *hot = table->hot;
	const struct wire_welcome *welcome = child_welcome(hot->child);
	uint32_t width = table->table->options.width;
	uint32_t layout = hot_layout(welcome, hot->about.layout);
	struct hot_flusher_options about = { .workers = hot->about.size - 1,
		                             .payload = welcome->payload,
		                             .setup = { .width = width,
		                                        .kind = hot->about.kind,
		                                        .layout = layout,
		                                        .generation = hot->about.generation },
		                             .every_ns = options->flush_ns,
		                             .idle_ns = options->flush_ns > IDLE_NS
		                                                ? options->flush_ns
		                                                : IDLE_NS,
		                             .context = hot,
		                             .value = value_of };

	hot->filled = 0;
	hot->is_touched = false;
	memset(hot->touched, 0, sizeof(hot->touched));
	hot->rows = hot_rows_most(welcome, width, layout);
	/* A round is one entry of the log. */
	if (hot->rows > ENTRY_BYTES_MAX / 2 / (8 + 4 * width))
		hot->rows = ENTRY_BYTES_MAX / 2 / (8 + 4 * width);
	about.setup.rows = hot->rows;
	if (!hot->rows)
		return false;
	status_fail(TRIB_ERR_NO_MEMORY, "the server has no memory for hot rows");
	hot->keys = malloc(hot->rows * sizeof(*hot->keys));
	hot->values = malloc((size_t)hot->rows * width * sizeof(*hot->values));
	if (!hot->keys || !hot->values)
		return false;
	return hot->has_flusher = hot_flusher_open(&hot->flusher, &about, now);
}

void hot_flush_close(struct server_hot *hot)
{
	if (hot->has_flusher)
		hot_flusher_close(&hot->flusher);
	hot->has_flusher = hot->is_appended = false;
	free(hot->keys);
	free(hot->values);
	hot->keys = NULL;
	hot->values = NULL;
}

/* ---- the log ---- */

/* Rows with their keys; gives their number. A row without a key has no gradient to lose. */
static uint32_t rows_convert(struct server_hot *hot, const struct hot_flush *flush,
                             const struct hot_map *map, uint32_t width)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < flush->n; i++) {
		uint64_t key = hot_map_key(map, flush->numbers[i]);

		if (key == HOT_NO_KEY)
			continue;
		hot->keys[n] = key;
		for (uint32_t k = 0; k < width; k++)
			hot->values[(size_t)n * width + k] =
				hot_value(flush->values[(size_t)i * width + k],
			                  hot->about.kind == SPARSE_FIXED, hot->unit);
		n++;
	}
	return n;
}

/* Appends the round that waits. False: it cannot be logged, and the incarnation has to end. */
static bool flush_append(struct sparse_server *server, struct server_table *table,
                         const struct hot_flush *flush)
{
	struct server_hot *hot = table->hot;
	const struct hot_map *map = hot_maps_find(&hot->maps, (uint16_t)flush->generation);
	struct sparse_entry entry = { .kind = SPARSE_ENTRY_FLUSH,
		                      .table = table->number,
		                      .incarnation = hot->incarnation,
		                      .epoch = flush->epoch,
		                      .heat = 1,
		                      .children = hot->about.size - 1,
		                      .records = hot->records,
		                      .width = table->table->options.width,
		                      .keys = hot->keys,
		                      .rows = hot->values };

	if (!map)
		return false;
	for (uint32_t i = 0; i < entry.children; i++) {
		hot->records[i].low = flush->records[i].low;
		memcpy(hot->records[i].seen, flush->records[i].seen, sizeof(hot->records[i].seen));
	}
	entry.n = rows_convert(hot, flush, map, entry.width);
	if (sparse_log_append(server->log, &entry) != TRIB_OK) {
		log_error("table '%s': a flush cannot be logged: %s", table->name,
		          trib_last_error());
		return false;
	}
	hot->is_appended = true;
	hot->flushes++;
	hot->flushed_rows += entry.n;
	return true;
}

/* ---- packets ---- */

static uint64_t position(void *context, const struct wire_header *header)
{
	(void)context;
	return header->pos;
}

static void take(void *context, const struct wire_header *header, uint32_t bytes, uint64_t now)
{
	struct server_hot *hot = context;

	if (hot->has_flusher)
		hot_flusher_take(&hot->flusher, header, bytes, now);
}

/* True: more is due. */
static bool send_some(struct server_hot *hot, uint64_t now)
{
	for (unsigned i = 0; i < BATCHES; i++) {
		struct wire_header *room;

		while ((room = child_room(hot->child))) {
			uint32_t bytes = hot_flusher_next(&hot->flusher, now, room);

			if (!bytes)
				break;
			child_add(hot->child, bytes, room->pos);
		}
		child_flush(hot->child);
		if (room || child_is_full(hot->child))
			return false;
	}
	return true;
}

uint64_t hot_flush_serve(struct sparse_server *server, struct server_table *table, uint64_t now)
{
	struct server_hot *hot = table->hot;
	const struct child_listener listener = { hot, position, take };
	bool more = child_receive(hot->child, &listener, now);
	struct hot_flush flush;

	if (!hot->has_flusher)
		return more ? now : UINT64_MAX;
	if (!hot->is_appended && hot_flusher_flush(&hot->flusher, &flush) &&
	    !flush_append(server, table, &flush))
		hot->flusher.failed = true;
	if (hot->filled != hot->flusher.generation)
		touch_all(hot);
	more |= send_some(hot, now);
	if (child_is_full(hot->child))
		return now + FULL_NS;
	return more ? now : hot_flusher_wake(&hot->flusher);
}

void hot_flush_committed(struct server_hot *hot, uint64_t now)
{
	if (!hot->has_flusher)
		return;
	touch_committed(hot);
	if (!hot->is_appended)
		return;
	hot->is_appended = false;
	hot_flusher_logged(&hot->flusher);
	send_some(hot, now);
}
