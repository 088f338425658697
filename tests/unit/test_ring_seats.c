/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a plan without trees. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "plan/tree/ring_seats.h"

#include <stdio.h>
#include <string.h>

static const char good[] = "ring(10.0.0.1:40001/1448,[fd00::3]:65535/8944r,127.0.0.1:1/256)";

static void test_there_and_back(void **state)
{
	struct ring_seat seats[TREE_RANKS_MAX];
	char text[256];
	unsigned n;

	(void)state;
	assert_true(ring_seats_are(good));
	assert_int_equal(ring_seats_parse(good, seats, &n), TRIB_OK);
	assert_int_equal(n, 3);
	assert_int_equal(seats[0].family, 4);
	assert_memory_equal(seats[0].address, ((uint8_t[]){ 10, 0, 0, 1 }), 4);
	assert_int_equal(seats[0].port, 40001);
	assert_int_equal(seats[0].payload, 1448);
	assert_int_equal(seats[0].rdma, 0);
	assert_int_equal(seats[1].rdma, 1);
	assert_int_equal(seats[1].family, 6);
	assert_int_equal(seats[1].address[15], 3);
	assert_int_equal(ring_seats_print(seats, n, text, sizeof(text)), strlen(good));
	assert_string_equal(text, good);
	/* Too little room: the length is the same, and nothing behind the end is written. */
	memset(text, 'x', sizeof(text));
	assert_int_equal(ring_seats_print(seats, n, text, 20), strlen(good));
	assert_int_equal(text[19], '\0');
	assert_int_equal(text[20], 'x');
}

static void test_most_ranks(void **state)
{
	struct ring_seat seats[TREE_RANKS_MAX + 1] = { 0 }, again[TREE_RANKS_MAX];
	char text[8192];
	unsigned n;

	(void)state;
	for (unsigned i = 0; i <= TREE_RANKS_MAX; i++) {
		seats[i] = (struct ring_seat){ .family = 6, .port = (uint16_t)(i + 1) };
		memset(seats[i].address, 0xee, sizeof(seats[i].address));
	}
	assert_true(ring_seats_print(seats, TREE_RANKS_MAX, text, sizeof(text)) < sizeof(text));
	assert_int_equal(ring_seats_parse(text, again, &n), TRIB_OK);
	assert_int_equal(n, TREE_RANKS_MAX);
	assert_memory_equal(seats, again, sizeof(again));
	ring_seats_print(seats, TREE_RANKS_MAX + 1, text, sizeof(text));
	assert_int_equal(ring_seats_parse(text, again, &n), TRIB_ERR_CONFIG);
}

static void test_wrong(void **state)
{
	static const char *const wrong[] = {
		"",
		"ring",
		"ring(",
		"ring()",
		"ring(10.0.0.1:1/256",
		"ring(10.0.0.1:1/256))",
		"ring(10.0.0.1:1/256,)",
		"ring(10.0.0.1:1/256;10.0.0.2:1/256)",
		"ring(10.0.0.1:0/256)",
		"ring(10.0.0.1:65536/256)",
		"ring(10.0.0.1:1/99999)",
		"ring(10.0.0.1:1)",
		"ring(10.0.0.1:-1/256)",
		"ring(10.0.0.1: 1/256)",
		"ring(10.0.0:1/256)",
		"ring(host:1/256)",
		"ring([::1:1/256)",
		"ring([::1]/256)",
		"ring(0000000000000000000000000000000000000000000000000010.0.0.1:1/256)",
		"10.0.0.9:7700(0-3)",
	};
	struct ring_seat seats[TREE_RANKS_MAX];
	unsigned n;

	(void)state;
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		if (ring_seats_parse(wrong[i], seats, &n) != TRIB_ERR_CONFIG)
			fail_msg("\"%s\" was read", wrong[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_there_and_back),
		cmocka_unit_test(test_most_ranks),
		cmocka_unit_test(test_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
