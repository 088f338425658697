/* SPDX-License-Identifier: Apache-2.0 */
#include "sparse/server/server_hot.h"

#include "base/clock.h"
#include "base/log.h"
#include "engine/engines.h"
#include "options/json.h"
#include "sparse/hot/hot_number.h"
#include "sparse/layout/row_room.h"
#include "sparse/server/hot_table.h"
#include "sparse/server/server_connection.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define HEAT_FIRST_NS (3 * NSEC_PER_SEC / 10) /* 0.3 s of heat before the first map */
#define BACKOFF_LEAST (NSEC_PER_SEC / 5)
#define BACKOFF_MOST (10 * NSEC_PER_SEC)
#define JOIN_NS (10 * NSEC_PER_SEC)      /* 10 s; a silent aggregator is lost after half of it */
#define REFRESH_FIRST (NSEC_PER_SEC / 4) /* 0.25 s until the second map */
#define USUAL_MTU 1500u
#define USUAL_PAYLOAD 1448u
#define NARROW_MAX 128u /* wider rows use the whole MTU of the path */

/* ---- aggregators ---- */

/* The address of the next aggregator in the list, which is not empty. */
static void aggregator_choose(struct server_hot *hot, const char *list)
{
	unsigned n = 1, at;

	for (const char *c = list; *c; c++)
		n += *c == ',';
	at = hot->aggregator++ % n;
	while (at--)
		list = strchr(list, ',') + 1;
	snprintf(hot->address, sizeof(hot->address), "%.*s", (int)strcspn(list, ","), list);
}

static void say_why(struct server_hot *hot, const char *why)
{
	snprintf(hot->why, sizeof(hot->why), "%s", why);
}

/* ---- opening ---- */

static uint64_t key_of(const struct sparse_server *server, const struct server_table *table,
                       uint32_t incarnation)
{
	uint64_t key = server->random ^ ((uint64_t)table->number << 32 | incarnation);

	key = (key ^ key >> 30) * 0xbf58476d1ce4e5b9ull;
	key = (key ^ key >> 27) * 0x94d049bb133111ebull;
	return (key ^ key >> 31) | 1;
}

static uint32_t payload_about(uint32_t width)
{
	return width > NARROW_MAX ? WIRE_PAYLOAD_MAX : USUAL_PAYLOAD;
}

/* The pool to ask for, so that cells take no more than the memory. */
static uint64_t pool_about(uint64_t memory, uint32_t width)
{
	uint32_t payload = payload_about(width);

	return memory / engine_cell_bytes(payload) * (WIRE_HEADER + payload);
}

/*
 * One bank, if the aggregator can: it has room for twice the rows. Workers wait while it is
 * flushed, but what they push to an aggregator is seldom the limit: cold rows on the server's link
 * are.
 */
static uint32_t layout_of(const struct server_table *table)
{
	return SPARSE_ONE_BANK | (table->is_pulled ? SPARSE_VALUES : 0);
}

/* Rows that fit about; the aggregator's answer tells exactly. */
static uint32_t rows_about(const struct sparse_server *server, const struct server_table *table)
{
	uint32_t width = table->table->options.width;

	return layout_rows_fit(server->options.memory, payload_about(width), width,
	                       layout_of(table));
}

static const char *why_not(const struct sparse_server *server, const struct server_table *table)
{
	const struct server_hot *hot = table->hot;

	if (table->run.path)
		return "the workers have path \"servers\"";
	if (table->clocks.workers >= WIRE_CHILDREN_MAX)
		return "an aggregator takes at most 63 workers and a server";
	if (!rows_about(server, table))
		return "a row does not fit a packet";
	if (table->clocks.present != table->clocks.workers)
		return "not all workers are connected";
	return hot->heat.n && table->is_used ? NULL : "nothing was pushed yet";
}

static void begin_open(struct sparse_server *server, struct server_table *table, uint64_t now)
{
	struct server_hot *hot = table->hot;
	const struct message_hello *run = &table->run;
	struct sparse_entry entry = { .kind = SPARSE_ENTRY_OPEN,
		                      .table = table->number,
		                      .incarnation = table->table->last + 1,
		                      .children = table->clocks.workers };

	hot->rows = rows_about(server, table);
	if (!hot_choose(hot, 1) || sparse_log_append(server->log, &entry) != TRIB_OK) {
		hot_maps_free(&hot->maps);
		hot->open_at = now + BACKOFF_LEAST;
		return;
	}
	aggregator_choose(hot, server->options.aggregators);
	hot->incarnation = entry.incarnation;
	hot->unit = ldexp(1, hot_exponent(run->largest));
	hot->about = (struct message_hot){
		.generation = 1,
		.width = table->table->options.width,
		.kind = run->sums == MESSAGE_SUMS_TABLE ? SPARSE_TABLE : SPARSE_FIXED,
		.layout = layout_of(table),
		.job = run->job,
		.size = table->clocks.workers + 1,
		.cookie = run->cookie,
		.key = key_of(server, table, entry.incarnation),
		.pool_bytes = pool_about(server->options.memory, table->table->options.width)
	};
	memcpy(hot->about.address, hot->address, sizeof(hot->about.address));
	hot->told = 1;
	hot->state = HOT_OPENING;
}

