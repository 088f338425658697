/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "bench/allreduce/saved_results.h"
#include "tributary.h"

#include <stdio.h>
#include <string.h>

#define PLACE "\"place\": \"3 hosts\", \"collective\": \"allreduce\", \"hosts\": 3"
#define HEAD "{ \"settings\": { " PLACE " },\n\"results\": [\n"
#define RING "{ \"system\": \"ring\", \"plane\": \"tcp\", \"bytes\": 4096, "

static struct bench_saved saved, other;

static void rows_are_read(void **state)
{
	(void)state;
	assert_int_equal(
		saved_read(&saved,
	                   "{ \"later\": [ 1, {} ], \"settings\": { " PLACE ", \"loss\": 0.5,"
	                   "\"switch\": true, \"iterations\": 2, \"repeats\": 3 },\n"
	                   "\"results\": [ " RING "\"algorithm\": null, \"median_s\": 0.5,"
	                   "\"min_s\": 0.25, \"p99_s\": 1, \"limit_s\": 0.125,"
	                   "\"spread\": 0.1, \"repeats\": 3, \"failed\": 0 },\n" RING
	                   "\"algorithm\": \"x\", \"median_s\": null, \"repeats\": 0,"
	                   "\"failed\": 3, \"note\": \"a \\\"b\\\" \\u001b\\u0041\" } ] }"),
		TRIB_OK);
	assert_int_equal(saved.n, 2);
	assert_string_equal(saved.place, "3 hosts");
	assert_true(saved.loss == 0.5 && saved.iterations == 2 && saved.repeats == 3);
	assert_memory_equal(saved.is_switch.at, "true", saved.is_switch.bytes);
	assert_string_equal(saved.rows[0].system, "ring");
	assert_string_equal(saved.rows[0].algorithm, "");
	assert_true(saved.rows[0].bytes == 4096 && saved.rows[0].median_s == 0.5);
	assert_true(saved.rows[0].limit_s == 0.125 && saved.rows[0].repeats == 3);
	assert_true(saved.rows[1].median_s == 0 && saved.rows[1].failed == 3);
	assert_string_equal(saved.rows[1].note, "a \"b\"  A");
}

static void what_is_wrong_is_said(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "", "1: expected {" },
		{ "[]", "1: expected {" },
		{ "{ \"settings\": { " PLACE " } }", "no \"results\"" },
		{ "{ \"results\": [ " RING "\"repeats\": 0 } ] }", "no \"settings\"" },
		{ "{ \"settings\": { \"place\": \"a\", \"collective\": \"b\" } }",
		  "no \"settings\" of trib bench allreduce" },
		{ HEAD "] }", "3: no \"results\"" },
		{ HEAD "{ \"bytes\": 4 } ] }", "3: a result has no \"system\"" },
		{ HEAD "{ \"system\": 7 } ] }", "3: expected a text" },
		{ HEAD "{ \"system\": \"ring\" } ] }", "3: a result has no whole number of" },
		{ HEAD RING "\"bytes\": 4.5 } ] }", "3: a result has no whole number of" },
		{ HEAD RING "\n\"median_s\": \"1\" } ] }", "4: expected a number" },
		{ HEAD RING "\"median_s\": -1 } ] }", "3: a figure is below 0" },
		{ HEAD RING "\"median_s\": 1e400 } ] }", "3: expected a number" },
		{ HEAD RING "\"median_s\": 1e-300, \"repeats\": 1 } ] }", "below a nanosecond" },
		{ HEAD RING "\"repeats\": 1 } ] }", "below a nanosecond" },
		{ HEAD RING "\"repeats\": 0.5 } ] }", "3: \"repeats\" and \"failed\"" },
		{ HEAD RING "\"note\": \"\\x\" } ] }", "3: a text has an escape" },
		{ HEAD RING "\"note\": \"\\u00", "3: \\u has no four digits" },
		{ HEAD RING "\"note\": \"\\", "3: a text has an escape" },
		{ HEAD RING "\"repeats\": 0 } ]", "3: expected a comma" },
		{ HEAD RING "\"repeats\": 0 } ] } }", "3: there is text behind" },
		{ "{ \"settings\": { " PLACE ", \"iterations\": 1e12 }, \"results\": [ " RING
		  "\"repeats\": 0 } ] }",
		  "counts up to 1000000" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(saved_read(&saved, cases[i].text), TRIB_ERR_CONFIG);
		if (!strstr(trib_last_error(), cases[i].says))
			fail_msg("%s\nsays: %s", cases[i].text, trib_last_error());
	}
}

static void too_many_rows_are_refused(void **state)
{
	static char text[300 * 64] = HEAD;
	const char *row = "{\"system\":\"ring\",\"bytes\":4}";

	(void)state;
	for (unsigned i = 0; i < SAVED_ROWS_MAX; i++)
		strcat(strcat(text, i ? "," : ""), row);
	strcat(text, "]}");
	assert_int_equal(saved_read(&saved, text), TRIB_OK);
	assert_int_equal(saved.n, SAVED_ROWS_MAX);
	strcat(strcpy(strstr(text, "]}"), ","), row);
	strcat(text, "]}");
	assert_int_equal(saved_read(&saved, text), TRIB_ERR_CONFIG);
	assert_non_null(strstr(trib_last_error(), "3: more than 192 results"));
}

#define ROWS ", \"results\": [ " RING "\"repeats\": 0 } ] }"

static void only_alike_ones_go_together(void **state)
{
	static const struct {
		const char *settings, *differs;
	} cases[] = {
		{ "", NULL },
		{ ", \"iterations\": 7, \"left_out\": \"x\", \"version\": \"9\"", NULL },
		{ ", \"loss\": 0.1", "loss" },
		{ ", \"late\": [ 1 ]", "late" },
		{ ", \"place\": \"4 hosts\"", "place" },
		{ ", \"trees\": []", "trees" },
	};
	char text[400];

	(void)state;
	assert_int_equal(saved_read(&other, "{ \"settings\": { " PLACE " }" ROWS), TRIB_OK);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const char *differs;

		strcpy(text, "{ \"settings\": { " PLACE);
		strcat(strcat(text, cases[i].settings), " }" ROWS);
		assert_int_equal(saved_read(&saved, text), TRIB_OK);
		differs = saved_unlike(&other, &saved);
		if (cases[i].differs)
			assert_string_equal(differs, cases[i].differs);
		else
			assert_null(differs);
	}
}

/* Programs of two versions may lay out the same settings differently. */
static void white_space_does_not_count(void **state)
{
	static const char *const layouts[] = { "[\"s1\", {\"a\": 1}]",
		                               "[ \"s1\",\n  { \"a\":1 } ]" };
	char texts[2][400]; /* settings point into them */

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		snprintf(texts[i], sizeof(texts[i]),
		         "{ \"settings\": { " PLACE ", \"trees\": %s }" ROWS, layouts[i]);
		assert_int_equal(saved_read(i ? &saved : &other, texts[i]), TRIB_OK);
	}
	assert_null(saved_unlike(&other, &saved));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(white_space_does_not_count),
		cmocka_unit_test(rows_are_read),
		cmocka_unit_test(what_is_wrong_is_said),
		cmocka_unit_test(too_many_rows_are_refused),
		cmocka_unit_test(only_alike_ones_go_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
