/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/client/client_hot.h"

#include "base/clock.h"
#include "base/log.h"
#include "engine/engines.h"
#include "sparse/client/client_hot_state.h"
#include "sparse/client/client_queue.h"
#include "sparse/hot/hot_number.h"
#include "sparse/hot/hot_order.h"

#include <stdlib.h>
#include <string.h>

#define KEPT_PACKETS 4096u
#define RECEIVES 16u /* calls of child_receive() in one of client_hot_serve() */
#define BATCHES 4u   /* in one call of hot_serve */
/*
 * Counts are told after this time, then after a quarter more each time: the server counts cold rows
 * at once, so hot rows would look colder than they are if their counts were late by much.
 */
#define HEAT_FIRST (NSEC_PER_SEC / 10)
#define HEAT_EVERY (2 * NSEC_PER_SEC) /* at most */
#define JOIN_NS (10 * NSEC_PER_SEC)   /* 10 s; a silent aggregator is lost after half of it */

static struct client_hot *hot_of(struct shard *shard)
{
	if (!shard->hot)
		shard->hot = calloc(1, sizeof(*shard->hot));
	return shard->hot;
}

/* ---- rows to the server ---- */

/* Row i of the buffer for the server. */
static void put_cold(struct client_hot *hot, uint32_t i, uint64_t key, const uint32_t *values)
{
	uint32_t width = hot->about.width;

	hot->keys[i] = key;
	for (uint32_t k = 0; k < width; k++)
		hot->floats[(size_t)i * width + k] =
			hot_value(values[k], hot->about.kind == SPARSE_FIXED, hot->unit);
}

static void push_cold(struct shard *shard, struct trib_sparse_request *request, uint32_t n)
{
	struct client_hot *hot = shard->hot;

	if (n && queue_push_cold(shard, request, hot->keys, hot->floats, n) != TRIB_OK)
		client_fail(shard->table, TRIB_ERR_NO_MEMORY, "%s", trib_last_error());
}

/* ---- pushes ---- */

static bool to_hot(const struct client_hot *hot, const float *row, uint32_t *out)
{
	if (hot->about.kind == SPARSE_FIXED)
		return hot_from_floats(row, hot->about.width, 1 / hot->unit, out);
	return hot_from_bits(row, hot->about.width, out);
}

bool client_hot_take(struct shard *shard, uint64_t key, const float *row)
{
	struct client_hot *hot = shard->hot;
	const struct hot_map *map = client_hot_map(hot);
	uint32_t number = map ? hot_map_row(map, key) : HOT_NO_ROW;
	bool had_cold = hot && hot->has_cold;

	if (map)
		hot->looked++;
	if (number == HOT_NO_ROW || number >= hot->rows)
		return false;
	hot->known++;
	hot->has_cold = true;
	if (hot->n >= hot->rows || hot->n >= hot_sender_room(&hot->sender) ||
	    !to_hot(hot, row, hot->values + (size_t)hot->n * hot->about.width))
		return false;
	hot->has_cold = had_cold;
	hot->counts[number]++; /* the server counts cold rows itself */
	hot->order[hot->n] = hot_order_entry(number, hot->n);
	hot->n++;
	return true;
}

void client_hot_post(struct shard *shard, struct trib_sparse_request *request)
{
	struct client_hot *hot = shard->hot;
	const struct hot_map *map = client_hot_map(hot);
	uint32_t n = hot ? hot->n : 0, width;

	if (!n)
		return;
	hot->n = 0;
	width = hot->about.width;
	hot_order_sort(hot->order, n);
	for (uint32_t i = 0; i < n; i++) {
		hot->numbers[i] = hot_order_row(hot->order[i]);
		memcpy(hot->sorted + (size_t)i * width,
		       hot->values + (size_t)hot_order_place(hot->order[i]) * width,
		       (size_t)width * 4);
	}
	/* The lock was held since client_hot_take(), so the map and the room are the same. */
	request->left += hot_sender_post(
		&hot->sender, (uintptr_t)request, (uint16_t)map->generation,
		&(struct hot_rows){ .n = n, .numbers = hot->numbers, .values = hot->sorted });
	shard->table->stats.hot_rows += n;
}