_Static_assert(MESSAGE_ADDRESS == sizeof(((struct server_hot *)0)->address), "addresses");

static bool join(struct sparse_server *server, struct server_table *table, uint64_t now)
{
	struct server_hot *hot = table->hot;
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = NULL };
	struct child_options options = { .cookie = hot->about.cookie,
		                         .key = hot->about.key,
		                         .pool_bytes = hot->about.pool_bytes,
		                         .timeout_ns = JOIN_NS,
		                         .job = (uint16_t)hot->about.job,
		                         .engine = ENGINE_SPARSE,
		                         .rank = hot->about.size - 1,
		                         .size = hot->about.size };

	/* All children use the shortest packets that one of them asks for. */
	options.mtu = hot->about.width > NARROW_MAX ? 0 : USUAL_MTU;
	return udp_resolve(hot->address, UDP_DEFAULT_PORT, &options.aggregator) == TRIB_OK &&
	       child_open(&hot->child, &options, now) == TRIB_OK &&
	       !epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, child_fd(hot->child), &event);
}

static void tell_hot(struct sparse_server *server, struct server_table *table)
{
	struct server_hot *hot = table->hot;
	const struct hot_map *map = hot_maps_newest(&hot->maps);

	for (uint32_t i = 0; i < server->n_connections; i++) {
		struct connection *c = server->connections[i];

		if (c->state == CONNECTION_OPEN && c->table == table &&
		    !message_add_hot(&c->out, hot->incarnation, &hot->about, map->keys, map->n))
			connection_drop(c);
	}
}

/* ---- sealing ---- */

static void begin_seal(struct sparse_server *server, struct server_table *table, const char *why)
{
	struct server_hot *hot = table->hot;
	const struct sparse_entry entry = { .kind = SPARSE_ENTRY_SEAL,
		                            .table = table->number,
		                            .incarnation = hot->incarnation };

	if (hot->state != HOT_OPEN)
		return;
	say_why(hot, why);
	log_line(table->clocks.present ? LOG_NOTICE : LOG_INFO,
	         "table '%s': incarnation %u at %s is over: %s", table->name, hot->incarnation,
	         hot->address, why);
	if (sparse_log_append(server->log, &entry) != TRIB_OK)
		log_error("table '%s': %s", table->name, trib_last_error());
	hot->state = HOT_SEALING;
}

/* The record of a worker, of an incarnation that is sealed. */
static trib_status tell_sealed(struct connection *c, uint32_t number)
{
	const struct sparse_incarnation *incarnation =
		sparse_table_incarnation(c->table->table, number);
	struct message_record record = { 0 };

	if (!incarnation || c->rank >= incarnation->children)
		return status_fail(TRIB_ERR_REFUSED,
		                   "rank %u asks for incarnation %u of table '%s', whose record is "
		                   "not kept any more",
		                   c->rank, number, c->table->name);
	record.low = incarnation->records[c->rank].low;
	memcpy(record.seen, incarnation->records[c->rank].seen, sizeof(record.seen));
	if (!message_add_sealed(&c->out, number, &record))
		connection_drop(c);
	return TRIB_OK;
}

static void end_seal(struct sparse_server *server, struct server_table *table, uint64_t now)
{
	struct server_hot *hot = table->hot;
	bool worked = hot->has_flusher && hot->flusher.rounds;

	for (uint32_t i = 0; i < server->n_connections; i++) {
		struct connection *c = server->connections[i];

		if (c->state == CONNECTION_OPEN && c->table == table &&
		    tell_sealed(c, hot->incarnation) != TRIB_OK)
			log_debug("%s", trib_last_error());
	}
	if (hot->child && table->clocks.present) /* else all have left, and know */
		child_abort(hot->child, hot->why);
	child_close(hot->child);
	hot->child = NULL;
	hot_flush_close(hot);
	hot_maps_free(&hot->maps);
	if (worked || !hot->backoff)
		hot->backoff = BACKOFF_LEAST;
	else
		hot->backoff = 2 * hot->backoff < BACKOFF_MOST ? 2 * hot->backoff : BACKOFF_MOST;
	hot->open_at = now + hot->backoff;
	hot->state = HOT_OFF;
}

