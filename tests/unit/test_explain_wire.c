/* SPDX-License-Identifier: Apache-2.0 */
/* trib explain JOB: how many bits an element takes on the wire. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cli/cmd/explain.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define LARGE "  On the wire, in sums of large vectors: "

/* The caller frees the text. */
static char *explained(json_t *communicator)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(communicator);
	assert_non_null(out);
	explain_wire(communicator, out);
	fclose(out);
	json_decref(communicator);
	return text;
}

static void says(json_t *communicator, const char *expected)
{
	char *text = explained(communicator);

	assert_string_equal(text, expected);
	free(text);
}

static void ends_with(json_t *communicator, const char *end)
{
	char *text = explained(communicator);

	assert_true(!strncmp(text, LARGE, strlen(LARGE)));
	assert_true(strlen(text) > strlen(end));
	assert_string_equal(text + strlen(text) - strlen(end), end);
	free(text);
}

static json_t *of(unsigned ranks, const char *wire)
{
	json_t *members = json_array();

	for (unsigned i = 0; i < ranks; i++)
		json_array_append_new(members, json_integer((json_int_t)i));
	return json_pack("{s:o, s:s}", "members", members, "wire", wire);
}

static void test_widths(void **state)
{
	(void)state;
	ends_with(of(4, "auto"), " bf16 and f16 16 bits, f32 32 bits (TRIB_WIRE=auto).\n");
	ends_with(of(12, "auto"), " f16 21 bits, f32 32 bits (TRIB_WIRE=auto).\n");
	ends_with(of(20, "auto"), " bf16 and f16 21 bits, f32 32 bits (TRIB_WIRE=auto).\n");
	ends_with(of(4, "16"), ", bf16, f16 and f32 16 bits an element (TRIB_WIRE=16).\n");
	says(of(4, "32"),
	     LARGE "f8e4m3, f8e5m2, bf16, f16 and f32 32 bits an element (TRIB_WIRE=32).\n");
	says(of(4, "8"),
	     LARGE "f8e4m3, f8e5m2, bf16, f16 and f32 8 bits an element (TRIB_WIRE=8).\n");
}

static void test_mixed(void **state)
{
	(void)state;
	says(json_loads("{\"wire\":\"mixed\",\"members\":[0,1,2],\"ranks\":[{\"wire\":\"32\"},"
	                "{\"wire\":\"16\"},{\"wire\":\"32\"}]}",
	                0, NULL),
	     "  The ranks have different values of TRIB_WIRE (32: ranks 0,2; 16: ranks 1), so sums "
	     "of large vectors fail if their widths differ.\n");
}

/* A rank or a controller of an earlier version; a controller that lies. */
static void test_unknown(void **state)
{
	(void)state;
	says(json_object(), "");
	says(of(4, ""), "");
	says(of(4, "17"), "");
	says(of(4, "auto\nmatic"), "");
	says(of(0, "auto"), "");
	says(json_pack("{s:[i], s:i}", "members", 0, "wire", 16), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_widths),
		cmocka_unit_test(test_mixed),
		cmocka_unit_test(test_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
