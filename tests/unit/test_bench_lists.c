/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of sizes and of counts, and how many calls a run makes at a size. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "bench/bed/size_list.h"
#include "bench/latency/call_counts.h"

#define MOST 3

static uint64_t list[MOST];
static unsigned n;

static void words_are_taken_one_by_one(void **state)
{
	const char *rest = "xdp,udp,a-very-long-word";
	char word[8];

	(void)state;
	rest = list_word_next(rest, word, sizeof(word));
	assert_string_equal(word, "xdp");
	rest = list_word_next(rest, word, sizeof(word));
	assert_string_equal(word, "udp");
	rest = list_word_next(rest, word, sizeof(word));
	assert_string_equal(word, "a-very-");
	assert_string_equal(rest, "");
}

static void sizes_are_read(void **state)
{
	(void)state;
	assert_int_equal(size_list_parse("4,1K,2.5e6", list, MOST, &n), TRIB_OK);
	assert_int_equal(n, 3);
	assert_int_equal(list[0], 4);
	assert_int_equal(list[1], 1024);
	assert_int_equal(list[2], 2500000);
	assert_int_equal(size_list_parse("64M", list, MOST, &n), TRIB_OK);
	assert_int_equal(n, 1);
	assert_int_equal(size_list_parse("", list, MOST, &n), TRIB_OK);
	assert_int_equal(n, 0);
}

static void wrong_sizes_are_refused(void **state)
{
	static const char *const wrong[] = { "3", "0", "4,,8", "x", "4,6", "4,8,12,16", "-4" };

	(void)state;
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(size_list_parse(wrong[i], list, MOST, &n), TRIB_ERR_ARGUMENT);
}

static void counts_are_read(void **state)
{
	(void)state;
	assert_int_equal(count_list_parse("8,2,4", 64, list, MOST, &n), TRIB_OK);
	assert_int_equal(n, 3);
	assert_int_equal(list[0], 8);
	assert_int_equal(list[1], 2);
	assert_int_equal(list[2], 4);
	assert_int_equal(count_list_parse("64", 64, list, MOST, &n), TRIB_OK);
	assert_int_equal(list[0], 64);
}

static void wrong_counts_are_refused(void **state)
{
	static const char *const wrong[] = { "0",
		                             "65",
		                             "2,2",
		                             "2,,4",
		                             "x",
		                             "4x",
		                             "-2",
		                             " 2",
		                             "+2",
		                             "1,2,3,4",
		                             "99999999999999999999" };

	(void)state;
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(count_list_parse(wrong[i], 64, list, MOST, &n), TRIB_ERR_ARGUMENT);
}

static void sizes_are_written_as_they_are_read(void **state)
{
	static const char *const texts[] = { "4", "1000", "1K", "64K", "1M", "64M", "2.5e6" };
	char out[24];

	(void)state;
	for (unsigned i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		assert_int_equal(size_list_parse(texts[i], list, MOST, &n), TRIB_OK);
		assert_string_equal(bench_bytes_text(list[0], out), texts[i]);
	}
}

static void large_vectors_have_fewer_calls(void **state)
{
	(void)state;
	assert_int_equal(call_count(1000, 5, 4), 1000);
	assert_int_equal(call_count(1000, 5, 65536), 1000);
	assert_int_equal(call_count(1000, 5, 131072), 500);
	assert_int_equal(call_count(1000, 5, 1 << 20), 62);
	assert_int_equal(call_count(1000, 5, 64 << 20), 5);
	assert_int_equal(call_count(3, 5, 64 << 20), 3);
	assert_int_equal(call_count(0, 2, 64 << 20), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_are_taken_one_by_one),
		cmocka_unit_test(sizes_are_read),
		cmocka_unit_test(wrong_sizes_are_refused),
		cmocka_unit_test(counts_are_read),
		cmocka_unit_test(wrong_counts_are_refused),
		cmocka_unit_test(sizes_are_written_as_they_are_read),
		cmocka_unit_test(large_vectors_have_fewer_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
