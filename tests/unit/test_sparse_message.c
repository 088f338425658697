/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of sparse training, the f16 of their rows, and the clocks of a table's workers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sparse/server/table_clocks.h"
#include "sparse/wire/half.h"
#include "sparse/wire/sparse_message.h"

#include <string.h>

/* Takes the next message of a buffer. */
static struct message take(struct byte_buffer *in)
{
	struct message_header header;
	struct message message;

	assert_true(buffer_bytes(in) >= MESSAGE_HEADER);
	assert_int_equal(message_header_read(buffer_front(in), &header), TRIB_OK);
	if (message_parse(&header, buffer_front(in) + MESSAGE_HEADER, &message) != TRIB_OK)
		fail_msg("%s", trib_last_error());
	in->first += MESSAGE_HEADER + header.bytes; /* the bytes stay, for the pointers */
	return message;
}

static const uint64_t keys[3] = { 7, 1ull << 40, 0 };
static const float rows[6] = { 1, -2, 0.5F, 1e-20F, 3e8F, 0 };

static void test_rows(void **state)
{
	struct byte_buffer bytes = { 0 };
	struct message message;
	float back[6];

	(void)state;
	assert_true(message_add_push(&bytes, 5, 0, keys, rows, 3, 2));
	assert_true(message_add_rows(&bytes, 6, 0, rows, 2, 3));
	assert_true(message_add_rows(&bytes, 7, MESSAGE_F16, rows, 1, 3));
	assert_true(message_add_rows(&bytes, 8, MESSAGE_F16, rows, 2, 3));
	assert_true(message_add_pull(&bytes, 9, MESSAGE_F16, keys, 3));
	message = take(&bytes);
	assert_int_equal(message.kind, MESSAGE_PUSH);
	assert_int_equal(message.number, 5);
	assert_int_equal(message.width, 2);
	assert_memory_equal(message.keys, keys, sizeof(keys));
	assert_memory_equal(message.rows, rows, sizeof(rows));
	message = take(&bytes);
	assert_true(message.kind == MESSAGE_ROWS && message.count == 2 && message.width == 3);
	assert_memory_equal(message.rows, rows, sizeof(rows));
	message = take(&bytes);
	assert_int_equal(message.flags, MESSAGE_F16);
	message_values(&message, back, 0, 3);
	assert_memory_equal(back, rows, 3 * sizeof(float)); /* these have an f16 */
	message = take(&bytes);
	assert_int_equal(message.flags, 0); /* 3e8 has none */
	assert_memory_equal(message.rows, rows, sizeof(rows));
	message = take(&bytes);
	assert_true(message.kind == MESSAGE_PULL && message.flags == MESSAGE_F16);
	assert_memory_equal(message.keys, keys, sizeof(keys));
	assert_int_equal(buffer_bytes(&bytes), 0);
	buffer_free(&bytes);
}