/*
 * How often rows were pushed that the server sees only as sums, and whether the heat has moved. All
 * workers tell it, and the server's link is what they have least of: a row takes one byte. What is
 * above its range is told the next time.
 */
static void tell_heat(struct shard *shard, bool has_moved)
{
	struct client_hot *hot = shard->hot;
	const struct hot_map *map = hot_maps_newest(&hot->maps);
	uint32_t n = map->n < hot->rows ? map->n : hot->rows;
	uint8_t *told;

	while (n && !hot->counts[n - 1])
		n--;
	if (shard->state != SHARD_OPEN || (!n && !has_moved))
		return;
	told = message_add_counts(&shard->control, hot->incarnation, map->generation,
	                          has_moved ? MESSAGE_MOVED : 0, n);
	for (uint32_t row = 0; told && row < n; row++) {
		told[row] = hot->counts[row] < UINT8_MAX ? (uint8_t)hot->counts[row] : UINT8_MAX;
		hot->counts[row] -= told[row];
	}
}

void client_hot_pushed(struct shard *shard)
{
	struct client_hot *hot = shard->hot;

	if (!hot)
		return;
	if (hot->has_cold)
		client_pull_bar(shard, shard->pushes);
	hot->has_cold = false;
	if (heat_watch_add(&hot->watch, hot->looked, hot->known))
		tell_heat(shard, true);
	hot->looked = hot->known = 0;
}

bool client_hot_has_room(const struct shard *shard)
{
	const struct client_hot *hot = shard->hot;

	return !client_hot_map(hot) ||
	       hot_sender_room(&hot->sender) > KEPT_PACKETS / 4 * hot->sender.per_packet;
}

/* ---- what the sender says ---- */

static void on_done(void *context, uint64_t tag)
{
	(void)context;
	queue_part_ended((struct trib_sparse_request *)(uintptr_t)tag);
}

/*
 * Rows of a packet that met another map, or that no log has: they go to the server, as pushes that
 * were never hot. Nobody else can have applied them.
 */
static void on_back(void *context, const struct hot_back *back)
{
	struct shard *shard = context;
	struct client_hot *hot = shard->hot;
	struct trib_sparse_request *request = (void *)(uintptr_t)back->tag;
	const struct hot_map *map = hot_maps_find(&hot->maps, back->generation);

	for (uint32_t i = 0; map && i < back->rows.n; i++)
		put_cold(hot, i, hot_map_key(map, back->rows.numbers[i]),
		         back->rows.values + (size_t)i * hot->about.width);
	if (map)
		push_cold(shard, request, back->rows.n);
	else
		client_fail(
			shard->table, TRIB_ERR_MISMATCH,
			"shard %u (%s): hot rows of map %u cannot be sent again: the map is too "
			"old",
			shard->number, shard->address_text, back->generation);
	client_pull_bar(shard, shard->pushes);
	if (!back->goes_on)
		queue_part_ended(request);
}

/* A map that is not kept any more has no keys: on_back() says so. */
static uint32_t on_renumber(void *context, uint16_t generation, uint32_t number)
{
	const struct client_hot *hot = ((struct shard *)context)->hot;
	const struct hot_map *old = hot_maps_find(&hot->maps, generation);
	uint64_t key = old ? hot_map_key(old, number) : HOT_NO_KEY;
	uint32_t row =
		key == HOT_NO_KEY ? HOT_NO_ROW : hot_map_row(hot_maps_newest(&hot->maps), key);

	return row < hot->rows ? row : HOT_NO_ROW;
}

/* ---- joining and leaving ---- */

static void buffers_free(struct client_hot *hot)
{
	free(hot->counts);
	free(hot->order);
	free(hot->values);
	free(hot->numbers);
	free(hot->sorted);
	free(hot->places);
	free(hot->keys);
	free(hot->floats);
	hot->counts = hot->order = hot->values = hot->sorted = NULL;
	hot->numbers = NULL;
	hot->places = NULL;
	hot->keys = NULL;
	hot->floats = NULL;
}

