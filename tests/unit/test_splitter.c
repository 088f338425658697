/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The splitter on simulated queue pairs: each path executes chunks in its order at random times. A
 * path can fail at any time: what it held was executed or not, and its late packets arrive until
 * the path is fenced. Whatever happens, the memory of both sides is as if one QP had executed all
 * requests in order, and each request completes once, in order.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random_bits.h"
#include "path/verbs/splitter.h"
#include "short.h"

#include <string.h>

#define MEMORY 65536u
#define PATHS 4u
#define CAPACITY 32u
#define RECEIVES 8u
#define RECEIVE_BYTES 4096u
#define HELD 64u
#define REQUESTS 200u
#define WRONG 10
#define FLUSHED 5

struct wire {
	struct split_action held[HELD]; /* posted, not answered */
	unsigned n;
	unsigned executed;              /* of these, in place */
	struct split_action late[HELD]; /* answered with an error, still on the way */
	unsigned n_late;
	bool failed; /* answers are errors */
};

struct bed {
	struct splitter s;
	struct split_entry entries[CAPACITY];
	uint64_t seed, now;
	struct wire paths[PATHS], own;
	uint8_t remote[MEMORY + RECEIVES * RECEIVE_BYTES],
		expected[MEMORY + RECEIVES * RECEIVE_BYTES];
	uint8_t local[MEMORY], wanted[MEMORY]; /* where READs go */
	struct split_request requests[REQUESTS];
	uint8_t fill[REQUESTS]; /* what a WRITE or SEND writes */
	uint64_t posted, done;  /* requests */
	uint64_t ends;          /* receives consumed */
	uint32_t lengths[REQUESTS];
	int noted[REQUESTS]; /* notes in place for each receive */
	uint64_t acted;
	unsigned own_failures;
};

static unsigned draw(struct bed *bed, unsigned below)
{
	return (unsigned)(random_next(&bed->seed) % below);
}

static bool find_receive(void *user, uint64_t receive, uint32_t length, uint64_t *remote)
{
	struct bed *bed = user;

	*remote = MEMORY + receive % RECEIVES * RECEIVE_BYTES;
	return length <= RECEIVE_BYTES && draw(bed, 4) > 0;
}

static void bed_init(struct bed *bed, uint64_t seed)
{
	struct split_config config = { .chunk = 1024,
		                       .least = 1500,
		                       .depth = 4,
		                       .capacity = CAPACITY,
		                       .balancer = BALANCE_BANDWIDTH };

	memset(bed, 0, sizeof(*bed));
	bed->seed = seed;
	bed->now = 1;
	splitter_init(&bed->s, &config, bed->entries, find_receive, bed);
}

static void bed_open(struct bed *bed)
{
	splitter_agree(&bed->s, PATHS, 0, RECEIVES, bed->now);
	for (unsigned i = 0; i < PATHS; i++)
		splitter_path_up(&bed->s, i, bed->now, 1000);
}

/* The bytes of one action, on the memory of both sides. */
static void execute(struct bed *bed, const struct split_action *action)
{
	const struct split_request *request = &bed->requests[action->request];
	uint64_t remote = request->op == SPLIT_SEND
	                          ? MEMORY + action->receive % RECEIVES * RECEIVE_BYTES
	                          : request->remote;

	if (action->kind == SPLIT_POST_NOTE)
		bed->noted[action->receive]++;
	else if (action->kind != SPLIT_POST_END && request->op == SPLIT_READ)
		memcpy(bed->local + request->local + action->offset,
		       bed->remote + remote + action->offset, action->length);
	else if (action->kind != SPLIT_POST_END && request->op != SPLIT_OTHER)
		memset(bed->remote + remote + action->offset, bed->fill[action->request],
		       action->length);
	if ((action->kind == SPLIT_POST_END || action->kind == SPLIT_POST_WHOLE) &&
	    request->consumes) {
		assert_int_equal(action->receive, bed->ends);
		if (action->kind == SPLIT_POST_END)
			assert_true(bed->noted[action->receive] > 0);
		/* The bytes of a SEND are in place when its receive is consumed. */
		for (uint32_t i = 0; request->op == SPLIT_SEND && i < request->length; i++)
			assert_int_equal(bed->remote[remote + i], bed->fill[action->request]);
		bed->ends++;
	}
}