static void test_hot_messages(void **state)
{
	const struct message_hot hot = {
		.generation = 4, .width = 16, .size = 5, .address = "a:1"
	};
	const struct message_record record = { .low = 9, .seen = { 2, 0, 4 } };
	struct byte_buffer bytes = { 0 };
	struct message message;
	uint8_t *pushes;

	(void)state;
	assert_true(message_add_hot(&bytes, 2, &hot, keys, 3));
	assert_true(message_add_map(&bytes, 2, 5, keys, 3));
	assert_true(message_add_sealed(&bytes, 2, &record));
	assert_true(message_add_heat(&bytes, keys, keys, 3));
	pushes = message_add_counts(&bytes, 2, 5, MESSAGE_MOVED, 11);
	assert_non_null(pushes);
	pushes[10] = 200;
	assert_true(message_add_text(&bytes, MESSAGE_NOTICE, MESSAGE_FATAL, "rank 2 left"));
	assert_true(message_add_lost(&bytes, 7, "it is silent"));
	message = take(&bytes);
	assert_int_equal(message.number, 2);
	assert_memory_equal(&message.u.hot, &hot, sizeof(hot));
	assert_memory_equal(message.keys, keys, sizeof(keys));
	message = take(&bytes);
	assert_true(message.kind == MESSAGE_MAP && message.generation == 5);
	assert_memory_equal(message.keys, keys, sizeof(keys));
	message = take(&bytes);
	assert_memory_equal(&message.u.record, &record, sizeof(record));
	message = take(&bytes);
	assert_memory_equal(message.keys, keys, sizeof(keys));
	assert_memory_equal(message.counts, keys, sizeof(keys));
	message = take(&bytes);
	assert_true(message.kind == MESSAGE_COUNTS && message.flags == MESSAGE_MOVED);
	assert_true(message.number == 2 && message.generation == 5 && message.count == 11);
	assert_true(!message.pushes[9] && message.pushes[10] == 200);
	message = take(&bytes);
	assert_true(message.kind == MESSAGE_NOTICE && message.flags == MESSAGE_FATAL);
	assert_int_equal(message.count, strlen("rank 2 left"));
	assert_memory_equal(message.text, "rank 2 left", message.count);
	message = take(&bytes);
	assert_true(message.kind == MESSAGE_LOST && message.number == 7);
	assert_int_equal(message.count, strlen("it is silent"));
	assert_memory_equal(message.text, "it is silent", message.count);
	buffer_free(&bytes);
}

static void test_half(void **state)
{
	(void)state;
	for (uint32_t bits = 0; bits < 0x10000; bits++) {
		float value = half_value((uint16_t)bits);

		if (isnan(value))
			assert_int_equal(half_from(value) & 0x7fff, HALF_NAN);
		else
			assert_int_equal(half_from(value), bits);
	}
	assert_int_equal(half_from(65519), 0x7bff);
	assert_true(!half_overflows(65519) && half_overflows(65520) && !half_overflows(INFINITY));
	assert_int_equal(half_from(1 + 1.0F / 2048), half_from(1)); /* a tie goes to the even one */
	assert_int_equal(half_from(1 + 3.0F / 2048), half_from(1) + 2);
	assert_int_equal(half_from(1e-45F), 0);
}

static void test_clocks(void **state)
{
	struct table_clocks clocks = { 0 };
	uint32_t rank;

	(void)state;
	assert_true(clocks_begin(&clocks, 3));
	clocks_join(&clocks, 0, 10, 0, "a");
	clocks_join(&clocks, 2, 12, 5, "c");
	clocks_step(&clocks, 0, 7);
	assert_int_equal(clocks_lowest(&clocks, &rank), 0); /* rank 1 was never there */
	assert_int_equal(rank, 1);
	clocks_join(&clocks, 1, 11, 6, "b");
	assert_int_equal(clocks_lowest(&clocks, &rank), 5);
	assert_int_equal(rank, 2);
	clocks_leave(&clocks, 2, false, 100);
	assert_int_equal(clocks_lowest(&clocks, &rank), 0);
	assert_int_equal(clocks_overdue(&clocks, 149, 50), UINT32_MAX);
	assert_int_equal(clocks_overdue(&clocks, 150, 50), 2);
	assert_int_equal(clocks_overdue(&clocks, 150, 50), UINT32_MAX); /* it is told once */
	clocks_join(&clocks, 2, 12, 8, "c");
	assert_int_equal(clocks_lowest(&clocks, &rank), 6);
	clocks_leave(&clocks, 1, true, 200);
	assert_int_equal(clocks_lowest(&clocks, &rank), 7);
	assert_int_equal(clocks_overdue(&clocks, 1000, 50), UINT32_MAX); /* BYE is no loss */
	clocks_leave(&clocks, 0, true, 200);
	clocks_leave(&clocks, 2, true, 200);
	assert_true(clocks_lowest(&clocks, &rank) == CLOCK_FINISHED);
	assert_int_equal(clocks.present, 0);
	clocks_free(&clocks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_hot_messages),
		cmocka_unit_test(test_half),
		cmocka_unit_test(test_clocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