static bool buffers_make(struct client_hot *hot)
{
	size_t rows = hot->rows, values = rows * hot->about.width;

	hot->counts = calloc(rows, sizeof(*hot->counts));
	hot->order = malloc(rows * sizeof(*hot->order));
	hot->values = malloc(values * sizeof(*hot->values));
	hot->numbers = malloc(rows * sizeof(*hot->numbers));
	hot->sorted = malloc(values * sizeof(*hot->sorted));
	hot->places = malloc(rows * sizeof(*hot->places));
	hot->keys = malloc(rows * sizeof(*hot->keys));
	hot->floats = malloc(values * sizeof(*hot->floats));
	return hot->counts && hot->order && hot->values && hot->numbers && hot->sorted &&
	       hot->places && hot->keys && hot->floats;
}

/* Forgets the incarnation. The sender is empty. */
static void incarnation_end(struct shard *shard)
{
	struct client_hot *hot = shard->hot;
	const struct hot_map *map = hot_maps_newest(&hot->maps);

	if (map)
		shard->table->stats.hot_set -= map->n;
	child_close(hot->child);
	hot->child = NULL;
	if (hot->has_sender) {
		hot_sender_close(&hot->sender);
		hot_puller_close(&hot->puller);
	}
	hot->has_sender = false;
	hot_maps_free(&hot->maps);
	buffers_free(hot);
	hot->incarnation = 0;
	hot->n = 0;
}

static void tell_lost(struct shard *shard)
{
	struct client_hot *hot = shard->hot;
	const char *why = "";

	if (!hot || !hot->incarnation || hot->is_told || shard->state != SHARD_OPEN)
		return;
	if (hot->child)
		child_failure(hot->child, &why);
	hot->is_told = message_add_lost(&shard->control, hot->incarnation, why);
}

/* The server may have restarted: its record says what it has. */
void client_hot_connected(struct shard *shard)
{
	if (shard->hot)
		shard->hot->is_told = false;
	tell_lost(shard);
}

static void map_add(struct shard *shard, uint32_t generation, const uint64_t *keys, uint32_t n)
{
	struct client_hot *hot = shard->hot;
	const struct hot_map *old = hot_maps_newest(&hot->maps);
	uint32_t before = old ? old->n : 0;

	if (hot->has_sender) { /* counts are by row, and rows get other keys now */
		tell_heat(shard, false);
		memset(hot->counts, 0, hot->rows * sizeof(*hot->counts));
	}
	if (!hot_maps_add(&hot->maps, generation, keys, n, hot->rows ? hot->rows : n))
		return;
	hot->watch = (struct heat_watch){ 0 };
	shard->table->stats.hot_set += hot_maps_newest(&hot->maps)->n - before;
	/* Keys that become hot now may have pushes on their way to the server. */
	client_pull_bar(shard, shard->pushes);
	if (hot->has_sender)
		hot_sender_remap(&hot->sender, (uint16_t)generation);
}

static void take_hot(struct shard *shard, const struct message *message)
{
	struct client_hot *hot = hot_of(shard);
	struct child_options options = { .cookie = message->u.hot.cookie,
		                         .key = message->u.hot.key,
		                         .pool_bytes = message->u.hot.pool_bytes,
		                         .timeout_ns = shard->table->timeout_ns < JOIN_NS
		                                               ? shard->table->timeout_ns
		                                               : JOIN_NS,
		                         .job = (uint16_t)message->u.hot.job,
		                         .engine = ENGINE_SPARSE,
		                         .rank = shard->table->hello.rank,
		                         .size = message->u.hot.size };

	if (!hot || message->u.hot.width != shard->table->width)
		return;
	if (hot->incarnation) { /* its record has to come first */
		hot->missed = (uint32_t)message->number;
		return;
	}
	hot->missed = 0;
	hot->about = message->u.hot;
	hot->incarnation = (uint32_t)message->number;
	hot->is_told = false;
	hot->rows = hot->ack_epoch = hot->epoch = 0;
	hot->unit = ldexp(1, hot_exponent(shard->table->hello.largest));
	map_add(shard, message->u.hot.generation, message->keys, message->count);
	if (udp_resolve(hot->about.address, UDP_DEFAULT_PORT, &options.aggregator) != TRIB_OK ||
	    child_open(&hot->child, &options, clock_now()) != TRIB_OK) {
		log_warn("shard %u: no way to the aggregator %s: %s", shard->number,
		         hot->about.address, trib_last_error());
		tell_lost(shard);
	}
}