static void pump(struct bed *bed)
{
	for (;;) {
		struct split_action action = splitter_next(&bed->s, bed->now);
		struct wire *wire = &bed->own;

		if (action.kind == SPLIT_NOTHING)
			return;
		if (action.kind == SPLIT_POST_CHUNK || action.kind == SPLIT_POST_NOTE)
			wire = &bed->paths[action.path];
		assert_true(wire->n < HELD);
		wire->held[wire->n++] = action;
		bed->acted++;
	}
}

static void take_done(struct bed *bed)
{
	struct split_done done;

	while (splitter_take_done(&bed->s, &done)) {
		assert_int_equal(done.request, bed->done);
		assert_int_equal(done.status, SPLIT_OK);
		bed->done++;
	}
}

static void answer(struct bed *bed, struct wire *wire, bool lost)
{
	struct split_action first = wire->held[0];

	memmove(wire->held, wire->held + 1, --wire->n * sizeof(wire->held[0]));
	wire->executed -= wire->executed > 0;
	if (wire == &bed->own)
		splitter_whole_done(&bed->s, first.request, SPLIT_OK);
	else if (lost && wire->n_late < HELD)
		wire->late[wire->n_late++] = first;
	if (wire != &bed->own && lost)
		assert_true(splitter_chunk_lost(&bed->s, first.id, bed->now));
	else if (wire != &bed->own)
		assert_true(splitter_chunk_done(&bed->s, first.id, bed->now));
}

static void wire_step(struct bed *bed, struct wire *wire)
{
	if (wire->executed < wire->n && draw(bed, 2))
		execute(bed, &wire->held[wire->executed++]);
	else if (wire->executed)
		answer(bed, wire, false);
}

/* Both sides have closed the QPs: all that was posted is answered with an error. */
static void fence(struct bed *bed, unsigned path)
{
	struct wire *wire = &bed->paths[path];

	while (wire->n)
		answer(bed, wire, true);
	for (unsigned i = 0; i < wire->n_late; i++)
		if (draw(bed, 2))
			execute(bed, &wire->late[i]);
	wire->n_late = 0;
	wire->executed = 0;
	splitter_fenced(&bed->s, path);
	wire->failed = false;
}

static void paths_step(struct bed *bed, unsigned path)
{
	struct wire *wire = &bed->paths[path];

	if (wire->failed && draw(bed, 3) == 0) {
		fence(bed, path);
	} else if (wire->failed) {
		if (wire->executed < wire->n && draw(bed, 2))
			execute(bed, &wire->held[wire->executed++]);
		if (wire->n && draw(bed, 2))
			answer(bed, wire, true);
	} else if (!bed->s.up[path]) {
		if (draw(bed, 20) == 0)
			splitter_path_up(&bed->s, path, bed->now, 1000);
	} else if (draw(bed, 100) == 0) {
		splitter_path_down(&bed->s, path, bed->now);
		wire->failed = true;
	} else {
		wire_step(bed, wire);
	}
}

/* A READ that goes again may see what a later WRITE has written, as verbs allow; the bed does not.
 */
static bool own_can_fail(const struct bed *bed)
{
	for (unsigned i = 0; i < bed->own.n; i++) {
		enum split_op op = bed->requests[bed->own.held[i].request].op;

		if (op == SPLIT_OTHER || op == SPLIT_READ)
			return false;
	}
	return bed->own.n > 0;
}

/* The own QP executes in order until it fails, and its answers are lost. */
static void own_step(struct bed *bed)
{
	if (bed->s.own_down) {
		if (draw(bed, 10) == 0)
			assert_true(splitter_own_up(&bed->s, draw(bed, PATHS), bed->ends));
		return;
	}
	if (!bed->s.n_paths || draw(bed, 6) || !own_can_fail(bed)) {
		wire_step(bed, &bed->own);
		return;
	}
	while (bed->own.executed < bed->own.n && draw(bed, 2))
		execute(bed, &bed->own.held[bed->own.executed++]);
	bed->own.n = bed->own.executed = 0;
	splitter_own_down(&bed->s);
	bed->own_failures++;
}

