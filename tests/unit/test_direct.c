/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks that send to each other directly, in one process: messages wait in queues, and a seed
 * chooses who acts next. Results are compared with exact ones, the same bits as through an
 * aggregator. Messages are counted. Different calls and damaged messages are refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "reduce_reference.h"
#include "short.h"
#include "worker/ring/direct_row.h"
#include "worker/ring/gather_steps.h"

#include <string.h>

#define RANKS_MAX 9u
#define CALLS_MAX 6u
#define PAYLOAD 1448u
#define LONG 16384u /* bytes of a share whose sum does not travel in steps */

struct world {
	unsigned ranks;
	uint64_t random;
	uint64_t messages;
	unsigned calls[RANKS_MAX];
	unsigned posted[RANKS_MAX], finished[RANKS_MAX]; /* direct calls */
	struct direct members[RANKS_MAX];
	struct message_queue links[RANKS_MAX][RANKS_MAX]; /* from, to */
};

/* One collective of all ranks. */
struct call {
	enum direct_what what; /* DIRECT_SHARE: an allreduce that is cut */
	unsigned root;
	size_t segment; /* bytes; of such an allreduce */
	trib_type type;
	trib_op op;
	size_t count;
	bool in_place;
	bool at_one; /* such an allreduce is not cut, but summed at the root */
	enum reduce_values values;
	uint8_t *in[RANKS_MAX], *out[RANKS_MAX], *expected;
};

static uint64_t draw(struct world *world, uint64_t below)
{
	world->random = world->random * 6364136223846793005ull + 1442695040888963407ull;
	return (world->random >> 33) % below;
}

static void world_open(struct world *world, unsigned ranks, uint64_t seed)
{
	*world = (struct world){ .ranks = ranks, .random = seed };
	for (unsigned r = 0; r < ranks; r++) {
		direct_init(&world->members[r], r, ranks, PAYLOAD);
		for (unsigned k = 0; k < ranks; k++)
			queue_init(&world->links[r][k]);
	}
}

static void world_close(struct world *world)
{
	for (unsigned r = 0; r < world->ranks; r++) {
		direct_clear(&world->members[r]);
		for (unsigned k = 0; k < world->ranks; k++)
			queue_free(&world->links[r][k]);
	}
}

static size_t bytes_of(const struct call *call)
{
	return call->count * trib_type_size(call->type);
}

static struct round_spec spec_of(const struct world *world, const struct call *call, unsigned r,
                                 unsigned k)
{
	size_t bytes = bytes_of(call);
	struct round_spec spec = { .type = call->type,
		                   .op = call->op,
		                   .count = call->count,
		                   .from = WIRE_ALL,
		                   .to = WIRE_ALL,
		                   .small = (uint8_t)(round_is_small(bytes) ? world->ranks : 0),
		                   .source = call->in_place ? call->out[r] : call->in[r],
		                   .target = call->out[r] };

	if (call->what == DIRECT_SCATTER) {
		spec.to = (uint8_t)k;
		spec.source = call->in[r] + k * bytes;
		spec.target = k == r ? call->out[r] : NULL;
	} else if (call->what == DIRECT_GATHER) {
		spec.copy = true;
		spec.count = bytes;
		spec.from = (uint8_t)k;
		spec.target = call->out[r] + k * bytes;
		spec.source = call->in_place ? spec.target : call->in[r];
	} else if (call->what == DIRECT_BROADCAST) {
		spec.copy = true;
		spec.count = bytes;
		spec.from = (uint8_t)call->root;
		spec.target = r == call->root ? NULL : call->out[r];
	} else if (call->what == DIRECT_REDUCE) {
		spec.to = (uint8_t)call->root;
		spec.target = r == call->root ? call->out[r] : NULL;
	}
	spec.call = (struct wire_call){ .kind = WIRE_CALL_ALLREDUCE,
		                        .count = call->count,
		                        .type = (uint8_t)call->type,
		                        .op = (uint8_t)call->op,
		                        .root = WIRE_ALL };
	return spec;
}

static trib_status post_one(struct world *world, unsigned r, struct direct_call *call)
{
	assert_non_null(call);
	world->posted[r]++;
	return direct_post(&world->members[r], call);
}