static void take_sealed(struct shard *shard, const struct message *message)
{
	struct client_hot *hot = shard->hot;
	struct sparse_record record = { .low = message->u.record.low };

	if (!hot || !hot->incarnation || message->number != hot->incarnation)
		return;
	memcpy(record.seen, message->u.record.seen, sizeof(record.seen));
	if (hot->has_sender) {
		shard->table->stats.moves++;
		hot_puller_lost(&hot->puller);
		hot_sender_lost(&hot->sender, &record);
	}
	incarnation_end(shard);
	/* The server opens another one in place of one that this worker could not join. */
	if (hot->missed > message->number)
		message_add_lost(&shard->control, hot->missed, "");
	hot->missed = 0;
}

void client_hot_message(struct shard *shard, const struct message *message)
{
	struct client_hot *hot = shard->hot;

	if (message->kind == MESSAGE_HOT)
		take_hot(shard, message);
	else if (message->kind == MESSAGE_SEALED)
		take_sealed(shard, message);
	else if (hot && hot->incarnation && message->number == hot->incarnation)
		map_add(shard, message->generation, message->keys, message->count);
}

/* ---- serving ---- */

/* False: trib_last_error() says why. */
static bool sender_open(struct shard *shard, uint64_t now)
{
	struct client_hot *hot = shard->hot;
	const struct wire_welcome *welcome = child_welcome(hot->child);
	const struct hot_map *map = hot_maps_newest(&hot->maps);
	struct hot_sender_options options = { .child = shard->table->hello.rank,
		                              .width = hot->about.width,
		                              .payload = welcome->payload,
		                              .kept = KEPT_PACKETS,
		                              .calls = { shard, on_done, on_back, on_renumber } };

	hot->about.layout = hot_layout(welcome, hot->about.layout);
	hot->rows = hot_rows_most(welcome, hot->about.width, hot->about.layout);
	if (!hot->rows)
		return false;
	status_fail(TRIB_ERR_NO_MEMORY, "a worker has no memory for hot rows");
	if (!map || !buffers_make(hot) || !hot_sender_open(&hot->sender, &options))
		return false;
	if (!hot_puller_open(&hot->puller, hot->about.width, welcome->payload)) {
		hot_sender_close(&hot->sender);
		return false;
	}
	hot->puller.context = shard;
	hot->puller.values = client_pull_values;
	hot_sender_remap(&hot->sender, (uint16_t)map->generation);
	/* Until now all rows of the map went to the server. */
	client_pull_bar(shard, shard->pushes);
	hot->told = (struct hot_sender_stats){ 0 };
	hot->heat_gap = HEAT_FIRST;
	hot->heat_at = now + hot->heat_gap;
	return hot->has_sender = true;
}

static uint64_t position(void *context, const struct wire_header *header)
{
	const struct client_hot *hot = ((struct shard *)context)->hot;

	return hot_sender_position(&hot->sender, header);
}

static void take(void *context, const struct wire_header *header, uint32_t bytes, uint64_t now)
{
	struct client_hot *hot = ((struct shard *)context)->hot;

	if (!hot->has_sender)
		return;
	if (header->op == SPARSE_PULL) {
		hot_puller_take(&hot->puller, header, bytes, now);
		return;
	}
	hot_sender_take(&hot->sender, header, bytes, now);
	if (header->op == SPARSE_NEWS && (int32_t)(header->pos - hot->epoch) > 0)
		hot->epoch = header->pos;
}