/* ---- what the application posts ---- */

static void expect(struct bed *bed, const struct split_request *request, uint64_t receive,
                   uint8_t fill)
{
	if (request->op == SPLIT_READ)
		memcpy(bed->wanted + request->local, bed->expected + request->remote,
		       request->length);
	else if (request->op == SPLIT_SEND)
		memset(bed->expected + MEMORY + receive % RECEIVES * RECEIVE_BYTES, fill,
		       request->length);
	else if (request->op == SPLIT_WRITE)
		memset(bed->expected + request->remote, fill, request->length);
}

/* Receives in flight are bounded, as the peer's queue is. READs that race with WRITEs are fenced.
 */
static void post(struct bed *bed)
{
	struct split_request r = { .op = (enum split_op)draw(bed, 4) };
	uint64_t receive = bed->s.receives;

	r.length = draw(bed, 3) ? draw(bed, RECEIVE_BYTES) + 1 : draw(bed, 64);
	r.remote = (uint64_t)draw(bed, 4) * RECEIVE_BYTES;
	r.local = (uint64_t)draw(bed, 4) * RECEIVE_BYTES;
	r.consumes = r.op == SPLIT_SEND || (r.op == SPLIT_WRITE && draw(bed, 3) == 0);
	r.fence = draw(bed, 8) == 0;
	if (r.op == SPLIT_OTHER)
		r.length = 8;
	if (r.consumes && bed->s.receives - bed->ends >= RECEIVES)
		return;
	if (!splitter_post(&bed->s, &r))
		return;
	bed->requests[bed->posted] = r;
	bed->fill[bed->posted] = (uint8_t)(bed->posted * 37 + 1);
	expect(bed, &r, receive, bed->fill[bed->posted]);
	bed->posted++;
}

static void run(uint64_t seed)
{
	static struct bed bed;
	uint64_t steps = 0;

	bed_init(&bed, seed);
	while (bed.done < REQUESTS) {
		bed.now += 1000 + draw(&bed, 100000);
		if (bed.posted == 5 && !bed.s.n_paths)
			bed_open(&bed);
		if (bed.posted < REQUESTS && draw(&bed, 3) == 0)
			post(&bed);
		pump(&bed);
		for (unsigned i = 0; bed.s.n_paths && i < PATHS; i++)
			paths_step(&bed, i);
		own_step(&bed);
		take_done(&bed);
		if (++steps > 1000000)
			fail_msg("seed %llu: stuck after %llu requests", (unsigned long long)seed,
			         (unsigned long long)bed.done);
	}
	for (unsigned i = 0; i < PATHS; i++)
		if (bed.paths[i].failed)
			fence(&bed, i);
	if (memcmp(bed.remote, bed.expected, sizeof(bed.remote)) != 0 ||
	    memcmp(bed.local, bed.wanted, sizeof(bed.local)) != 0)
		fail_msg("seed %llu: wrong bytes", (unsigned long long)seed);
	assert_true(bed.s.failures > 0 && bed.own_failures > 0 && bed.acted > REQUESTS);
}

static void random_requests_and_failures(void **state)
{
	uint64_t n = test_cases("random runs", 600);

	(void)state;
	for (uint64_t seed = 1; seed <= n; seed++)
		run(seed);
}

static void one(struct bed *bed, enum split_op op, uint32_t length)
{
	struct split_request r = { .op = op, .length = length, .remote = bed->posted << 20 };

	assert_true(splitter_post(&bed->s, &r));
	bed->requests[bed->posted++] = r;
}

