/* SPDX-License-Identifier: Apache-2.0 */
/* The bench's one printer: the same rows as a table and as JSON. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "bench/report/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NAME, TIME, SHARE, MARK, COLUMNS };

static void twice(double value, char *out, size_t size)
{
	snprintf(out, size, "2*%g", value / 2);
}

static const struct table_column columns[COLUMNS] = {
	[NAME] = { .header = "name", .field = "name" },
	[TIME] = { .header = "time",
	           .format = "%.1f",
	           .scale = 1e3,
	           .unit = " ms",
	           .field = "time_s",
	           .json = "%.4f" },
	[SHARE] = { .header = "of", .show = twice, .positive = true, .field = "of", .json = "%g" },
	[MARK] = { .field = "mark" },
};

static struct table table;
static char *text;

static int rows_make(void **state)
{
	(void)state;
	table_open(&table, columns, COLUMNS);
	table_add(&table);
	table_text(&table, NAME, "longest");
	table_number(&table, TIME, 0.0025);
	table_number(&table, SHARE, 4);
	table_number(&table, MARK, 1);
	table_add(&table);
	table_text(&table, NAME, "b");
	table_number(&table, TIME, NAN);
	table_number(&table, SHARE, 0);
	table_note(&table, "*");
	table_add(&table);
	table_text(&table, NAME, NULL);
	table_note(&table, "failed: %s", "no \"memory\"");
	return 0;
}

static int rows_free(void **state)
{
	(void)state;
	table_close(&table);
	free(text);
	text = NULL;
	return 0;
}

static void people_get_columns(void **state)
{
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	(void)state;
	table_print(&table, out);
	fclose(out);
	assert_string_equal(text, "name       time   of\n"
	                          "longest  2.5 ms  2*2\n"
	                          "b             -    -  *\n"
	                          "-        failed: no \"memory\"\n");
}

static void programs_get_objects(void **state)
{
	size_t bytes;
	struct json_writer json = { .out = open_memstream(&text, &bytes) };

	(void)state;
	json_open_object(&json, NULL);
	json_put_text(&json, "why", "a \"b\"");
	table_json(&table, &json, "rows");
	json_open_object(&json, "settings");
	json_put_count(&json, "n", 3);
	json_put_numbers(&json, "list", "%g", (const double[]){ 1, 2.5, INFINITY }, 3);
	json_open_list(&json, "none");
	json_close(&json);
	json_close(&json);
	json_close(&json);
	fclose(json.out);
	assert_string_equal(
		text,
		"{\n"
		"  \"why\": \"a \\\"b\\\"\",\n"
		"  \"rows\": [\n"
		"    { \"name\": \"longest\", \"time_s\": 0.0025, \"of\": 4, \"mark\": true },\n"
		"    { \"name\": \"b\", \"time_s\": null, \"of\": 0 },\n"
		"    { \"name\": null }\n"
		"  ],\n"
		"  \"settings\": {\n"
		"    \"n\": 3,\n"
		"    \"list\": [1, 2.5, null],\n"
		"    \"none\": []\n"
		"  }\n"
		"}\n");
}

static void lines_have_no_blanks(void **state)
{
	size_t bytes;
	struct json_writer json = { .out = open_memstream(&text, &bytes), .is_compact = true };

	(void)state;
	json_open_object(&json, NULL);
	table_json(&table, &json, "rows");
	json_open_object(&json, "none");
	json_close(&json);
	json_put_numbers(&json, "list", "%g", (const double[]){ 1, 2.5 }, 2);
	json_close(&json);
	fclose(json.out);
	assert_string_equal(
		text, "{\"rows\":[{\"name\":\"longest\",\"time_s\":0.0025,\"of\":4,\"mark\":true},"
		      "{\"name\":\"b\",\"time_s\":null,\"of\":0},{\"name\":null}],"
		      "\"none\":{},\"list\":[1,2.5]}\n");
}

static void a_column_that_nobody_sets_is_left_out(void **state)
{
	struct table few;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	(void)state;
	table_open(&few, columns, COLUMNS);
	table_add(&few);
	table_text(&few, NAME, "x");
	table_number(&few, SHARE, 2);
	table_print(&few, out);
	table_close(&few);
	fclose(out);
	assert_string_equal(text, "name   of\nx     2*1\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(people_get_columns, rows_make, rows_free),
		cmocka_unit_test_setup_teardown(programs_get_objects, rows_make, rows_free),
		cmocka_unit_test_setup_teardown(lines_have_no_blanks, rows_make, rows_free),
		cmocka_unit_test_setup_teardown(a_column_that_nobody_sets_is_left_out, NULL,
		                                rows_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