/* True: more is due. */
static bool send_some(struct client_hot *hot, uint64_t now)
{
	for (unsigned i = 0; i < BATCHES; i++) {
		void *room;
		uint64_t at;

		while ((room = child_room(hot->child))) {
			uint32_t bytes = hot_sender_next(&hot->sender, now, room, &at);

			if (!bytes) {
				bytes = hot_puller_next(&hot->puller, now, room);
				at = ((const struct wire_header *)room)->pos;
			}
			if (!bytes)
				break;
			child_add(hot->child, bytes, at);
		}
		child_flush(hot->child);
		if (room || child_is_full(hot->child))
			return false;
	}
	return true;
}

static void note_stats(struct shard *shard)
{
	struct client_hot *hot = shard->hot;
	const struct hot_sender_stats *stats = &hot->sender.stats;

	shard->table->stats.hot_packets += stats->packets - hot->told.packets;
	shard->table->stats.resent_packets += stats->resent - hot->told.resent;
	hot->told = *stats;
}

static uint64_t sender_serve(struct shard *shard, uint64_t now)
{
	struct client_hot *hot = shard->hot;
	uint64_t wake;

	/* While cold rows wait for the socket, the user waits for them anyway. */
	hot->hurries |= shard->table->hurries;
	if (hot->hurries && !shard->unsent) {
		hot_sender_hurry(&hot->sender);
		hot->hurries = false;
	}
	wake = send_some(hot, now) ? now : hot_sender_wake(&hot->sender);
	if (child_is_full(hot->child)) /* poll waits until it has room */
		return hot->heat_at;
	if (hot_puller_wake(&hot->puller) < wake)
		wake = hot_puller_wake(&hot->puller);
	if (now >= hot->heat_at) {
		hot->heat_gap += hot->heat_gap / 4;
		if (hot->heat_gap > HEAT_EVERY)
			hot->heat_gap = HEAT_EVERY;
		hot->heat_at = now + hot->heat_gap;
		tell_heat(shard, false);
	}
	note_stats(shard);
	return wake < hot->heat_at ? wake : hot->heat_at;
}

uint64_t client_hot_serve(struct shard *shard, uint64_t now)
{
	struct client_hot *hot = shard->hot;
	const struct child_listener listener = { shard, position, take };
	uint64_t wake = UINT64_MAX, step;
	const char *why;
	bool had_room;

	if (!hot || !hot->child)
		return UINT64_MAX;
	had_room = client_hot_has_room(shard);
	/* All that has come: what waits in the socket is not lost. */
	for (unsigned i = 0; i < RECEIVES && child_receive(hot->child, &listener, now); i++)
		wake = i + 1 == RECEIVES ? now : wake;
	if (!had_room && client_hot_has_room(shard))
		pthread_cond_broadcast(&shard->table->changed);
	step = child_step(hot->child, now);
	wake = step < wake ? step : wake;
	if (child_state(hot->child) == CHILD_JOINED && !hot->has_sender && !sender_open(shard, now))
		child_abort(hot->child, trib_last_error());
	if (child_state(hot->child) == CHILD_FAILED) {
		if (!hot->is_told && shard->state == SHARD_OPEN) {
			child_failure(hot->child, &why);
			log_notice("shard %u: hot rows are lost: %s", shard->number, why);
		}
		tell_lost(shard);
		return UINT64_MAX;
	}
	if (hot->has_sender) {
		step = sender_serve(shard, now);
		wake = step < wake ? step : wake;
	}
	return wake;
}

unsigned client_hot_polls(struct shard *shard, struct pollfd *polls)
{
	if (!shard->hot || !shard->hot->child)
		return 0;
	polls[0] = (struct pollfd){ .fd = child_fd(shard->hot->child), .events = POLLIN };
	if (child_is_full(shard->hot->child))
		polls[0].events |= POLLOUT;
	return 1;
}

void client_hot_end(struct shard *shard)
{
	if (!shard->hot)
		return;
	if (shard->hot->has_sender) { /* the table has failed, or all has ended */
		hot_puller_lost(&shard->hot->puller);
		hot_sender_lost(&shard->hot->sender, NULL);
	}
	incarnation_end(shard);
	free(shard->hot);
	shard->hot = NULL;
}