static trib_status post_row(struct world *world, unsigned r, const struct call *call)
{
	struct round_spec whole = spec_of(world, call, r, 0);
	trib_status status = TRIB_OK;
	struct direct_call *row;
	unsigned n, posted = world->posted[r];

	row = call->at_one ? direct_row_at(&whole, call->root, NULL, &n)
	                   : direct_row_new(&whole, world->ranks, PAYLOAD, call->segment, NULL, &n);
	while (row && status == TRIB_OK) {
		struct direct_call *next = row->next;

		status = post_one(world, r, row);
		row = next;
	}
	if (status == TRIB_OK)
		assert_int_equal(world->posted[r] - posted, n);
	direct_row_free(row);
	return status;
}

static void post(struct world *world, unsigned r, const struct call *call)
{
	bool parts = call->what == DIRECT_SCATTER || call->what == DIRECT_GATHER;
	unsigned n = parts ? world->ranks : 1;
	struct round_spec specs[RANKS_MAX];

	if (call->what == DIRECT_SHARE) {
		assert_int_equal(post_row(world, r, call), TRIB_OK);
		return;
	}
	for (unsigned k = 0; k < n; k++)
		specs[k] = spec_of(world, call, r, k);
	assert_int_equal(post_one(world, r, direct_call_new(call->what, specs, n, NULL)), TRIB_OK);
}

/* A rank writes its next message. False: none may leave. */
static bool write_message(struct world *world, unsigned r)
{
	trib_status status = TRIB_OK;
	unsigned to;
	struct message *message = direct_next(&world->members[r], &to, &status);

	assert_int_equal(status, TRIB_OK);
	if (!message)
		return false;
	assert_int_not_equal(to, r);
	queue_put(&world->links[r][to], message);
	world->messages++;
	return true;
}

/* What comes is a message of its own, as from a channel. */
static struct message *arrive(struct message *sent)
{
	struct message *came = message_new(NULL, sent->bytes);

	assert_non_null(came);
	if (came)
		memcpy(came->data, message_data(sent), sent->bytes);
	message_free(sent);
	return came;
}

static bool take_message(struct world *world, unsigned r, unsigned from)
{
	struct message *message = queue_get(&world->links[from][r]);

	if (message)
		assert_int_equal(direct_take(&world->members[r], from, arrive(message)), TRIB_OK);
	return message;
}

/* As if the first call were late. */
static bool send_notices(struct world *world, unsigned r)
{
	struct direct_call *call = world->members[r].first;

	if (!call || !direct_hears_few(call) || call->told)
		return false;
	call->told = true;
	for (unsigned to = 0; to < world->ranks; to++)
		if (to != r)
			queue_put(&world->links[r][to], direct_notice(&world->members[r]));
	return true;
}

static bool finish_call(struct world *world, unsigned r)
{
	trib_status status = TRIB_OK;
	struct direct_call *call = direct_finish(&world->members[r], &status);

	assert_int_equal(status, TRIB_OK);
	world->finished[r] += call != NULL;
	direct_call_free(call);
	return call;
}

/* A sum that has come is where it belongs, and its message is free. */
static void keeps_no_sums(const struct direct *member)
{
	for (const struct direct_call *call = member->first; call; call = call->next)
		for (unsigned r = 0; call->what == DIRECT_BACK && !call->steps && r < RANKS_MAX;
		     r++)
			assert_null(call->came[r]);
}

/* Ranks act in random order until nothing is left. */
static void run(struct world *world, const struct call *calls, unsigned n)
{
	for (unsigned stuck = 0; stuck < 2000;) {
		unsigned r = (unsigned)draw(world, world->ranks);
		bool acted = false;

		if (world->calls[r] < n && draw(world, 8) == 0) {
			post(world, r, &calls[world->calls[r]++]);
			acted = true;
		}
		while (draw(world, 8) && write_message(world, r))
			acted = true;
		if (draw(world, 200) == 0)
			acted |= send_notices(world, r);
		acted |= take_message(world, r, (unsigned)draw(world, world->ranks));
		keeps_no_sums(&world->members[r]);
		if (draw(world, 2))
			acted |= finish_call(world, r);
		stuck = acted ? 0 : stuck + 1;
	}
	for (unsigned r = 0; r < world->ranks; r++) {
		assert_int_equal(world->calls[r], n);
		assert_int_equal(world->finished[r], world->posted[r]);
		assert_null(world->members[r].first);
	}
}

