/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker's table of engines has an entry for each engine that a communicator can join. It is a
 * real boundary: lanes of a third engine, which lives in this test only, live and die by its entry.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/engine_table.h"
#include "worker/transport/lane_engine_table.h"
#include "worker/transport/transport.h"

#include <stdlib.h>

/* src/sparse speaks it: a worker of its own, without a communicator. */
static bool has_lanes(uint8_t number)
{
	return number != ENGINE_SPARSE;
}

static void test_same_engines(void **state)
{
	(void)state;
	for (uint8_t number = 0; number < ENGINES_MAX; number++) {
		const struct engine *engine = engine_find(number);
		const struct lane_engine *lanes = lane_engine_find(number);
		bool joined = number == ENGINE_DENSE || (engine && has_lanes(number));

		assert_int_equal(lanes != NULL, joined);
		if (!lanes)
			continue;
		assert_int_equal(lanes->number, number);
		assert_string_equal(lanes->name, engine ? engine->name : "dense");
		assert_int_equal(lanes->any_cells, !engine || engine->any_cells);
	}
	assert_null(lane_engine_find(ENGINES_MAX));
}

static void test_entries_are_whole(void **state)
{
	(void)state;
	for (uint8_t number = 0; number < ENGINES_MAX; number++) {
		const struct lane_engine *lanes = lane_engine_find(number);

		if (!lanes)
			continue;
		assert_true(lanes->lanes_max >= 1 && lanes->lanes_max <= WIRE_LANES_MAX);
		assert_true(lanes->pool_bytes && lanes->start && lanes->posted);
		assert_int_equal(lanes->push != NULL, lanes->small);
		assert_int_equal(lanes->poll != NULL, lanes->small);
		assert_int_equal(lanes->drive != NULL, lanes->small);
	}
}

/* ---- a third engine ---- */

static unsigned posts, stops, closes;

static void *third_main(void *argument)
{
	return argument;
}

static trib_status third_start(struct lane *lane)
{
	lane->own = &posts;
	lane->started = !pthread_create(&lane->thread, NULL, third_main, lane);
	return lane->started ? TRIB_OK : TRIB_ERR_SYSTEM;
}

static void third_posted(struct lane *lane)
{
	++*(unsigned *)lane->own;
}

static void third_stopped(const struct lane *lane)
{
	assert_ptr_equal(lane->own, &posts);
	stops++;
}

static void third_close(struct lane *lane)
{
	lane->own = NULL;
	closes++;
}

static const struct lane_engine third = { .name = "third",
	                                  .number = ENGINES_MAX - 1,
	                                  .lanes_max = 1,
	                                  .start = third_start,
	                                  .posted = third_posted,
	                                  .stopped = third_stopped,
	                                  .close = third_close };

static void test_life_by_the_entry(void **state)
{
	struct trib_comm *comm = calloc(1, sizeof(*comm));
	struct round round = { .next = NULL };
	struct trunk *trunk;
	struct lane *lane;

	(void)state;
	assert_non_null(comm);
	trunk = &comm->trunks[comm->n_trunks++];
	comm->lanes_wanted = 1;
	trunk->engine = &third;
	assert_int_equal(udp_resolve("127.0.0.1:9", 0, &trunk->aggregator), TRIB_OK);
	lane = lane_make(comm, trunk);
	assert_non_null(lane);
	assert_ptr_equal(lane->engine, &third);
	assert_int_equal(lane_open(lane), TRIB_OK);
	assert_int_equal(lane_start(lane), TRIB_OK);
	lane_post(lane, &round);
	assert_int_equal(posts, 1);
	assert_ptr_equal(lane_take_posted(lane, 0), &round);
	lane_stop(lane);
	lane_stop(lane); /* its thread has ended already */
	assert_int_equal(stops, 1);
	lane_close(lane);
	assert_int_equal(closes, 1);
	free(comm);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_engines),
		cmocka_unit_test(test_entries_are_whole),
		cmocka_unit_test(test_life_by_the_entry),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
