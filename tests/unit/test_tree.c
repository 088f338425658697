/* SPDX-License-Identifier: Apache-2.0 */
/* Trees and their text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "plan/tree/tree.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct forest forest;

static void test_reads_forest(void **state)
{
	const struct tree *tree = forest.trees;

	(void)state;
	assert_int_equal(forest_parse(&forest, "0.25*r:1(a:1(0-2),b:1(3-5),6);0.75*b:1(0-6)"), 0);
	assert_int_equal(forest.n_trees, 2);
	assert_true(tree[0].share == 0.25 && tree[1].share == 0.75);
	assert_int_equal(tree[0].n_nodes, 3);
	assert_int_equal(tree[0].nodes[0].own, 1 << 6);
	assert_int_equal(tree[0].nodes[0].ranks, 0x7f);
	assert_int_equal(tree[0].nodes[2].ranks, 7 << 3);
	assert_int_equal(tree_children(&tree[0], 0), 3);
	assert_int_equal(tree_leaf(&tree[0], 4), 2);
	assert_int_equal(tree_leaf(&tree[0], 7), -1);
	assert_int_equal(tree_depth(&tree[0], 2), 2);
	assert_string_equal(tree[1].nodes[0].name, "b:1");
}

static void test_prints_what_it_reads(void **state)
{
	static const char *const texts[] = {
		"10.0.0.9:7700(0-3)",
		"[fe80::1%eth0]:7700(0,2-63)",
		"r(0,a(1-2,b(3-4)),c(5))",
		"0.500000*a(0-1);0.500000*b(0-1)",
	};
	char text[200];

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_int_equal(forest_parse(&forest, texts[i]), 0);
		assert_int_equal(forest_print(&forest, text, sizeof(text)), strlen(texts[i]));
		assert_string_equal(text, texts[i]);
	}
	assert_true(forest_print(&forest, text, 10) > 10 && strlen(text) == 9);
}

/* The tree of some ranks: renumbered, without aggregators that have nothing to sum. */
static void test_subset(void **state)
{
	static const struct {
		const char *from;
		unsigned ranks[4], n;
		const char *to;
	} cases[] = {
		{ "r(a(0-2),b(3-5),6)", { 0, 1, 3, 4 }, 4, "r(a(0-1),b(2-3))" },
		{ "r(a(0-2),b(3-5),6)", { 4, 0, 1 }, 3, "r(0,a(1-2))" },
		{ "r(a(0-2),b(3-5),6)", { 5, 3 }, 2, "b(0-1)" },
		{ "r(a(0,b(1,c(2,3))),4)", { 1, 3 }, 2, "b(0-1)" },
		{ "r(a(0,b(1,c(2,3))),4)", { 3, 4 }, 2, "r(0-1)" },
		{ "r(a(0,b(1,c(2,3))),4)", { 3 }, 1, "r(0)" },
	};
	static struct forest out;
	char text[200];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(forest_parse(&forest, cases[i].from), 0);
		forest_subset(&forest, cases[i].ranks, cases[i].n, &out);
		forest_print(&out, text, sizeof(text));
		assert_string_equal(text, cases[i].to);
		assert_int_equal(out.trees[0].nodes[0].ranks, (1u << cases[i].n) - 1);
	}
}

static void test_refuses_with_place(void **state)
{
	static const struct {
		const char *text, *says;
	} wrong[] = {
		{ "", "no aggregator with its children at character 0" },
		{ "a", "no aggregator" },
		{ "a()", "no rank" },
		{ "a(64)", "no rank" },
		{ "a(3-2)", "no range" },
		{ "a(0,0)", "already" },
		{ "a(b(0),b(1))", "already" },
		{ "a(0-3),", "behind the last tree" },
		{ "a(0-3", "no aggregator" },
		{ "a(0-3);b(0-2)", "not the ranks of the first tree" },
		{ "0*a(0)", "no share" },
		{ ".*a(0)", "no share" },
		{ "1.2.3*a(0)", "no share" },
		{ "0.1234567890123456*a(0)", "up to 15 digits" },
		{ "2000000000*a(0)", "no share" },
		{ "a(b(c(d(e(f(g(h(i(0)))))))))", "too many aggregators" },
		{ "a b(0)", "no name" },
		{ "a(b(0)1)", "neither a comma" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(forest_parse(&forest, wrong[i].text), TRIB_ERR_CONFIG);
		if (!strstr(trib_last_error(), wrong[i].says))
			fail_msg("\"%s\": %s", wrong[i].text, trib_last_error());
	}
}

/* Like strtod with a decimal point, to the last bit. */
static void test_reads_shares(void **state)
{
	uint64_t random = 7;

	(void)state;
	for (unsigned i = 0; i < 20000; i++) {
		char number[40], text[80];
		unsigned decimals = (unsigned)(random >> 60) % 10;

		random = random * 6364136223846793005ull + 1442695040888963407ull;
		snprintf(number, sizeof(number), "%.*f", (int)decimals,
		         (double)(random >> 40) / (i % 2 ? 1e3 : 1e7) + 1);
		snprintf(text, sizeof(text), "%s*a(0);2*b(0)", number);
		assert_int_equal(forest_parse(&forest, text), TRIB_OK);
		assert_true(forest.trees[0].share == strtod(number, NULL));
	}
}

/* With any locale of the program, which a library must not change. */
static void test_locale(void **state)
{
	static const char *const others[] = { "de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE" };
	const char *found = NULL;
	char text[80];

	(void)state;
	for (size_t i = 0; !found && i < sizeof(others) / sizeof(others[0]); i++)
		found = setlocale(LC_ALL, others[i]);
	assert_int_equal(forest_parse(&forest, "0.250000*a(0-1);1.750000*b(0-1)"), TRIB_OK);
	assert_true(forest.trees[0].share == 0.25 && forest.trees[1].share == 1.75);
	forest_print(&forest, text, sizeof(text));
	assert_string_equal(text, "0.250000*a(0-1);1.750000*b(0-1)");
	setlocale(LC_ALL, "C");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads_forest), cmocka_unit_test(test_prints_what_it_reads),
		cmocka_unit_test(test_subset),       cmocka_unit_test(test_refuses_with_place),
		cmocka_unit_test(test_reads_shares), cmocka_unit_test(test_locale),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