static void call_make(struct world *world, struct call *call, uint64_t seed)
{
	size_t bytes = bytes_of(call), all = bytes * world->ranks;

	for (unsigned r = 0; r < world->ranks; r++) {
		call->in[r] = calloc(1, all + 8);
		call->out[r] = calloc(1, all + 8);
		assert_true(call->in[r] && call->out[r]);
		/* Neighbouring seeds give the same values, one place further on. */
		reduce_fill(call->type, call->values, (seed + r) << 20, call->in[r],
		            call->count * world->ranks);
		if (call->in_place)
			memcpy(call->out[r] + (call->what == DIRECT_GATHER ? r * bytes : 0),
			       call->in[r], bytes);
	}
	call->expected = calloc(1, all + 8);
	assert_non_null(call->expected);
}

static void call_check(const struct world *world, const struct call *call)
{
	size_t bytes = bytes_of(call);

	for (unsigned r = 0; r < world->ranks; r++) {
		const void *parts[RANKS_MAX];

		for (unsigned k = 0; k < world->ranks; k++) {
			parts[k] = call->in[k] + (call->what == DIRECT_SCATTER ? r * bytes : 0);
			if (call->what == DIRECT_GATHER)
				assert_memory_equal(call->out[r] + k * bytes, call->in[k], bytes);
		}
		if (call->what == DIRECT_BROADCAST && r != call->root)
			assert_memory_equal(call->out[r], call->in[call->root], bytes);
		if (call->what == DIRECT_GATHER || call->what == DIRECT_BROADCAST ||
		    (call->what == DIRECT_REDUCE && r != call->root))
			continue;
		reduce_expect(call->type, call->op, parts, world->ranks, call->count, PAYLOAD, 32,
		              call->expected);
		assert_memory_equal(call->out[r], call->expected, bytes);
	}
}

static void call_free(const struct world *world, const struct call *call)
{
	for (unsigned r = 0; r < world->ranks; r++) {
		free(call->in[r]);
		free(call->out[r]);
	}
	free(call->expected);
}

static void choose_call(struct world *world, struct call *call)
{
	static const trib_type types[] = { TRIB_F32, TRIB_BF16, TRIB_F64, TRIB_I32,   TRIB_U8,
		                           TRIB_F16, TRIB_I64,  TRIB_F32, TRIB_F8E4M3 };

	static const enum direct_what calls[] = {
		DIRECT_ALLREDUCE, DIRECT_SCATTER, DIRECT_GATHER,
		DIRECT_SHARE,     DIRECT_REDUCE,  DIRECT_BROADCAST
	};

	static const enum reduce_values values[] = { REDUCE_FINITE, REDUCE_FINITE, REDUCE_SPECIAL,
		                                     REDUCE_RARE };

	*call = (struct call){ .what = calls[draw(world, sizeof(calls) / sizeof(calls[0]))],
		               .root = (unsigned)draw(world, world->ranks),
		               .type = types[draw(world, sizeof(types) / sizeof(types[0]))],
		               .op = (trib_op)draw(world, 4),
		               .count = draw(world, 3) ? draw(world, 8000) : draw(world, 4),
		               .in_place = draw(world, 2),
		               .segment = draw(world, 3) ? 1 + draw(world, 30000) : 1u << 20,
		               .values = values[draw(world, 4)] };
	if (call->what == DIRECT_SHARE && draw(world, 8) == 0)
		call->count += draw(world, 80000);
	call->at_one = call->what == DIRECT_SHARE && draw(world, 3) == 0;
}

/* That a rank sends in an allreduce that is cut. Segments have whole blocks, at least one. The sums
 * of a short one travel in steps. */
static uint64_t messages_of_row(const struct world *world, const struct call *call, unsigned all,
                                unsigned steps)
{
	const struct round_spec whole = spec_of(world, call, 0, 0);
	size_t per = round_spec_block(&whole, PAYLOAD), element = trib_type_size(call->type);
	size_t each = call->segment / element / per * per;
	uint64_t messages = 0;

	each = each ? each : per;
	for (size_t first = 0; first < call->count; first += each) {
		size_t left = call->count - first, bytes = (left < each ? left : each) * element;

		messages +=
			world->ranks == 2 ? 1 : all + (bytes > LONG * world->ranks ? all : steps);
	}
	return messages;
}

/* That all ranks send in a call. */
static uint64_t messages_of(const struct world *world, const struct call *call)
{
	unsigned all = world->ranks - 1;
	unsigned gather = gather_takes_steps(world->ranks) ? gather_steps(world->ranks) : all;

	if (call->at_one)
		return 2ull * all;
	if (call->what == DIRECT_SHARE)
		return messages_of_row(world, call, all, gather) * world->ranks;
	return call->what == DIRECT_GATHER ? gather * world->ranks : all * world->ranks;
}

