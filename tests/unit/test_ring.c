/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks in a ring, in one process: messages wait in queues, and a seed chooses who acts next. Every
 * collective is compared with exact results, the same bits as through an aggregator. Messages are
 * counted, and damaged ones are refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "reduce_reference.h"
#include "short.h"
#include "worker/ring/ring.h"

#include <stdlib.h>
#include <string.h>

#define RANKS_MAX 9u
#define CALLS_MAX 9u

struct letter {
	struct letter *next;
	uint32_t bytes;
	_Alignas(8) uint8_t data[];
};

struct queue {
	struct letter *first, **end;
};

struct member {
	struct ring ring;
	struct queue in;    /* from the previous rank */
	struct queue aside; /* of rounds that are not posted yet */
	unsigned calls;     /* posted */
	unsigned finished;  /* rounds */
	uint8_t *source, *target;
};

struct world {
	unsigned ranks;
	uint64_t random;
	uint64_t messages, bytes; /* that passed from rank to rank */
	struct member members[RANKS_MAX];
};

static uint64_t draw(struct world *world, uint64_t below)
{
	world->random = world->random * 6364136223846793005ull + 1442695040888963407ull;
	return (world->random >> 33) % below;
}

static void queue_put(struct queue *queue, struct letter *letter)
{
	letter->next = NULL;
	*queue->end = letter;
	queue->end = &letter->next;
}

static struct letter *queue_get(struct queue *queue)
{
	struct letter *letter = queue->first;

	if (letter)
		queue->first = letter->next;
	if (!queue->first)
		queue->end = &queue->first;
	return letter;
}

static void on_finished(void *context, struct round *round)
{
	struct member *member = context;

	member->finished++;
	round_free(round);
}

static void world_open(struct world *world, unsigned ranks, unsigned payload, uint64_t seed)
{
	*world = (struct world){ .ranks = ranks, .random = seed };
	for (unsigned r = 0; r < ranks; r++) {
		struct member *member = &world->members[r];

		ring_init(&member->ring, r, ranks, payload);
		member->ring.on_finished = on_finished;
		member->ring.context = member;
		member->in.end = &member->in.first;
		member->aside.end = &member->aside.first;
	}
}

static void world_close(struct world *world)
{
	for (unsigned r = 0; r < world->ranks; r++) {
		struct letter *letter;

		ring_clear(&world->members[r].ring);
		while ((letter = queue_get(&world->members[r].in)) ||
		       (letter = queue_get(&world->members[r].aside)))
			free(letter);
	}
}

static void pass(struct world *world, unsigned from, struct letter *letter)
{
	world->messages++;
	world->bytes += letter->bytes - sizeof(struct ring_head);
	queue_put(&world->members[(from + 1) % world->ranks].in, letter);
}

static void offer(struct world *world, unsigned r, struct letter *letter)
{
	struct member *member = &world->members[r];
	trib_status status = TRIB_OK;

	switch (ring_take(&member->ring, letter->data, letter->bytes, &status)) {
	case RING_USED:
		free(letter);
		break;
	case RING_PASS_ON:
		pass(world, r, letter);
		break;
	case RING_LATER:
		queue_put(&member->aside, letter);
		break;
	case RING_WRONG:
		fail_msg("rank %u: %s", r, trib_last_error());
	}
}

/* A message starts at the rank. False: none does. */
static bool start(struct world *world, unsigned r)
{
	struct member *member = &world->members[r];
	struct letter *letter = malloc(sizeof(*letter) + ring_message_max(&member->ring));
	uint32_t bytes;

	assert_non_null(letter);
	bytes = letter->bytes = ring_start(&member->ring, letter->data);
	assert_true(bytes <= ring_message_max(&member->ring));
	if (bytes)
		pass(world, r, letter);
	else
		free(letter);
	return bytes;
}

static void post(struct world *world, unsigned r, const struct round_spec *spec)
{
	struct member *member = &world->members[r];
	struct queue again = member->aside;
	struct letter *letter;

	assert_true(ring_post(&member->ring, round_new(spec, r, member->ring.payload)));
	if (!again.first)
		return;
	member->aside = (struct queue){ .end = &member->aside.first };
	while ((letter = queue_get(&again)))
		offer(world, r, letter);
}

/* One call of all ranks; a reduce-scatter or allgather is several rounds. */
struct call {
	enum { ALLREDUCE, REDUCE, BROADCAST, ALLGATHER, REDUCE_SCATTER, BARRIER } what;
	trib_type type;
	trib_op op;
	unsigned root;
	size_t count;
	bool in_place;
	enum reduce_values values;
	unsigned bits;
	uint8_t *in[RANKS_MAX], *out[RANKS_MAX], *expected;
};