/* ---- what the server calls ---- */

void server_hot_joined(struct sparse_server *server, struct connection *c)
{
	(void)server;
	(void)c;
}

/* A worker that said BYE has nothing under way. The others may go on without it. */
void server_hot_left(struct sparse_server *server, struct server_table *table)
{
	bool is_lost = !table->clocks.present;
	char why[80] = "all workers have left";

	for (uint32_t rank = 0; !is_lost && rank < table->clocks.workers; rank++) {
		is_lost = table->clocks.ranks[rank].state == WORKER_LOST;
		snprintf(why, sizeof(why), "rank %u has left", rank);
	}
	if (table->hot && is_lost)
		begin_seal(server, table, why);
}

void server_hot_pulled(struct sparse_server *server, struct server_table *table)
{
	bool is_first = !table->is_pulled;

	table->is_used = table->is_pulled = true;
	if (is_first && table->hot)
		begin_seal(server, table, "workers pull rows, and it keeps no values for them");
}

uint32_t server_hot_round(const struct server_table *table)
{
	const struct server_hot *hot = table->hot;

	return hot && hot->has_flusher && hot->about.layout & SPARSE_VALUES
	               ? hot_flusher_shown(&hot->flusher)
	               : 0;
}

/* What a worker says about it. */
static void lost_tell(const struct connection *c, const struct message *message, char *out,
                      size_t room)
{
	int length = message->count < room ? (int)message->count : (int)room;

	snprintf(out, room, "rank %u has lost the aggregator%s%.*s", c->rank, length ? ": " : "",
	         length, message->text);
	for (; *out; out++)
		if (*out < ' ' || *out > '~')
			*out = '?';
}

trib_status server_hot_lost(struct sparse_server *server, struct connection *c,
                            const struct message *message)
{
	struct server_hot *hot = c->table->hot;
	const char *sentence = "";
	char why[sizeof(hot->why)];

	if (message->number > c->table->table->last)
		return status_fail(TRIB_ERR_REFUSED,
		                   "rank %u has lost incarnation %" PRIu64
		                   " of table '%s', and the last one is %u",
		                   c->rank, message->number, c->table->name, c->table->table->last);
	if (!hot || hot->state == HOT_OFF || hot->state == HOT_OPENING ||
	    message->number != hot->incarnation)
		return tell_sealed(c, (uint32_t)message->number);
	lost_tell(c, message, why, sizeof(why));
	/* If the aggregator has told this server, too, the reason is known. */
	if (hot->state == HOT_OPEN && hot->child) {
		hot_flush_serve(server, c->table, clock_now());
		child_failure(hot->child, &sentence);
	}
	begin_seal(server, c->table, *sentence ? sentence : why);
	return TRIB_OK; /* it hears its record after the commit */
}

/* An incarnation of the last process of this server. */
static void seal_old(struct sparse_server *server, const struct server_table *table)
{
	const struct sparse_incarnation *last =
		sparse_table_incarnation(table->table, table->table->last);
	const struct sparse_entry entry = { .kind = SPARSE_ENTRY_SEAL,
		                            .table = table->number,
		                            .incarnation = table->table->last };

	if (last && !last->is_sealed && sparse_log_append(server->log, &entry) != TRIB_OK)
		log_error("table '%s': %s", table->name, trib_last_error());
}

static uint64_t serve_off(struct sparse_server *server, struct server_table *table, uint64_t now)
{
	struct server_hot *hot = table->hot;
	const char *why = why_not(server, table);

	if (why) {
		say_why(hot, why);
		return UINT64_MAX;
	}
	if (now < hot->heat_since + HEAT_FIRST_NS)
		return hot->heat_since + HEAT_FIRST_NS;
	if (now < hot->open_at)
		return hot->open_at;
	begin_open(server, table, now);
	return hot->state == HOT_OFF ? hot->open_at : now;
}