static void every_collective_is_exact(void **state)
{
	uint64_t cases = test_cases("random worlds", 150);
	const char *given = getenv("TRIB_TEST_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 10) : 1;

	(void)state;
	for (uint64_t i = 0; i < cases; i++) {
		struct call calls[CALLS_MAX];
		struct world world;
		uint64_t messages = 0;
		unsigned n;

		printf("seed %llu\n", (unsigned long long)(seed + i));
		world_open(&world, 2, seed + i);
		draw(&world, 2);
		world_open(&world, 2 + (unsigned)draw(&world, RANKS_MAX - 1), world.random);
		n = 1 + (unsigned)draw(&world, CALLS_MAX);
		for (unsigned k = 0; k < n; k++) {
			choose_call(&world, &calls[k]);
			call_make(&world, &calls[k], seed * 1000 + k * RANKS_MAX);
			messages += messages_of(&world, &calls[k]);
		}
		run(&world, calls, n);
		assert_int_equal(world.messages, messages);
		for (unsigned k = 0; k < n; k++) {
			call_check(&world, &calls[k]);
			call_free(&world, &calls[k]);
		}
		world_close(&world);
	}
}

/* Three ranks; rank 0 has called an allreduce of 10 i32, and rank 1's message to it is `message`.
 */
static trib_status offer(struct world *world, const uint8_t *data, uint32_t bytes)
{
	struct message *message = message_new(NULL, bytes);

	assert_non_null(message);
	memcpy(message->data, data, bytes);
	return direct_take(&world->members[0], 1, message);
}

static void damaged_messages_are_refused(void **state)
{
	struct call call = { .what = DIRECT_ALLREDUCE, .type = TRIB_I32, .count = 10 };
	_Alignas(8) uint8_t data[sizeof(struct direct_head) + 40];
	struct direct_head *head = (void *)data;
	struct message *message;
	struct world world;

	(void)state;
	world_open(&world, 3, 1);
	call_make(&world, &call, 1);
	post(&world, 0, &call);
	post(&world, 1, &call);
	while (write_message(&world, 1))
		;
	message = queue_get(&world.links[1][0]);
	assert_non_null(message);
	assert_int_equal(message->bytes, sizeof(data));
	memcpy(data, message->data, sizeof(data));
	free(message);

	for (uint32_t bytes = 0; bytes < sizeof(data); bytes++)
		assert_true(offer(&world, data, bytes) < 0);
	head->version++;
	assert_int_equal(offer(&world, data, sizeof(data)), TRIB_ERR_PEER);
	head->version--;
	head->call.count++;
	assert_int_equal(offer(&world, data, sizeof(data)), TRIB_ERR_MISMATCH);
	assert_non_null(strstr(trib_last_error(), "rank 1 called allreduce of 11 i32"));
	assert_non_null(strstr(trib_last_error(), "rank 0 called allreduce of 10 i32"));
	head->call.count--;
	head->count++;
	assert_int_equal(offer(&world, data, sizeof(data)), TRIB_ERR_MISMATCH);
	head->count--;
	head->op = TRIB_MAX;
	assert_int_equal(offer(&world, data, sizeof(data)), TRIB_ERR_MISMATCH);
	head->op = TRIB_SUM;
	head->number--;
	assert_int_equal(offer(&world, data, sizeof(data)), TRIB_ERR_MISMATCH); /* over */
	head->number++;
	assert_int_equal(direct_missing(&world.members[0]), 6);
	assert_int_equal(offer(&world, data, sizeof(data)), TRIB_OK);
	assert_int_equal(direct_missing(&world.members[0]), 4);
	assert_int_equal(offer(&world, data, sizeof(data)), TRIB_ERR_PEER); /* twice */
	call_free(&world, &call);
	world_close(&world);
}

/* One rank goes around the ring, another one calls directly: the first one notices. */
static void ways_may_not_differ(void **state)
{
	struct call call = { .what = DIRECT_ALLREDUCE, .type = TRIB_I32, .count = 10 };
	const struct wire_call around = { .kind = WIRE_CALL_BARRIER };

	(void)state;
	for (unsigned message_first = 0; message_first < 2; message_first++) {
		trib_status status[2] = { TRIB_OK, TRIB_OK };
		struct world world;

		world_open(&world, 2, 1);
		call_make(&world, &call, 1);
		post(&world, 1, &call);
		assert_true(write_message(&world, 1));
		for (unsigned i = 0; i < 2; i++)
			status[i] = i == message_first ? direct_pass(&world.members[0], &around)
			                               : direct_take(&world.members[0], 1,
			                                             queue_get(&world.links[1][0]));
		assert_int_equal(status[0], TRIB_OK);
		assert_int_equal(status[1], TRIB_ERR_MISMATCH);
		assert_non_null(strstr(trib_last_error(), "rank 1 called allreduce of 10 i32"));
		call_free(&world, &call);
		world_close(&world);
	}
}

/* Rank 5 of 8 does not call. The others hear from few ranks, and know it by notices. */
static void is_late(struct call call, unsigned late)
{
	struct world world;

	world_open(&world, 8, 1);
	call_make(&world, &call, 1);
	for (unsigned r = 0; r < world.ranks; r++)
		if (r != late)
			post(&world, r, &call);
	for (unsigned turn = 0; turn < 20; turn++)
		for (unsigned r = 0; r < world.ranks; r++)
			for (unsigned k = 0; k < world.ranks; k++) {
				write_message(&world, r);
				take_message(&world, r, k);
				finish_call(&world, r);
				if (turn == 10)
					send_notices(&world, r);
			}
	for (unsigned r = 0; r < world.ranks; r++)
		if (r != late)
			assert_int_equal(direct_late(&world.members[r]), 1u << late);
	post(&world, late, &call);
	run(&world, &call, 0);
	call_check(&world, &call);
	call_free(&world, &call);
	world_close(&world);
}

static void a_late_rank_is_known(void **state)
{
	const struct call gather = { .what = DIRECT_GATHER, .type = TRIB_U8, .count = 5 };
	const struct call at_one = { .what = DIRECT_SHARE,
		                     .at_one = true,
		                     .root = 2,
		                     .type = TRIB_F32,
		                     .op = TRIB_SUM,
		                     .count = 3000 };

	(void)state;
	is_late(gather, 5);
	is_late(at_one, 5);
	is_late(at_one, 2); /* the root */
}

static size_t bytes_in(const struct message_queue *queue)
{
	size_t bytes = 0;

	for (const struct message *message = queue->first; message; message = message->next)
		bytes += message->bytes - sizeof(struct direct_head);
	return bytes;
}

/* Rank 1 does not call: it keeps no more than DIRECT_AHEAD bytes of all messages of each other
 * rank, nor have they written more, although two vectors are much longer. */
static void a_late_rank_keeps_little(void **state)
{
	struct call call = { .what = DIRECT_SHARE, .type = TRIB_I32, .count = 1 << 20 };
	const unsigned late = 1;

	(void)state;
	for (unsigned ranks = 2; ranks <= 5; ranks++) {
		struct world world;
		size_t most = DIRECT_AHEAD / (ranks - 1), kept;

		call.segment = 100000 * ranks;
		world_open(&world, ranks, ranks);
		call_make(&world, &call, ranks);
		for (unsigned i = 0; i < 2 * ranks; i++)
			if (i % ranks != late)
				post(&world, i % ranks, &call);
		for (unsigned turn = 0; turn < 100; turn++)
			for (unsigned i = 0; i < ranks * ranks; i++) {
				while (write_message(&world, i / ranks))
					;
				take_message(&world, i / ranks, i % ranks);
			}
		for (unsigned r = 0; r < ranks; r++) {
			kept = bytes_in(&world.members[late].early[r]);
			if (r != late)
				assert_in_range(kept, most / 4, most + 2 * PAYLOAD);
		}
		for (unsigned i = 0; i < 2; i++)
			post(&world, late, &call);
		run(&world, &call, 0);
		call_check(&world, &call);
		call_free(&world, &call);
		world_close(&world);
	}
}

/* The first segments are the same, but not the vectors. */
static void long_vectors_may_not_differ(void **state)
{
	struct call call = { .what = DIRECT_SHARE, .type = TRIB_I32, .segment = 40000 };
	struct call other = call;
	struct world world;

	(void)state;
	call.count = 30000;
	other.count = 50000;
	world_open(&world, 3, 1);
	call_make(&world, &call, 1);
	call_make(&world, &other, 1);
	post(&world, 0, &call);
	post(&world, 1, &other);
	assert_true(write_message(&world, 1) && write_message(&world, 1));
	assert_int_equal(direct_take(&world.members[0], 1, queue_get(&world.links[1][0])),
	                 TRIB_ERR_MISMATCH);
	assert_non_null(strstr(trib_last_error(), "rank 1 called allreduce of 50000 i32"));
	assert_non_null(strstr(trib_last_error(), "rank 0 called allreduce of 30000 i32"));
	call_free(&world, &call);
	call_free(&world, &other);
	world_close(&world);
}

static size_t pool_waits(const struct message_pool *pool)
{
	size_t bytes = 0;

	for (unsigned list = 0; list < POOL_LISTS; list++)
		for (const struct message *m = pool->lists[list]; m; m = m->next)
			bytes += pool_room(list);
	assert_int_equal(bytes, pool->waits);
	return bytes;
}

static void a_pool_gives_messages_again(void **state)
{
	struct message_pool pool = { 0 };
	struct message *message = message_new(&pool, 5000), *many[8];
	const uint32_t longest = pool_room(POOL_LISTS - 1), room = pool_room(1);

	(void)state;
	message_free(message);
	assert_int_equal(pool_waits(&pool), room);
	assert_ptr_equal(message_new(&pool, room), message);
	assert_int_equal(message->bytes, room);
	assert_int_equal(pool_waits(&pool), 0);
	message_free(message);
	message = message_new(&pool, pool_room(0));
	assert_int_equal(pool_waits(&pool), room);
	message_free(message);

	for (unsigned i = 0; i < 8; i++) {
		many[i] = message_new(&pool, longest);
		assert_non_null(many[i]);
		memset(many[i]->data, 1, longest);
	}
	for (unsigned i = 0; i < 8; i++)
		message_free(many[i]);
	assert_in_range(pool_waits(&pool), longest, POOL_MOST);
	message = message_new(&pool, longest + 1);
	assert_null(message->pool);
	message_free(message);
	pool_free(&pool);
	assert_int_equal(pool_waits(&pool), 0);
}

/* A message and its handles can be freed in any order. */
static void a_content_outlives_its_handles(void **state)
{
	struct message_pool pool = { 0 };

	(void)state;
	for (unsigned last = 0; last < 3; last++) {
		struct message *all[3] = { message_new(&pool, 5000) };

		assert_non_null(all[0]);
		if (!all[0])
			return;
		memset(all[0]->data, 7, 5000);
		for (unsigned i = 1; i < 3; i++) {
			all[i] = message_again(all[0]);
			assert_non_null(all[i]);
			assert_ptr_equal(message_data(all[i]), all[0]->data);
			assert_int_equal(all[i]->bytes, 5000);
		}
		for (unsigned i = 0; i < 3; i++)
			if (i != last)
				message_free(all[i]);
		assert_int_equal(all[0]->data[4999], 7);
		message_free(all[last]);
		assert_int_equal(pool_waits(&pool), pool_room(1) + 2 * pool_room(0));
	}
	pool_free(&pool);
}

/* How many times a rank writes its vector in a call: the different contents of its messages. */
static unsigned contents(struct world *world, unsigned r)
{
	const uint8_t *seen[RANKS_MAX];
	unsigned n = 0;

	while (write_message(world, r)) {
	}
	for (unsigned to = 0; to < world->ranks; to++) {
		const struct message *message = world->links[r][to].first;
		unsigned k = 0;

		if (!message)
			continue;
		while (k < n && seen[k] != message_data(message))
			k++;
		seen[k] = message_data(message);
		n += k == n;
	}
	return n;
}

/* What all other ranks get is copied once. */
static void a_message_for_all_is_written_once(void **state)
{
	static const struct {
		enum direct_what what;
		unsigned written; /* among four ranks */
	} cases[] = {
		{ DIRECT_BROADCAST, 1 },
		{ DIRECT_ALLREDUCE, 1 },
		{ DIRECT_SCATTER, 3 },
		{ DIRECT_REDUCE, 3 },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct call call = { .what = cases[i].what, .type = TRIB_F32, .count = 5000 };
		struct world world;

		world_open(&world, 4, 1);
		call_make(&world, &call, 1);
		post(&world, 0, &call);
		world.calls[0] = 1;
		assert_int_equal(contents(&world, 0), cases[i].written);
		run(&world, &call, 1);
		call_check(&world, &call);
		call_free(&world, &call);
		world_close(&world);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_collective_is_exact),
		cmocka_unit_test(damaged_messages_are_refused),
		cmocka_unit_test(ways_may_not_differ),
		cmocka_unit_test(a_late_rank_is_known),
		cmocka_unit_test(a_late_rank_keeps_little),
		cmocka_unit_test(long_vectors_may_not_differ),
		cmocka_unit_test(a_pool_gives_messages_again),
		cmocka_unit_test(a_content_outlives_its_handles),
		cmocka_unit_test(a_message_for_all_is_written_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
