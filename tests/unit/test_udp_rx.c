/* SPDX-License-Identifier: Apache-2.0 */
/* The number of messages in a receive call: many for short packets, few for long ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "path/udp.h"

#include <string.h>
#include <unistd.h>

#define FEW 8
#define MANY ((int)UDP_RX_MANY)
#define LONG 20000u

struct ends {
	int from, to;
	struct udp_address address; /* address of the sender */
};

static void ends_open(struct ends *ends)
{
	const struct udp_options options = { .receive_bytes = 4 << 20, .send_bytes = 4 << 20 };
	struct udp_address local, there = { .length = sizeof(there.storage) };
	bool gso;

	assert_int_equal(udp_resolve("127.0.0.1:0", 0, &local), TRIB_OK);
	assert_int_equal(udp_open(&local, NULL, &options, &ends->to, &gso), TRIB_OK);
	assert_int_equal(getsockname(ends->to, (void *)&there.storage, &there.length), 0);
	assert_int_equal(udp_open(&local, NULL, &options, &ends->from, &gso), TRIB_OK);
	assert_int_equal(connect(ends->from, (void *)&there.storage, there.length), 0);
	ends->address.length = sizeof(ends->address.storage);
	assert_int_equal(
		getsockname(ends->from, (void *)&ends->address.storage, &ends->address.length), 0);
}

static void ends_close(const struct ends *ends)
{
	close(ends->from);
	close(ends->to);
}

/* Sends messages of this length. The first word of each is its number. */
static void send_some(const struct ends *ends, unsigned n, uint32_t bytes)
{
	static uint64_t data[LONG / 8];

	for (unsigned i = 0; i < n; i++) {
		data[0] = i;
		assert_int_equal(send(ends->from, data, bytes, 0), bytes);
	}
}

/* All messages have arrived, whole and in order. */
static void take(struct udp_rx *rx, const struct ends *ends, int n, unsigned first, uint32_t bytes)
{
	assert_int_equal(udp_receive(rx, ends->to), n);
	for (int i = 0; i < n; i++) {
		const struct udp_message *message = udp_message(rx, i);
		uint64_t number;

		memcpy(&number, message->data, sizeof(number));
		assert_int_equal(number, first + (unsigned)i);
		assert_int_equal(message->bytes, bytes);
		assert_int_equal(message->segment, bytes);
		assert_int_equal((uintptr_t)message->data % 64, 0);
	}
}

static void test_many_where_short(void **state)
{
	struct udp_rx *rx = udp_rx_new(FEW, false);
	struct ends ends;

	(void)state;
	assert_non_null(rx);
	ends_open(&ends);
	send_some(&ends, FEW + MANY + 3, 1472);
	take(rx, &ends, FEW, 0, 1472); /* nothing is known yet */
	assert_true(udp_rx_was_full(rx));
	take(rx, &ends, MANY, FEW, 1472);
	assert_true(udp_rx_was_full(rx));
	take(rx, &ends, 3, FEW + MANY, 1472);
	assert_false(udp_rx_was_full(rx));
	assert_int_equal(udp_receive(rx, ends.to), 0);
	assert_false(udp_rx_was_full(rx));
	ends_close(&ends);
	udp_rx_free(rx);
}

static void test_few_where_long(void **state)
{
	struct udp_rx *rx = udp_rx_new(FEW, true);
	struct ends ends;

	(void)state;
	assert_non_null(rx);
	ends_open(&ends);
	send_some(&ends, 2, 1472);
	take(rx, &ends, 2, 0, 1472);
	send_some(&ends, 3, LONG); /* few, because users other than root have small buffers */
	take(rx, &ends, 3, 0, LONG);
	send_some(&ends, FEW + 2, 1472);
	take(rx, &ends, FEW, 0, 1472);
	take(rx, &ends, 2, FEW, 1472);
	assert_true(udp_same(&udp_message(rx, 1)->from, &ends.address));
	ends_close(&ends);
	udp_rx_free(rx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many_where_short),
		cmocka_unit_test(test_few_where_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