static uint64_t serve_open(struct sparse_server *server, struct server_table *table, uint64_t now)
{
	struct server_hot *hot = table->hot;
	uint64_t wake, flush;
	const char *why = "no way to it";

	if (!hot->child) {
		begin_seal(server, table, trib_last_error());
		return now;
	}
	flush = hot_flush_serve(server, table, now);
	wake = child_step(hot->child, now);
	if (child_state(hot->child) == CHILD_JOINED && !hot->has_flusher) {
		if (!hot_flush_open(table, &server->options, now)) {
			begin_seal(server, table, trib_last_error());
			return now;
		}
		hot->opened++;
		hot->refresh_gap = REFRESH_FIRST;
		hot->refresh_at = now + hot->refresh_gap;
		say_why(hot, "");
		log_info("table '%s': incarnation %u at %s has room for %u hot rows", table->name,
		         hot->incarnation, hot->address, hot->rows);
		flush = now;
	}
	if (child_state(hot->child) == CHILD_FAILED || (hot->has_flusher && hot->flusher.failed)) {
		child_failure(hot->child, &why);
		begin_seal(server, table, *why ? why : "the aggregator gives wrong answers");
		return now;
	}
	if (hot->has_flusher)
		hot_refresh(server, table, now);
	return flush < wake ? flush : wake;
}

uint64_t server_hot_serve(struct sparse_server *server, uint64_t now)
{
	uint64_t wake = UINT64_MAX;

	for (uint32_t i = 0; i < server->n_tables; i++) {
		struct server_table *table = server->tables[i];
		uint64_t at = UINT64_MAX;

		if (!table->hot || table->hot->state == HOT_OFF)
			seal_old(server, table);
		if (!table->hot)
			continue;
		if (table->hot->state == HOT_OFF)
			at = serve_off(server, table, now);
		else if (table->hot->state == HOT_OPEN)
			at = serve_open(server, table, now);
		wake = at < wake ? at : wake;
	}
	return wake;
}

static void table_committed(struct sparse_server *server, struct server_table *table, uint64_t now)
{
	struct server_hot *hot = table->hot;

	if (hot->state == HOT_OPENING) {
		hot->state = HOT_OPEN;
		tell_hot(server, table);
		if (!join(server, table, now)) {
			child_close(hot->child);
			hot->child = NULL;
		}
	} else if (hot->state == HOT_SEALING) {
		end_seal(server, table, now);
	} else if (hot->state == HOT_OPEN) {
		hot_flush_committed(hot, now);
	}
}

void server_hot_committed(struct sparse_server *server, uint64_t now)
{
	for (uint32_t i = 0; i < server->n_tables; i++)
		if (server->tables[i]->hot)
			table_committed(server, server->tables[i], now);
}

/* ---- for people ---- */

void server_hot_describe(const struct server_table *table, FILE *out)
{
	const struct server_hot *hot = table->hot;
	const struct hot_map *map = hot ? hot_maps_newest(&hot->maps) : NULL;

	if (!hot) {
		fprintf(out, "null");
		return;
	}
	fprintf(out, "{\"open\":%s,\"incarnation\":%u,\"aggregator\":",
	        hot->has_flusher ? "true" : "false", hot->incarnation);
	json_print_text(out, hot->address);
	fprintf(out,
	        ",\"sums\":\"%s\",\"room\":%u,\"rows\":%u,\"generation\":%u,\"share\":%.4f"
	        ",\"flushes\":%" PRIu64 ",\"flushed_rows\":%" PRIu64 ",\"repeats\":%" PRIu64
	        ",\"opened\":%" PRIu64 ",\"moved\":%" PRIu64 ",\"why\":",
	        hot->about.kind == SPARSE_FIXED ? "fixed" : "table", hot->rows, map ? map->n : 0,
	        map ? map->generation : 0, hot->share, hot->flushes, hot->flushed_rows,
	        hot->flusher.repeats, hot->opened, hot->moves);
	json_print_text(out, hot->why);
	fprintf(out, "}");
}

void server_hot_print(const struct server_table *table, FILE *out)
{
	const struct server_hot *hot = table->hot;
	const struct hot_map *map = hot ? hot_maps_newest(&hot->maps) : NULL;

	if (!hot)
		fprintf(out, "no hot rows: the server has no aggregator");
	else if (!hot->has_flusher || !map)
		fprintf(out, "no hot rows: %s", *hot->why ? hot->why : "the aggregator is joined");
	else
		fprintf(out,
		        "%u hot rows at %s (incarnation %u, %s sums%s) for %.1f %% of the pushes",
		        map->n, hot->address, hot->incarnation,
		        hot->about.kind == SPARSE_FIXED ? "fixed" : "table",
		        hot->about.kind == SPARSE_FIXED ? ", the default" : ", as the workers ask",
		        hot->share * 100);
}

void server_hot_end(struct server_table *table)
{
	struct server_hot *hot = table->hot;

	if (!hot)
		return;
	if (hot->child)
		child_abort(hot->child, "the parameter server has ended");
	child_close(hot->child);
	hot_flush_close(hot);
	hot_maps_free(&hot->maps);
	free(hot->heat_memory);
	free(hot);
	table->hot = NULL;
}