static unsigned rounds_of(const struct world *world, const struct call *call)
{
	return call->what == ALLGATHER || call->what == REDUCE_SCATTER ? world->ranks : 1;
}

static size_t bytes_of(const struct call *call)
{
	return call->count * trib_type_size(call->type);
}

static struct round_spec spec_of(const struct world *world, const struct call *call, unsigned r,
                                 unsigned k)
{
	bool sums = call->op == TRIB_SUM || call->op == TRIB_AVG, copies;
	size_t bytes = bytes_of(call);
	struct round_spec spec = { .type = call->type, .op = call->op, .count = call->count };

	copies = call->what == BROADCAST || call->what == ALLGATHER;
	spec.from = spec.to = WIRE_ALL;
	spec.source = call->in_place ? call->out[r] : call->in[r];
	spec.target = call->out[r];
	if (call->what == BARRIER)
		return (struct round_spec){ .type = TRIB_U8, .from = WIRE_ALL, .to = WIRE_ALL };
	if (copies) {
		spec.copy = true;
		spec.count = bytes;
		spec.from = (uint8_t)(call->what == BROADCAST ? call->root : k);
		if (call->what == ALLGATHER)
			spec.target = call->out[r] + k * bytes;
		if (call->in_place && call->what == ALLGATHER)
			spec.source = spec.target;
		return spec;
	}
	if (call->what == REDUCE)
		spec.to = (uint8_t)call->root;
	if (call->what == REDUCE_SCATTER) {
		spec.to = (uint8_t)k;
		spec.source = call->in[r] + k * bytes;
	}
	if (spec.to != WIRE_ALL && spec.to != r)
		spec.target = NULL;
	if (round_is_small(call->count * number_wire_size(call->type)))
		spec.small = (uint8_t)world->ranks;
	else if (sums)
		spec.per_word = round_per_word(call->type, call->count, world->ranks, call->bits);
	return spec;
}

static void call_make(struct world *world, struct call *call, uint64_t seed)
{
	size_t bytes = bytes_of(call), all = bytes * world->ranks;

	for (unsigned r = 0; r < world->ranks; r++) {
		call->in[r] = calloc(1, all + 8);
		call->out[r] = calloc(1, all + 8);
		assert_true(call->in[r] && call->out[r]);
		reduce_fill(call->type, call->values, seed + r, call->in[r],
		            call->count * world->ranks);
		if (call->in_place)
			memcpy(call->out[r] + (call->what == ALLGATHER ? r * bytes : 0),
			       call->in[r], bytes);
	}
	call->expected = calloc(1, all + 8);
	assert_non_null(call->expected);
}

static void call_free(struct world *world, struct call *call)
{
	for (unsigned r = 0; r < world->ranks; r++) {
		free(call->in[r]);
		free(call->out[r]);
	}
	free(call->expected);
}

static void expect_sum(const struct world *world, struct call *call, unsigned k, unsigned payload)
{
	const void *parts[RANKS_MAX];

	for (unsigned r = 0; r < world->ranks; r++)
		parts[r] = call->in[r] + k * bytes_of(call);
	reduce_expect(call->type, call->op, parts, world->ranks, call->count, payload, call->bits,
	              call->expected);
}

static void call_check(struct world *world, struct call *call)
{
	unsigned payload = world->members[0].ring.payload;
	size_t bytes = bytes_of(call);

	for (unsigned r = 0; r < world->ranks; r++) {
		const uint8_t *expected = call->expected;

		if (call->what == BARRIER || (call->what == REDUCE && r != call->root))
			continue;
		if (call->what == BROADCAST) {
			expected = call->in[call->root];
		} else if (call->what == ALLGATHER) {
			for (unsigned k = 0; k < world->ranks; k++)
				assert_memory_equal(call->out[r] + k * bytes, call->in[k], bytes);
			continue;
		} else {
			expect_sum(world, call, call->what == REDUCE_SCATTER ? r : 0, payload);
		}
		assert_memory_equal(call->out[r], expected, bytes);
	}
}

/* Ranks act in random order until nothing is left. */
static void run(struct world *world, struct call *calls, unsigned n)
{
	unsigned rounds = 0, stuck = 0;

	for (unsigned i = 0; i < n; i++)
		rounds += rounds_of(world, &calls[i]);
	while (stuck < 2000) {
		unsigned r = (unsigned)draw(world, world->ranks);
		struct member *member = &world->members[r];
		struct letter *letter;
		bool acted = false;

		if (member->calls < n && draw(world, 8) == 0) {
			const struct call *call = &calls[member->calls++];

			for (unsigned k = 0; k < rounds_of(world, call); k++) {
				struct round_spec spec = spec_of(world, call, r, k);

				post(world, r, &spec);
			}
			acted = true;
		}
		if (draw(world, 2) && (letter = queue_get(&member->in))) {
			offer(world, r, letter);
			acted = true;
		}
		if (draw(world, 2))
			acted |= start(world, r);
		stuck = acted ? 0 : stuck + 1;
	}
	for (unsigned r = 0; r < world->ranks; r++) {
		assert_int_equal(world->members[r].finished, rounds);
		assert_true(ring_is_idle(&world->members[r].ring));
		assert_null(world->members[r].in.first);
		assert_null(world->members[r].aside.first);
	}
}