/* A large request uses all paths, chunks of equal length; a small one none of them. */
static void large_requests_use_all_paths(void **state)
{
	static struct bed bed;

	(void)state;
	bed_init(&bed, 1);
	bed_open(&bed);
	bed.s.config.chunk = 1 << 20;
	one(&bed, SPLIT_WRITE, 8 * SPLIT_LEAST);
	pump(&bed);
	for (unsigned i = 0; i < PATHS; i++) {
		assert_int_equal(bed.paths[i].n, 2);
		assert_int_equal(bed.paths[i].held[0].length, SPLIT_LEAST);
	}
	assert_int_equal(bed.own.n, 0);
	one(&bed, SPLIT_WRITE, 100);
	pump(&bed);
	assert_int_equal(bed.own.n, 0); /* it waits until the large one is in place */
	for (unsigned i = 0; i < 2 * PATHS; i++)
		answer(&bed, &bed.paths[i % PATHS], false);
	pump(&bed);
	assert_int_equal(bed.own.n, 1);
}

/* A path that seems a little faster gets no more of a short request, and a slow path gets less. */
static void the_last_chunks_end_together(void **state)
{
	static struct bed bed;
	unsigned slow;

	(void)state;
	for (slow = 7; slow <= 21; slow += 14) {
		bed_init(&bed, 1);
		bed_open(&bed);
		bed.s.config.chunk = 1 << 20;
		bed.s.config.depth = 32;
		for (unsigned i = 0; i < PATHS; i++)
			bed.s.estimates.paths[i].bps = 1000000ull * (i ? slow : 30);
		for (unsigned i = 0; i < 3; i++)
			one(&bed, SPLIT_WRITE, 8 * SPLIT_LEAST);
		pump(&bed);
		if (slow == 21)
			for (unsigned i = 0; i < PATHS; i++)
				assert_int_equal(bed.paths[i].n, 6);
		else
			assert_in_range(bed.paths[0].n, 12, 16);
	}
}

/* A wrong address: the requests before it succeed, it fails with its status, the others flush. */
static void a_wrong_request_fails_alone(void **state)
{
	static struct bed bed;
	struct split_done done;
	uint32_t id;
	int status;

	(void)state;
	bed_init(&bed, 1);
	bed_open(&bed);
	for (unsigned i = 0; i < 3; i++)
		one(&bed, SPLIT_WRITE, 2000);
	bed.s.config.depth = 32;
	bed.requests[1].remote = 20000;
	pump(&bed);
	for (unsigned i = 0; i < PATHS; i++)
		for (unsigned k = 0; k < bed.paths[i].n; k++)
			if (bed.paths[i].held[k].request == 1)
				id = bed.paths[i].held[k].id, status = (int)i;
	assert_true(splitter_chunk_wrong(&bed.s, id, WRONG, bed.now));
	assert_false(splitter_chunk_done(&bed.s, id, bed.now));
	assert_false(splitter_is_wrong(&bed.s, &status));
	for (unsigned i = 0; i < PATHS; i++)
		for (unsigned k = 0; k < bed.paths[i].n; k++)
			if (bed.paths[i].held[k].request == 0)
				splitter_chunk_done(&bed.s, bed.paths[i].held[k].id, bed.now);
	assert_true(splitter_take_done(&bed.s, &done));
	assert_int_equal(done.status, SPLIT_OK);
	assert_true(splitter_is_wrong(&bed.s, &status));
	assert_int_equal(status, WRONG);
	splitter_break(&bed.s, status);
	bed.own.n = 0;
	pump(&bed);
	assert_int_equal(bed.own.n, 2);
	for (unsigned i = 0; i < 2; i++)
		splitter_whole_done(&bed.s, bed.own.held[i].request, FLUSHED);
	assert_true(splitter_take_done(&bed.s, &done));
	assert_int_equal(done.request, 1);
	assert_int_equal(done.status, WRONG);
	assert_true(splitter_take_done(&bed.s, &done));
	assert_int_equal(done.status, FLUSHED);
	assert_false(splitter_is_busy(&bed.s));
}

