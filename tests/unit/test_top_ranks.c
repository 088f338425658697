/* SPDX-License-Identifier: Apache-2.0 */
/* trib top with a controller: the nodes' reports of communicators, and the output. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cli/cmd/top_ranks.h"

#include <stdlib.h>
#include <string.h>

static struct look_ranks look, before;

static void take(const char *text)
{
	json_t *comms = json_loads(text, JSON_DECODE_ANY, NULL);

	assert_non_null(comms);
	ranks_take(&look, comms);
	json_decref(comms);
}

/* The caller frees the text. */
static char *shown(void)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	ranks_print(out, &look, &before);
	fclose(out);
	return text;
}

static void expect(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("there is no '%s' in:\n%s", part, text);
}

static int forget(void **state)
{
	(void)state;
	memset(&look, 0, sizeof(look));
	memset(&before, 0, sizeof(before));
	return 0;
}

#define CHILD(rank, host, done, last) \
	"{\"rank\":" #rank ",\"host\":\"" host "\",\"done\":" #done ",\"last\":" #last "}"
#define SUMS(rank, covers, host, done, last)                                              \
	"{\"rank\":" #rank ",\"covers\":" covers ",\"host\":\"" host "\",\"done\":" #done \
	",\"last\":" #last "}"
#define COMM(key, state, size, children)                                                \
	"{\"job\":7,\"comm\":1,\"key\":\"" key "\",\"generation\":1,\"state\":\"" state \
	"\",\"size\":" #size ",\"children\":[" children "]}"

/* All ranks, and two halves with ranks of their own. */
static const char split[] =
	"[" COMM("1", "running", 2, CHILD(0, "h0", 10, 10) "," CHILD(1, "h2", 10, 0)) "," COMM(
		"a", "running", 4,
		CHILD(0, "h0", 100, 0) "," CHILD(1, "h1", 100, 75) "," CHILD(
			2, "h2", 100, 25) "," CHILD(3, "h3", 100,
                                                    0)) "," COMM("2", "running", 2,
                                                                 CHILD(0, "h1", 20, 5) "," CHILD(
									 1, "h3", 20, 15)) "]";

static void test_splits_are_apart(void **state)
{
	char *text;

	(void)state;
	take(split);
	assert_int_equal(look.n, 8);
	text = shown();
	expect(text, "job 7, communicator a of 4 ranks\n");
	expect(text, "     1  h1                            100   75.0 %");
	expect(text, "job 7, communicator 1 of 2 ranks\n");
	expect(text, "     0  h0                             10  100.0 %");
	expect(text, "     1  h2                             10    0.0 %");
	expect(text, "job 7, communicator 2 of 2 ranks\n");
	expect(text, "     1  h3                             20   75.0 %");
	assert_true(strstr(text, "communicator a") < strstr(text, "communicator 1"));
	assert_true(strstr(text, "communicator 1") < strstr(text, "communicator 2"));
	free(text);
}

static void test_one_needs_no_name(void **state)
{
	char *text;

	(void)state;
	take("[" COMM("a", "running", 2, CHILD(0, "h0", 10, 1) "," CHILD(1, "h1", 10, 9)) "]");
	text = shown();
	expect(text, "\njob 7\n");
	assert_null(strstr(text, "communicator"));
	free(text);
}

/* The aggregators of one tree say nothing of another tree's ranks. */
static void test_trees_are_apart(void **state)
{
	char *text;

	(void)state;
	take("[" COMM("a", "running", 4,
	              SUMS(0, "[0,1]", "s1", 100, 20) "," SUMS(2, "[2,3]", "s2", 100, 80)) "]");
	take("[" COMM("a", "running", 4,
	              CHILD(0, "h0", 100, 50) "," CHILD(
			      1, "h1", 100, 50)) "," COMM("b", "running", 2,
	                                                  CHILD(0, "h0", 10,
	                                                        4) "," CHILD(1, "h1", 10, 6)) "]");
	text = shown();
	expect(text, "     0  h0                            100   10.0 %");
	expect(text, "     1  h1                             10   60.0 %");
	expect(text, "   0-1  s1 ");
	free(text);
}

/* The trees of one communicator are summed, without those that have ended. */
static void test_stripes_are_one(void **state)
{
	(void)state;
	take("[" COMM("a", "running", 2, CHILD(0, "h0", 100, 50) "," CHILD(1, "h1", 100, 50)) "]");
	take("[" COMM("a", "running", 2, CHILD(0, "h0", 100, 50) "," CHILD(1, "h1", 100, 50)) "]");
	take("[" COMM("a", "failed", 2, CHILD(0, "h0", 5000, 0) "," CHILD(1, "h1", 5000, 0)) "]");
	assert_int_equal(look.n, 2);
	assert_true(look.all[0].done == 200 && look.all[1].last == 100);
}

static void test_what_is_not_told_is_said(void **state)
{
	char *text;

	(void)state;
	take("[{\"job\":7,\"key\":\"a\",\"state\":\"running\",\"size\":64}]");
	assert_int_equal(look.n, 0);
	text = shown();
	expect(text, "ranks of 1 communicators are not shown");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_splits_are_apart, forget),
		cmocka_unit_test_setup(test_one_needs_no_name, forget),
		cmocka_unit_test_setup(test_trees_are_apart, forget),
		cmocka_unit_test_setup(test_stripes_are_one, forget),
		cmocka_unit_test_setup(test_what_is_not_told_is_said, forget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