static void choose_call(struct world *world, struct call *call)
{
	static const trib_type types[] = { TRIB_F32, TRIB_BF16, TRIB_F64, TRIB_I32,   TRIB_U8,
		                           TRIB_F16, TRIB_I64,  TRIB_F32, TRIB_F8E4M3 };
	static const size_t counts[] = { 0, 1, 7, 1000, 20000, 100000, 300000 };

	*call = (struct call){ .what = (unsigned)draw(world, 6),
		               .type = types[draw(world, sizeof(types) / sizeof(types[0]))],
		               .op = (trib_op)draw(world, 4),
		               .root = (unsigned)draw(world, world->ranks),
		               .count = counts[draw(world, 7)],
		               .in_place = draw(world, 2),
		               .values = draw(world, 4) ? REDUCE_FINITE : REDUCE_SPECIAL };
	call->count += call->count ? draw(world, call->count) : 0;
	if (call->what == REDUCE_SCATTER || call->what == ALLGATHER)
		call->count /= world->ranks;
	if (call->what == BARRIER)
		call->count = 0;
	if (call->what == BROADCAST)
		call->in_place = false; /* the root's vector is not written, so it has no target */
}

static void every_collective_is_exact(void **state)
{
	static const unsigned payloads[] = { 256, 1448, 1400, 8944 };
	uint64_t cases = test_cases("random worlds", 90);
	const char *given = getenv("TRIB_TEST_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 10) : 1;

	(void)state;
	for (uint64_t i = 0; i < cases; i++) {
		struct call calls[CALLS_MAX];
		struct world world;
		unsigned n;

		printf("seed %llu\n", (unsigned long long)(seed + i));
		world_open(&world, 2, 1448, seed + i);
		draw(&world, 2);
		n = 2 + (unsigned)draw(&world, RANKS_MAX - 1);
		world_open(&world, n, payloads[draw(&world, 4)], world.random);
		n = 1 + (unsigned)draw(&world, CALLS_MAX);
		for (unsigned k = 0; k < n; k++) {
			choose_call(&world, &calls[k]);
			call_make(&world, &calls[k], seed * 1000 + k * RANKS_MAX);
		}
		run(&world, calls, n);
		for (unsigned k = 0; k < n; k++) {
			call_check(&world, &calls[k]);
			call_free(&world, &calls[k]);
		}
		world_close(&world);
	}
}

/* What each link carries: 2 (N - 1) / N of an allreduce, (N - 1) / N of the others. */
static void links_carry_no_more_than_a_ring_must(void **state)
{
	struct call calls[] = {
		{ .what = ALLREDUCE, .type = TRIB_I32, .count = 400000 },
		{ .what = REDUCE_SCATTER, .type = TRIB_I32, .count = 100000 },
		{ .what = ALLGATHER, .type = TRIB_I32, .count = 100000 },
	};
	static const unsigned halves[] = { 2, 1, 1 };

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		uint64_t bytes = 4 * 400000ull * halves[i] * 3;
		struct world world;

		world_open(&world, 4, 1448, 7);
		call_make(&world, &calls[i], 1);
		run(&world, &calls[i], 1);
		assert_in_range(world.bytes, bytes, bytes + bytes / 500);
		call_free(&world, &calls[i]);
		world_close(&world);
	}
}

/* No rank has to keep much of a call that it has not come to. */
static void a_late_rank_keeps_little(void **state)
{
	struct call call = { .what = ALLREDUCE, .type = TRIB_I32, .count = 4000000 };
	struct world world;
	struct letter *letter;
	uint64_t kept = 0;

	(void)state;
	world_open(&world, 4, 1448, 7);
	call_make(&world, &call, 1);
	for (unsigned r = 0; r < 3; r++) {
		struct round_spec spec = spec_of(&world, &call, r, 0);

		post(&world, r, &spec);
	}
	for (unsigned i = 0; i < 1000; i++)
		for (unsigned r = 0; r < 4; r++) {
			start(&world, r);
			if ((letter = queue_get(&world.members[r].in)))
				offer(&world, r, letter);
		}
	for (letter = world.members[3].aside.first; letter; letter = letter->next)
		kept += letter->bytes;
	assert_in_range(kept, 1, 1000);
	call_free(&world, &call);
	world_close(&world);
}