/* Nobody knows whether a lost atomic was executed, and a READ goes again. */
static void a_lost_atomic_cannot_go_again(void **state)
{
	static struct bed bed;

	(void)state;
	bed_init(&bed, 1);
	bed_open(&bed);
	one(&bed, SPLIT_READ, 8);
	pump(&bed);
	splitter_own_down(&bed.s);
	assert_true(splitter_own_up(&bed.s, 1, 0));
	one(&bed, SPLIT_OTHER, 8);
	pump(&bed);
	assert_int_equal(bed.own.n, 3);
	assert_int_equal(bed.own.held[1].request, 0);
	splitter_own_down(&bed.s);
	assert_false(splitter_own_up(&bed.s, 1, 0));
}

/* The second request is in place when the first one fails: it must not succeed after a failure. */
static void nothing_succeeds_after_a_failure(void **state)
{
	static struct bed bed;
	struct split_done done;

	(void)state;
	bed_init(&bed, 1);
	bed_open(&bed);
	one(&bed, SPLIT_WRITE, 100);
	one(&bed, SPLIT_WRITE, 2000);
	pump(&bed);
	for (unsigned i = 0; i < PATHS; i++)
		while (bed.paths[i].n)
			answer(&bed, &bed.paths[i], false);
	assert_int_equal(bed.own.n, 1);
	assert_false(splitter_take_done(&bed.s, &done));
	splitter_break(&bed.s, WRONG);
	pump(&bed);
	assert_int_equal(bed.own.n, 2);
	for (unsigned i = 0; i < 2; i++)
		splitter_whole_done(&bed.s, bed.own.held[i].request, FLUSHED);
	assert_true(splitter_take_done(&bed.s, &done));
	assert_int_equal(done.status, WRONG);
	assert_true(splitter_take_done(&bed.s, &done));
	assert_int_equal(done.status, FLUSHED);
}

/* While the agreement is near, large requests wait, and small ones before them do not. */
static void large_requests_wait_for_the_agreement(void **state)
{
	static struct bed bed;

	(void)state;
	bed_init(&bed, 1);
	bed.s.hold = true;
	one(&bed, SPLIT_WRITE, 100);
	one(&bed, SPLIT_WRITE, 4000);
	one(&bed, SPLIT_WRITE, 100);
	pump(&bed);
	assert_int_equal(bed.own.n, 1);
	bed.s.hold = false;
	pump(&bed);
	assert_int_equal(bed.own.n, 3);
}

static void a_request_is_taken_back(void **state)
{
	static struct bed bed;
	struct split_request send = { .op = SPLIT_SEND, .consumes = true, .length = 10 };
	struct split_action action;

	(void)state;
	bed_init(&bed, 1);
	one(&bed, SPLIT_WRITE, 100);
	pump(&bed);
	for (unsigned i = 0; i < 2; i++) { /* the second has the same numbers */
		assert_true(splitter_post(&bed.s, &send));
		action = splitter_next(&bed.s, bed.now);
		assert_int_equal(action.kind, SPLIT_POST_WHOLE);
		assert_int_equal(action.request, 1);
		assert_int_equal(action.receive, 0);
		assert_false(splitter_take_back(&bed.s, 0));
		assert_true(splitter_take_back(&bed.s, 1));
	}
	answer(&bed, &bed.own, false);
	take_done(&bed);
	assert_false(splitter_is_busy(&bed.s));
}

static void a_full_queue_says_so(void **state)
{
	static struct bed bed;
	struct split_request r = { .op = SPLIT_WRITE, .length = 10 };

	(void)state;
	bed_init(&bed, 1);
	for (unsigned i = 0; i < CAPACITY; i++)
		assert_true(splitter_post(&bed.s, &r));
	assert_false(splitter_post(&bed.s, &r));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_requests_and_failures),
		cmocka_unit_test(large_requests_use_all_paths),
		cmocka_unit_test(the_last_chunks_end_together),
		cmocka_unit_test(a_wrong_request_fails_alone),
		cmocka_unit_test(a_lost_atomic_cannot_go_again),
		cmocka_unit_test(nothing_succeeds_after_a_failure),
		cmocka_unit_test(large_requests_wait_for_the_agreement),
		cmocka_unit_test(a_request_is_taken_back),
		cmocka_unit_test(a_full_queue_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