/* Damaged and foreign messages: an error with a sentence, and nothing is written out of bounds. */
static void wrong_messages_are_refused(void **state)
{
	uint64_t cases = test_cases("damaged messages", 9000), wrong = 0;
	struct call call = { .what = ALLREDUCE, .type = TRIB_F32, .count = 5000 };

	(void)state;
	for (uint64_t i = 0; i < cases; i++) {
		trib_status status = TRIB_OK;
		struct letter *letter;
		struct world world;
		uint64_t at;

		world_open(&world, 3, 1448, i + 1);
		call_make(&world, &call, 1);
		for (unsigned r = 0; r < 2; r++) {
			struct round_spec spec = spec_of(&world, &call, r, 0);

			post(&world, r, &spec);
		}
		start(&world, 0);
		letter = queue_get(&world.members[1].in);
		assert_non_null(letter);
		at = draw(&world, sizeof(struct ring_head));
		letter->data[at] ^= (uint8_t)(1 + draw(&world, 255));
		if (draw(&world, 4) == 0)
			letter->bytes -= (uint32_t)draw(&world, letter->bytes);
		if (ring_take(&world.members[1].ring, letter->data, letter->bytes, &status) ==
		    RING_WRONG) {
			wrong++;
			assert_true(status == TRIB_ERR_PEER || status == TRIB_ERR_MISMATCH);
			assert_non_null(strstr(trib_last_error(), "rank 0"));
		}
		free(letter);
		call_free(&world, &call);
		world_close(&world);
	}
	assert_in_range(wrong, cases / 2, cases);
}

static void a_different_call_is_named(void **state)
{
	struct call call = { .what = ALLREDUCE, .type = TRIB_F32, .count = 5000 };
	struct call other = { .what = ALLREDUCE, .type = TRIB_F32, .count = 5001 };
	trib_status status = TRIB_OK;
	struct round_spec spec;
	struct letter *letter;
	struct world world;

	(void)state;
	world_open(&world, 3, 1448, 1);
	call_make(&world, &call, 1);
	call_make(&world, &other, 1);
	spec = spec_of(&world, &call, 0, 0);
	spec.call = (struct wire_call){ .kind = WIRE_CALL_ALLREDUCE,
		                        .type = TRIB_F32,
		                        .root = WIRE_ALL };
	spec.call.count = call.count;
	post(&world, 0, &spec);
	spec = spec_of(&world, &other, 1, 0);
	spec.call = (struct wire_call){ .kind = WIRE_CALL_ALLREDUCE,
		                        .type = TRIB_F32,
		                        .root = WIRE_ALL };
	spec.call.count = other.count;
	post(&world, 1, &spec);
	assert_true(start(&world, 0));
	letter = queue_get(&world.members[1].in);
	assert_int_equal(ring_take(&world.members[1].ring, letter->data, letter->bytes, &status),
	                 RING_WRONG);
	assert_int_equal(status, TRIB_ERR_MISMATCH);
	assert_non_null(strstr(trib_last_error(), "rank 0 called allreduce of 5000 f32"));
	assert_non_null(strstr(trib_last_error(), "rank 1 called allreduce of 5001 f32"));
	free(letter);
	call_free(&world, &call);
	call_free(&world, &other);
	world_close(&world);
}

/* The round of the next message that rank 0 starts; UINT32_MAX: there is none. */
static uint32_t next_started(struct world *world)
{
	struct letter *letter = start(world, 0) ? queue_get(&world->members[1].in) : NULL;
	uint32_t number =
		letter ? ((const struct ring_head *)(void *)letter->data)->number : UINT32_MAX;

	free(letter);
	return number;
}

/* Classes go around twice before data can start. So they do not wait for data of other rounds. */
static void classes_of_the_next_round_leave_first(void **state)
{
	struct call first = { .what = ALLREDUCE, .type = TRIB_I32, .count = 20000 };
	struct call next = { .what = ALLREDUCE, .type = TRIB_F32, .count = 20000 };
	struct round_spec spec;
	struct world world;

	(void)state;
	world_open(&world, 3, 1448, 1);
	call_make(&world, &first, 1);
	call_make(&world, &next, 1);
	spec = spec_of(&world, &first, 0, 0);
	post(&world, 0, &spec);
	spec = spec_of(&world, &next, 0, 0);
	post(&world, 0, &spec);
	assert_int_equal(next_started(&world), 1);
	assert_int_equal(next_started(&world), 0);
	call_free(&world, &first);
	call_free(&world, &next);
	world_close(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_collective_is_exact),
		cmocka_unit_test(links_carry_no_more_than_a_ring_must),
		cmocka_unit_test(a_late_rank_keeps_little),
		cmocka_unit_test(wrong_messages_are_refused),
		cmocka_unit_test(a_different_call_is_named),
		cmocka_unit_test(classes_of_the_next_round_leave_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
